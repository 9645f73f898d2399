// A fresh isolated-vm isolate per call, with an unguarded fetch of the host's: no process of its own, no
// proxy, no audit, no redaction.
import { createRequire } from "node:module";
import { hostFetch, measure, shim, tool } from "./tool.mjs";
const ivm = createRequire(process.env.PEERS + "/")("isolated-vm");

const bridged = `const hostFetch = (path) =>
  reference.apply(undefined, [path], { arguments: { copy: true }, result: { promise: true, copy: true } });`;

await measure(async () => {
  const isolate = new ivm.Isolate({ memoryLimit: 64 });
  try {
    const context = await isolate.createContext();
    await context.global.set("reference", new ivm.Reference(hostFetch));
    await context.eval(bridged + shim);
    return JSON.parse(await context.eval(tool, { promise: true, copy: true, timeout: 5000 }));
  } finally {
    isolate.dispose();
  }
});
