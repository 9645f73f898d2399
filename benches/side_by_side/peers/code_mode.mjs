// UTCP's code mode: code in a fresh isolated-vm isolate, which calls a tool of the host's that does the request,
// unguarded, over a protocol that is registered here. No process of its own, no proxy, no audit, no redaction.
import { createRequire } from "node:module";
import { hostFetch, measure } from "./tool.mjs";
const require = createRequire(process.env.PEERS + "/");
const { CallTemplateSerializer, CommunicationProtocol } = require("@utcp/sdk");
const { CodeModeUtcpClient } = require("@utcp/code-mode");

// The client says each call.
console.log = () => {};
const template = { name: "shop", call_template_type: "host" };
const schema = { type: "object", properties: { limit: { type: "integer" } }, required: ["limit"] };
const list = { name: "list", description: "Lists orders.", tags: [], inputs: schema, outputs: {}, tool_call_template: template };
CallTemplateSerializer.registerCallTemplate("host", { toDict: (it) => it, validateDict: (it) => it, copy: (it) => it });
CommunicationProtocol.communicationProtocols.host = {
  registerManual: async (_, manualCallTemplate) => {
    const manual = { utcp_version: "1.0.0", manual_version: "1.0.0", tools: [list] };
    return { success: true, errors: [], manualCallTemplate, manual };
  },
  callTool: async (_, name, { limit }) => JSON.parse((await hostFetch(`/orders?limit=${limit}`)).body),
};

const client = await CodeModeUtcpClient.create();
await client.registerManual(template);
const code = `
  const { orders } = shop.list({ limit: 20 });
  return orders.map((order) => ({ id: order.id, total: order.total }));`;
await measure(async () => {
  const { result, logs } = await client.callToolChain(code);
  if (!result) throw new Error(logs.join());
  return result;
});
