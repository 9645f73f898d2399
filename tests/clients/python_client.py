"""Lists and calls with the Python MCP client, and prints what it saw as JSON.

usage: python_client.py MODE http URL | MODE stdio COMMAND
MODE is `legacy` (initialize) or `auto` (discover first). Over HTTP the agent's
token is read from CAMBIUM_TOKEN.
"""

import asyncio
import json
import os
import sys

import httpx2
from mcp import Client, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client


def transport(kind, where):
    if kind == "stdio":
        return stdio_client(StdioServerParameters(command=where))
    token = os.environ["CAMBIUM_TOKEN"]
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60)
    return streamable_http_client(where, http_client=http)


async def main():
    mode, kind, where = sys.argv[1:]
    async with Client(transport(kind, where), mode=mode) as client:
        listed = await client.list_tools()
        read = await client.call_tool("shop__list-orders", {"limit": 5})
        found = await client.call_tool("find_tool", {"query": "list orders"})
        refused = await client.call_tool("find_tool", {"querry": "list orders"})
        print(json.dumps({
            "protocol": client.protocol_version,
            "tools": [tool.name for tool in listed.tools],
            "read": read.structured_content,
            "text": json.loads(read.content[0].text),
            "found": found.structured_content,
            "refused": {"isError": refused.is_error, "text": json.loads(refused.content[0].text)},
        }))


asyncio.run(main())
