// A fresh isolated-vm isolate per call, with an unguarded fetch of the host's: no process of its own, no
// proxy, no audit, no redaction. Reads {url, token, calls} from the environment, prints microseconds as JSON.
// NODE_EXTRA_CA_CERTS names the vendor's certificate authority.
import { createRequire } from "node:module";
const ivm = createRequire(process.env.PEERS + "/")("isolated-vm");
const { VENDOR_URL, VENDOR_TOKEN, CALLS } = process.env;

async function hostFetch(path) {
  const headers = { authorization: `Bearer ${VENDOR_TOKEN}` };
  const response = await fetch(VENDOR_URL + path, { headers }).catch((error) => {
    console.error(error.cause);
    throw error;
  });
  return { ok: response.ok, status: response.status, body: await response.text() };
}

const shim = `
  globalThis.ctx = { fetch: async (path) => {
    const answer = await hostFetch.apply(undefined, [path], { arguments: { copy: true }, result: { promise: true, copy: true } });
    return { ok: answer.ok, status: answer.status, json: async () => JSON.parse(answer.body) };
  } };`;
const tool = `
  (async (ctx, input) => {
    const response = await ctx.fetch("/orders?limit=" + input.limit);
    const { orders } = await response.json();
    return orders.map((order) => ({ id: order.id, total: order.total }));
  })(ctx, { limit: 20 }).then(JSON.stringify)`;

async function call() {
  const isolate = new ivm.Isolate({ memoryLimit: 64 });
  try {
    const context = await isolate.createContext();
    await context.global.set("hostFetch", new ivm.Reference(hostFetch));
    await context.eval(shim);
    return JSON.parse(await context.eval(tool, { promise: true, copy: true, timeout: 5000 }));
  } finally {
    isolate.dispose();
  }
}

for (let i = 0; i < 20; i++) await call();
const times = [];
for (let i = 0; i < Number(CALLS); i++) {
  const start = process.hrtime.bigint();
  const orders = await call();
  times.push(Number(process.hrtime.bigint() - start) / 1000);
  if (!Array.isArray(orders) || orders.length === 0) throw new Error("no orders came back");
}
console.log(JSON.stringify(times));
