export default async function (ctx) {
  const found = [];
  let kinds = 0;
  function down(rest) {
    if (rest > 0) return down(rest - 1);
    try { new Headers({ a: "b" }).get("a"); } catch (error) {
      if (!(error instanceof RangeError)) found.push(String(error));
      kinds++;
    }
    try { new Response("x").clone(); } catch (error) {
      if (!(error instanceof RangeError)) found.push(String(error));
    }
  }
  let depth = 0;
  const measure = () => { depth++; measure(); };
  try { measure(); } catch { /* the depth is known now */ }
  for (let rest = 0; rest < 60; rest++) {
    try { down(Math.max(0, depth - rest * Math.ceil(depth / 200))); } catch (error) {
      if (!(error instanceof RangeError)) found.push(String(error));
    }
  }
  const response = await ctx.fetch("/after");
  if (response.status !== 200) found.push(`after: ${response.status}`);
  return found;
}
