// A fresh `node:vm` context per call: not a security boundary, as Node's own documentation says.
import vm from "node:vm";
import { hostFetch, measure, shim, tool } from "./tool.mjs";

await measure(async () => {
  const context = vm.createContext({ hostFetch });
  vm.runInContext(shim, context);
  return JSON.parse(await vm.runInContext(tool, context, { timeout: 5000 }));
});
