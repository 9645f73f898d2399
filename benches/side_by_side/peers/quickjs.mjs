// A fresh QuickJS context (WebAssembly) per call in one Node process, with the host's fetch handed in.
import { createRequire } from "node:module";
import { hostFetch, measure, shim, tool } from "./tool.mjs";
const { getQuickJS } = createRequire(process.env.PEERS + "/")("quickjs-emscripten");
const quickjs = await getQuickJS();

await measure(async () => {
  const runtime = quickjs.newRuntime();
  const context = runtime.newContext();
  try {
    const host = context.newFunction("hostFetch", (path) => {
      const promise = context.newPromise();
      hostFetch(context.getString(path)).then((answer) => {
        const made = context.unwrapResult(context.evalCode(`(${JSON.stringify(answer)})`));
        promise.resolve(made);
        made.dispose();
      });
      promise.settled.then(() => runtime.executePendingJobs());
      return promise.handle;
    });
    context.setProp(context.global, "hostFetch", host);
    host.dispose();
    context.unwrapResult(context.evalCode(shim)).dispose();
    const pending = context.unwrapResult(context.evalCode(tool));
    const settled = context.resolvePromise(pending);
    pending.dispose();
    runtime.executePendingJobs();
    const value = context.unwrapResult(await settled);
    const text = context.getString(value);
    value.dispose();
    return JSON.parse(text);
  } finally {
    context.dispose();
    runtime.dispose();
  }
});
