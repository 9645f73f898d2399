export default async function () {
  const found = [];
  for (const name of ["BroadcastChannel", "MessageChannel", "SharedWorker", "indexedDB"]) {
    if (name in globalThis) found.push(name);
  }
  if ("createObjectURL" in URL) found.push("createObjectURL");
  const port = structuredClone({ a: new Uint8Array([1]) });
  if (port.a[0] !== 1) found.push("clone");
  return found;
}
