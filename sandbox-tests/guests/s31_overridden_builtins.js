export default async function (ctx) {
  const evil = function () { throw new Error("overridden"); };
  const status = Object.getOwnPropertyDescriptor(Response.prototype, "status").get;
  const call = Function.prototype.call.bind(Function.prototype.call, status);
  const parts = [Promise.prototype, String.prototype, Map.prototype, WeakMap.prototype,
    Set.prototype, RegExp.prototype, Function.prototype, Headers.prototype, Uint8Array.prototype,
    Object.getPrototypeOf(Uint8Array.prototype), ArrayBuffer.prototype];
  for (const part of parts) {
    for (const key of Reflect.ownKeys(part)) {
      if (key === "constructor" || key === Symbol.toStringTag) continue;
      try { Object.defineProperty(part, key, { value: evil }); } catch { /* not ours to change */ }
    }
  }
  JSON.stringify = evil;
  JSON.parse = evil;
  Reflect.apply = evil;
  Object.defineProperty = evil;
  const response = await ctx.fetch("/built-ins", { headers: { accept: "text/plain" } });
  return call(response);
}
