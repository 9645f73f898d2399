export default async function (ctx) {
  const found = [];
  let reads = 0;
  const inits = [
    { get method() { return reads++ ? "DELETE" : "GET"; } },
    new Proxy({ method: "GET" }, { get: () => (reads++ ? "DELETE" : "GET") }),
    { method: "GET", headers: { get accept() { return "x"; } } },
    { query: { get a() { return 1; } } },
  ];
  for (const init of inits) {
    try {
      await ctx.fetch("/toctou", init);
      found.push("sent");
    } catch (error) {
      if (!(error instanceof TypeError)) found.push(String(error));
    }
  }
  if (reads > 0) found.push(`${reads} reads`);
  return found;
}
