// Makes orders.wasm of orders.js: a component of the world in tool.wit.
import { componentize } from "@bytecodealliance/componentize-js";
import { readFile, writeFile } from "node:fs/promises";
const [source, wit, to] = process.argv.slice(2);
const made = await componentize(await readFile(source, "utf8"), {
  witPath: wit,
  worldName: "tool",
  disableFeatures: ["fetch-event"],
});
await writeFile(to, made.component);
