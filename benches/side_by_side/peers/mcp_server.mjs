// A plain MCP server of the TypeScript SDK with the tool built in: no sandbox, no proxy, no audit; the
// credential is in its own memory. Streamable HTTP, and prints its port; or MCP over stdin and stdout when the first
// argument is `stdio`. Ends with its stdin.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { hostFetch } from "./tool.mjs";
const require = createRequire(process.env.PEERS + "/");
const { McpServer } = require("@modelcontextprotocol/sdk/server/mcp.js");
const { StreamableHTTPServerTransport } = require("@modelcontextprotocol/sdk/server/streamableHttp.js");
const { StdioServerTransport } = require("@modelcontextprotocol/sdk/server/stdio.js");
const { z } = require("zod");

function server() {
  const server = new McpServer({ name: "plain", version: "1.0.0" });
  const inputSchema = { limit: z.number().int().optional() };
  server.registerTool("shop__list-orders", { description: "Lists orders.", inputSchema }, async ({ limit }) => {
    const answer = await hostFetch("/orders?limit=" + (limit ?? 20));
    const { orders } = JSON.parse(answer.body);
    const result = orders.map((order) => ({ id: order.id, total: order.total }));
    return { content: [{ type: "text", text: JSON.stringify(result) }] };
  });
  return server;
}

const sessions = new Map();
const http = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  const parsed = body ? JSON.parse(body) : undefined;
  let transport = sessions.get(request.headers["mcp-session-id"]);
  if (!transport) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => sessions.set(id, transport),
    });
    await server().connect(transport);
  }
  await transport.handleRequest(request, response, parsed);
});
process.stdin.on("end", () => process.exit(0));
if (process.argv[2] === "stdio") {
  await server().connect(new StdioServerTransport());
} else {
  http.listen(0, "127.0.0.1", () => console.log(http.address().port));
  process.stdin.resume();
}
