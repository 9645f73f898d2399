// Twenty idle worker threads: what each adds to the proportional set size of the process, KiB.
import { readFileSync } from "node:fs";
import { Worker } from "node:worker_threads";

function pss() {
  return Number(/^Pss:\s+(\d+)/m.exec(readFileSync("/proc/self/smaps_rollup", "utf8"))[1]);
}
const start = () => new Promise((resolve) => {
  const source = 'const { parentPort } = require("node:worker_threads"); parentPort.on("message", () => {}); parentPort.postMessage(0);';
  const worker = new Worker(source, { eval: true, resourceLimits: { maxOldGenerationSizeMb: 64 } });
  worker.once("message", () => resolve(worker));
});
await (await start()).terminate();
const before = pss();
const workers = await Promise.all(Array.from({ length: 20 }, start));
console.log(JSON.stringify(Math.round((pss() - before) / workers.length)));
await Promise.all(workers.map((worker) => worker.terminate()));
