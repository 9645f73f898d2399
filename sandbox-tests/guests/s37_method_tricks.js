export default async function (ctx) {
  const found = [];
  for (const method of ["delete", "DELETE ", "DeLeTe", "QUERY", "CONNECT", "TRACE", "", "get\r\nx",
    "x".repeat(1e6), "POST", "ｇｅｔ"]) {
    try {
      const response = await ctx.fetch("/method", { method });
      found.push(`${method.slice(0, 10)}: ${response.status}`);
    } catch (error) {
      if (!error.code) found.push(String(error));
    }
  }
  try {
    await ctx.fetch("/method", { method: Symbol("GET") });
    found.push("symbol");
  } catch (error) {
    if (!(error instanceof TypeError)) found.push(String(error));
  }
  return found;
}
