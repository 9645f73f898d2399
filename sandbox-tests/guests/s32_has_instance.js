export default async function (ctx) {
  for (const thing of [Response, Headers, URLSearchParams, Blob, FormData, AbortSignal, Uint8Array]) {
    try {
      Object.defineProperty(thing, Symbol.hasInstance, { value: () => true });
    } catch { /* fixed */ }
  }
  Object.prototype.__defineGetter__.call(Object.prototype, "ended", () => true);
  const response = await ctx.fetch("/instance");
  return response.status;
}
