export const description = "Hands the context on.";
export const inputSchema = { type: "object" };

async function send(context: Context, method: string) {
  return context.fetch("/orders", { method });
}

export default async function (ctx: Context) {
  for (const method of ["GET", "POST"]) await send(ctx, method);
  return ctx.fetch(`/orders/${ctx.connection.slug}`);
}
