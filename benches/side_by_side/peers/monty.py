# A fresh Monty session per call, in a worker process of its pool, with an unguarded fetch of the host's over a kept
# connection: Python instead of JavaScript, no network of its own, no proxy, no audit, no redaction. Reads
# {VENDOR_URL, VENDOR_TOKEN, CALLS, NODE_EXTRA_CA_CERTS} from the environment, prints microseconds as JSON.
import http.client
import json
import os
import ssl
import time
import urllib.parse

from pydantic_monty import Monty

TOOL = """
import json
def tool(limit):
    orders = json.loads(fetch("/orders?limit=" + str(limit)))["orders"]
    return [{"id": order["id"], "total": order["total"]} for order in orders]
tool(20)
"""
vendor = urllib.parse.urlsplit(os.environ["VENDOR_URL"])
trust = ssl.create_default_context(cafile=os.environ["NODE_EXTRA_CA_CERTS"])
connection = http.client.HTTPSConnection(vendor.hostname, vendor.port, context=trust)
headers = {"authorization": "Bearer " + os.environ["VENDOR_TOKEN"]}


def fetch(path):
    connection.request("GET", path, headers=headers)
    return connection.getresponse().read().decode()


def call(pool):
    with pool.checkout() as session:
        return session.feed_run(TOOL, external_lookup={"fetch": fetch})


with Monty() as pool:
    for _ in range(20):
        call(pool)
    times = []
    for _ in range(int(os.environ["CALLS"])):
        start = time.perf_counter_ns()
        orders = call(pool)
        times.append((time.perf_counter_ns() - start) / 1000)
        assert len(orders) == 20, orders
print(json.dumps(times))
