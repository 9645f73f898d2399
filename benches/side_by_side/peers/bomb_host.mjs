// A host of the peer named by the first argument: a line in is the body of an async function, as JSON; a line out
// says that it ended, however it did.
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import vm from "node:vm";

const TIMEOUT = 300;
const hosts = {
  vm: async (body) => {
    const context = vm.createContext({}, { microtaskMode: "afterEvaluate" });
    vm.runInContext(`(async () => { ${body} })()`, context, { timeout: TIMEOUT });
  },
  "isolated-vm": async (body) => {
    const ivm = createRequire(process.env.PEERS + "/")("isolated-vm");
    const isolate = new ivm.Isolate({ memoryLimit: 64 });
    try {
      const context = await isolate.createContext();
      await context.eval(`(async () => { ${body} })()`, { timeout: TIMEOUT });
    } finally {
      if (!isolate.isDisposed) isolate.dispose();
    }
  },
};

const run = hosts[process.argv[2]];
console.log("up");
for await (const line of createInterface({ input: process.stdin })) {
  try {
    await run(JSON.parse(line));
  } catch {
    // It threw, ran out of time or of memory: that is an end.
  }
  console.log("ended");
}
