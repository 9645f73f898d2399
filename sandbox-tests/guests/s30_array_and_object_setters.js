export default async function (ctx) {
  let touched = 0;
  const trap = { get() { touched++; return undefined; }, set() { touched++; }, configurable: true };
  for (const key of ["0", "1", "2"]) Object.defineProperty(Array.prototype, key, trap);
  for (const key of ["status", "headers", "bytes", "fault", "inner", "type", "used", "stream", "reply",
    "method", "url", "body", "signal", "length", "message", "stack"]) {
    if (key === "length") continue;
    Object.defineProperty(Object.prototype, key, trap);
  }
  Array.prototype[Symbol.iterator] = function* () { touched++; };
  const response = await ctx.fetch("/quiet?a=1", { headers: { accept: "text/plain" } });
  const text = await response.text();
  return `${response.status} ${text.length > 0} ${touched}`;
}
