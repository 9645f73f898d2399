"""Does with the Python MCP client what a harness does, and prints what it saw as
JSON: lists, reads, gets a preview, is asked, promotes and lists again.

usage: python_client.py MODE http URL | MODE stdio COMMAND
MODE is `legacy` (initialize) or `auto` (discover first). Over HTTP the agent's
token is read from CAMBIUM_TOKEN.
"""

import asyncio
import json
import os
import sys

import httpx2
import mcp_types as types
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

# The least time a person takes; anything faster counts as a client's own answer.
READING_SECONDS = 1.7

forms = []


async def person(context, params):
    forms.append(params.message)
    await asyncio.sleep(READING_SECONDS)
    return types.ElicitResult(action="accept", content={"approve": True})


def transport(kind, where):
    if kind == "stdio":
        return stdio_client(StdioServerParameters(command=where))
    token = os.environ["CAMBIUM_TOKEN"]
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60)
    return streamable_http_client(where, http_client=http)


async def main():
    mode, kind, where = sys.argv[1:]
    async with Client(transport(kind, where), mode=mode, elicitation_callback=person) as client:
        async def names():
            return [tool.name for tool in (await client.list_tools()).tools]

        order = {"item": f"{mode} {kind} chair", "quantity": 1}
        tool = {"vendor": "shop", "name": "list-orders"}
        listed = await names()
        read = await client.call_tool("shop__list-orders", {"limit": 5})
        found = await client.call_tool("find_tool", {"query": "list orders"})
        refused = await client.call_tool("find_tool", {"querry": "list orders"})
        preview = await client.call_tool("run_tool", {
            "vendor": "shop", "name": "create-order", "input": order, "dryRun": True})
        asked = await client.call_tool("shop__create-order", order)
        await client.call_tool("demote", tool)
        demoted = await names()
        await client.call_tool("promote", tool)
        print(json.dumps({
            "protocol": client.protocol_version,
            "tools": listed,
            "read": read.structured_content,
            "text": json.loads(read.content[0].text),
            "found": found.structured_content,
            "refused": {"isError": refused.is_error, "text": json.loads(refused.content[0].text)},
            "preview": preview.structured_content,
            "asked": asked.structured_content,
            "forms": forms,
            "demoted": demoted,
            "promoted": await names(),
        }))


asyncio.run(main())
