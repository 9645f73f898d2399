export default async function (ctx) {
  const found = [];
  Error.prepareStackTrace = (error, sites) => {
    found.push(`called with ${sites.length} sites`);
    return sites;
  };
  const stacks = [new Error("x").stack];
  new Headers({ a: "b" }).forEach(() => stacks.push(new Error("y").stack));
  try { await ctx.fetch("/x", { get method() { return 1; } }); } catch (error) { stacks.push(error.stack); }
  const holder = {};
  Error.captureStackTrace(holder);
  stacks.push(holder.stack);
  for (const stack of stacks) {
    if (typeof stack !== "string") found.push(`a stack is a ${typeof stack}`);
    else if (/[(\s](\/|file:)/.test(stack)) found.push(stack);
  }
  return found;
}
