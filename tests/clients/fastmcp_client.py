"""The same with fastmcp's client.

usage: fastmcp_client.py http URL | stdio COMMAND
"""

import asyncio
import json
import os
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

# The least time a person takes; anything faster counts as a client's own answer.
READING_SECONDS = 1.7

forms = []


async def person(message, response_type, params, context):
    forms.append(message)
    await asyncio.sleep(READING_SECONDS)
    return {"approve": True}


def transport(kind, where):
    if kind == "stdio":
        return StdioTransport(command=where, args=[])
    headers = {"Authorization": "Bearer " + os.environ["CAMBIUM_TOKEN"]}
    return StreamableHttpTransport(where, headers=headers)


async def main():
    kind, where = sys.argv[1:]
    async with Client(transport(kind, where), elicitation_handler=person) as client:
        async def names():
            return [tool.name for tool in await client.list_tools()]

        async def call(tool, arguments):
            return (await client.call_tool(tool, arguments, raise_on_error=False)).structured_content

        order = {"item": f"fastmcp {kind} chair", "quantity": 1}
        tool = {"vendor": "shop", "name": "list-orders"}
        saw = {"tools": await names(), "read": await call("shop__list-orders", {"limit": 5})}
        saw["preview"] = await call("run_tool", {
            "vendor": "shop", "name": "create-order", "input": order, "dryRun": True})
        saw["asked"] = await call("shop__create-order", order)
        saw["forms"] = forms
        await call("demote", tool)
        saw["demoted"] = await names()
        await call("promote", tool)
        saw["promoted"] = await names()
        print(json.dumps(saw))


asyncio.run(main())
