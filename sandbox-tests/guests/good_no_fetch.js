export default async function (ctx, input) {
  return { sum: input.a + input.b, slug: ctx.connection.slug };
}
