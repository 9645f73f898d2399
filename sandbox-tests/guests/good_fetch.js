export const description = "Reads an order.";
export default async function (ctx, input) {
  const response = await ctx.fetch(`/orders/${encodeURIComponent(input.id)}`, {
    query: { expand: ["lines", "customer"] },
  });
  const body = await response.json();
  console.log("read", { id: input.id }, body.ok);
  return { status: response.status, ok: body.ok, type: response.headers.get("content-type") };
}
