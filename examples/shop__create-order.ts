export const description = "Orders one item from the shop.";
export const inputSchema = {
  type: "object",
  properties: {
    item: { type: "string", minLength: 1, description: "What to order." },
    quantity: { type: "integer", minimum: 1, maximum: 10 },
  },
  required: ["item", "quantity"],
  additionalProperties: false,
} as const;
export const exampleInput = { item: "walnut table", quantity: 1 };

export default async function (ctx: Context, input: Input) {
  return await ctx.fetch("/orders", {
    method: "POST",
    body: { item: input.item, quantity: input.quantity },
  });
}
