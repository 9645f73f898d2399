export const description = "Escapes where names and methods are.";
export const inputSchema = { type: "object", properties: {}, additionalProperties: false };
export default async function (c\u0074x, input) {
  const res = await ctx.\u0066etch("/x", { m\u0065thod: "P\u004fST" });
  return res.\u{73}tatus;
}
