// The tool every Node peer runs, and the measuring loop around it. Reads {VENDOR_URL, VENDOR_TOKEN, CALLS} from
// the environment, prints microseconds as JSON. NODE_EXTRA_CA_CERTS names the vendor's certificate authority.
const { VENDOR_URL, VENDOR_TOKEN, CALLS } = process.env;

// The host's own unguarded fetch, as text: what a peer's sandbox calls out to.
export async function hostFetch(path) {
  const headers = { authorization: `Bearer ${VENDOR_TOKEN}` };
  const response = await fetch(VENDOR_URL + path, { headers });
  return { ok: response.ok, status: response.status, body: await response.text() };
}

export const shim = `
  globalThis.ctx = { fetch: async (path) => {
    const answer = await hostFetch(path);
    return { ok: answer.ok, status: answer.status, json: async () => JSON.parse(answer.body) };
  } };`;
export const tool = `
  (async (ctx, input) => {
    const response = await ctx.fetch("/orders?limit=" + input.limit);
    const { orders } = await response.json();
    return orders.map((order) => ({ id: order.id, total: order.total }));
  })(ctx, { limit: 20 }).then(JSON.stringify)`;

export async function measure(call) {
  for (let i = 0; i < 20; i++) await call();
  const times = [];
  for (let i = 0; i < Number(CALLS); i++) {
    const start = process.hrtime.bigint();
    const orders = await call();
    times.push(Number(process.hrtime.bigint() - start) / 1000);
    if (!Array.isArray(orders) || orders.length === 0) throw new Error("no orders came back");
  }
  process.stdout.write(JSON.stringify(times));
}
