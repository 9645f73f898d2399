export default async function (ctx) {
  return await ctx.fetch("/orders");
}
