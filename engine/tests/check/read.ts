export const title = "List orders";
export const description = "Lists the open orders of one customer.";
export const inputSchema = {
  type: "object",
  properties: { customer: { type: "string" }, limit: { $ref: "#/$defs/limit" } },
  required: ["customer"],
  additionalProperties: false,
  $defs: { limit: { type: "integer", maximum: 100 } },
} as const;
export const exampleInput = { customer: "C-17" }; // used by dry runs

interface Order {
  id: string;
  total: number;
}

export default async function (ctx: Context, input: Input) {
  const res = await ctx.fetch(
    `/customers/${encodeURIComponent(input.customer)}/orders?limit=${input.limit ?? 20}`,
  );
  if (!res.ok) return res;
  const { orders } = (await res.json()) as { orders: Order[] };
  return orders.map((order) => ({ id: order.id, total: order.total }));
}
