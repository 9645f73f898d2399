export const description = "Reads a reply many times larger than a stream's window.";
export default async function (ctx) {
  const first = await ctx.fetch("/large");
  const second = await ctx.fetch("/large");
  const sizes = await Promise.all([first.text(), second.text()]);
  return sizes.map((text) => text.length);
}
