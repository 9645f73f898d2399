// Everything that can be walked to from what a module holds: no operation, no
// object of the runtime's inner side.
export default async function (ctx) {
  const found = [];
  const seen = new Set();
  const bad = /^op_|^(ops|core|primordials|internals|loadExtScript|opNames|getPromiseDetails)$/;
  const roots = [ctx, console, crypto, performance, globalThis, new Response("x"), new Headers(),
    new Request(ctx.proxyBase + "/"), new AbortController(), new URL("https://a.test"),
    new ReadableStream(), new Blob(["x"]), new FormData(), new TextDecoder(), import.meta];
  try { null.x; } catch (error) { roots.push(error); }
  try { new Headers(5); } catch (error) { roots.push(error); }
  try { atob("*"); } catch (error) { roots.push(error); }
  try { await ctx.fetch(5); } catch (error) { roots.push(error); }
  // deno_core calls asynchronous operations by a method.
  const leaked = [];
  try {
    Function.prototype.call = function (...rest) { leaked.push(this); return Reflect.apply(this, rest[0], rest.slice(1)); };
  } catch { /* fixed */ }
  await (await ctx.fetch("/leak")).text();
  await new Blob(["x"]).text();
  roots.push(...leaked);
  const queue = [...roots];
  while (queue.length > 0) {
    const value = queue.pop();
    if (value === null || (typeof value !== "object" && typeof value !== "function")) continue;
    if (seen.has(value)) continue;
    seen.add(value);
    if (typeof value === "function" && bad.test(value.name)) found.push(`function ${value.name}`);
    queue.push(Object.getPrototypeOf(value));
    for (const key of Reflect.ownKeys(value)) {
      if (typeof key === "string" && bad.test(key)) found.push(`key ${key}`);
      const descriptor = Reflect.getOwnPropertyDescriptor(value, key);
      if (!descriptor) continue;
      if ("value" in descriptor) queue.push(descriptor.value);
      else {
        queue.push(descriptor.get, descriptor.set);
        try {
          const got = value[key];
          if (got instanceof Promise) got.catch(() => {});
          queue.push(got);
        } catch { /* a branded getter */ }
      }
    }
  }
  if (seen.size < 500) found.push(`only ${seen.size} objects walked`);
  return found;
}
