export default async function () {
  const names = [
    "Deno", "__bootstrap", "__cambium", "__infra", "__timers", "process", "require", "Buffer",
    "WebAssembly", "SharedArrayBuffer", "Atomics", "gc", "ShadowRealm", "Temporal", "module",
    "exports", "global", "BroadcastChannel", "MessageChannel", "MessagePort", "Worker",
    "XMLHttpRequest", "WebSocket", "navigator", "localStorage", "caches", "importScripts",
  ];
  const found = names.filter((name) => name in globalThis);
  const buffers = [new ArrayBuffer(1), new Uint8Array(1).buffer, await new Response("x").arrayBuffer()];
  for (const buffer of buffers) {
    if (buffer.constructor !== ArrayBuffer) found.push("a foreign buffer");
  }
  return found;
}
