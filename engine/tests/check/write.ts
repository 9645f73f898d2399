export const description = "Cancels an order, or deletes it when it was never sent.";
export const inputSchema = {
  type: "object",
  properties: { id: { type: "string" }, sent: { type: "boolean" } },
  required: ["id"],
};
export const outputSchema = { type: "object", properties: { ok: { type: "boolean" } } };

export default async ({ fetch }: Context, input: Input) => {
  const path = `/orders/${encodeURIComponent(input.id)}`;
  if (input.sent) return fetch(`${path}/cancel`, { method: "post", body: { reason: "asked" } });
  const gone = await fetch(path, { method: "DELETE", host: "files" });
  return { ok: gone.ok };
};
