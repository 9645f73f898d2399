export default async function (ctx) {
  await ctx.fetch("/x");
  return [/* nested */];
}
