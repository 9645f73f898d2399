"""Lists, calls and is asked through Codex's app-server, offline and without a
login, and prints what it saw as JSON.

usage: codex_client.py CODEX http URL | CODEX stdio COMMAND
Over HTTP the agent's token is read from CAMBIUM_TOKEN by Codex itself.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

# The least time a person takes; anything faster counts as a client's own answer.
READING_SECONDS = 1.7


class AppServer:
    def __init__(self, codex, home):
        env = dict(os.environ, CODEX_HOME=home)
        self.process = subprocess.Popen(
            [codex, "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True)
        self.next = 0
        self.seen = []
        self.forms = []

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        """Sends a request and answers whatever comes until its own answer does."""
        self.next += 1
        self.send({"id": self.next, "method": method, "params": params})
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit(f"codex ended while {method} was asked")
            message = json.loads(line)
            if message.get("id") == self.next and "method" not in message:
                if "error" in message:
                    raise SystemExit(f"{method}: {message['error']}")
                return message["result"]
            if "method" in message and "id" in message:
                self.seen.append(message["method"])
                self.send({"id": message["id"], "result": self.answer(message)})
            elif "method" in message:
                self.seen.append(message["method"])

    def answer(self, message):
        if message["method"] == "mcpServer/elicitation/request":
            self.forms.append(message["params"]["message"])
            time.sleep(READING_SECONDS)
            return {"action": "accept", "content": {"approve": True}}
        return {}


def main():
    codex, kind, where = sys.argv[1:]
    with tempfile.TemporaryDirectory() as home:
        with open(os.path.join(home, "config.toml"), "w") as config:
            # No model is spoken to; should Codex try, it meets a closed port.
            config.write('model_provider = "none"\n[model_providers.none]\nname = "none"\n')
            config.write('base_url = "http://127.0.0.1:9/v1"\n[mcp_servers.cambium]\n')
            if kind == "http":
                config.write(f'url = "{where}"\nbearer_token_env_var = "CAMBIUM_TOKEN"\n')
            else:
                config.write(f'command = "{where}"\n')
        server = AppServer(codex, home)
        server.ask("initialize", {"clientInfo": {"name": "test", "version": "1"},
                                  "capabilities": {"experimentalApi": True}})
        server.send({"method": "initialized"})
        thread = server.ask("thread/start", {"cwd": home})["thread"]["id"]

        def call(tool, arguments):
            answer = server.ask("mcpServer/tool/call", {
                "threadId": thread, "server": "cambium", "tool": tool, "arguments": arguments})
            return answer["structuredContent"]

        def names():
            listed = server.ask("mcpServerStatus/list", {})
            return sorted(listed["data"][0]["tools"])

        before = names()
        order = {"item": f"codex {kind} chair", "quantity": 1}
        saw = {"tools": before, "read": call("shop__list-orders", {"limit": 5})}
        saw["preview"] = call("run_tool", {
            "vendor": "shop", "name": "create-order", "dryRun": True, "input": order})
        saw["asked"] = call("shop__create-order", order)
        saw["forms"] = server.forms
        call("demote", {"vendor": "shop", "name": "list-orders"})
        saw["demoted"] = names()
        call("promote", {"vendor": "shop", "name": "list-orders"})
        saw["promoted"] = names()
        saw["seen"] = sorted(set(server.seen))
        print(json.dumps(saw))
        server.process.kill()


main()
