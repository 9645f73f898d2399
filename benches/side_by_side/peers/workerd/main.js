// Loads a fresh worker for each request: a new isolate, nothing shared. The credential is handed to it; workerd
// has no proxy that would add it.
const tool = `
  async function tool(ctx, input) {
    const response = await ctx.fetch("/orders?limit=" + input.limit);
    const { orders } = await response.json();
    return orders.map((order) => ({ id: order.id, total: order.total }));
  }
  export default {
    async fetch(request, env) {
      const headers = { authorization: "Bearer " + env.VENDOR_TOKEN };
      const ctx = { fetch: (path) => fetch(env.VENDOR_URL + path, { headers }) };
      return Response.json(await tool(ctx, { limit: 20 }));
    },
  };`;

let next = 0;
export default {
  async fetch(request, env) {
    const { VENDOR_URL, VENDOR_TOKEN } = env;
    const worker = env.LOADER.get(`call-${next++}`, () => ({
      compatibilityDate: "2026-11-01",
      mainModule: "tool.js",
      modules: { "tool.js": tool },
      env: { VENDOR_URL, VENDOR_TOKEN },
    }));
    return worker.getEntrypoint().fetch("http://tool/");
  },
};
