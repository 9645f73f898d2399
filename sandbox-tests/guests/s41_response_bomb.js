// Replies that never end, that grow when they are unpacked, and that come a byte
// at a time.
export default async function (ctx, input) {
  const response = await ctx.fetch(`/${input.kind}`);
  if (input.kind !== "drip" && input.whole) return (await response.text()).length;
  let bytes = 0;
  for await (const chunk of response.body) bytes += chunk.byteLength;
  return bytes;
}
