export const description = "Lists the orders of the shop, newest first.";
export const inputSchema = {
  type: "object",
  properties: {
    limit: { type: "integer", minimum: 1, maximum: 100, description: "How many at most." },
  },
  additionalProperties: false,
} as const;
export const exampleInput = { limit: 5 };

export default async function (ctx: Context, input: Input) {
  const res = await ctx.fetch(`/orders?limit=${input.limit ?? 20}`);
  if (!res.ok) return res;
  const { orders } = await res.json();
  return orders.map((order: any) => ({ id: order.id, item: order.item, quantity: order.quantity }));
}
