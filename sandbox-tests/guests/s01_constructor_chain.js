// Reaching a Function constructor through whatever a module holds.
export default async function (ctx) {
  const found = [];
  const tries = [
    () => ctx.fetch.constructor("return 1")(),
    () => ctx.constructor.constructor("return this")(),
    () => ctx.connection.constructor.constructor("return this")(),
    () => console.log.constructor("return 1")(),
    () => [].map.constructor("return 1")(),
    () => new Response("x").text().constructor.constructor("return 1")(),
    () => Object.getPrototypeOf(async () => {}).constructor("return 1")(),
    () => new Error("x").constructor.constructor("return 1")(),
  ];
  tries.forEach((attempt, index) => {
    try {
      found.push(`${index} gave ${typeof attempt()}`);
    } catch (error) {
      if (!(error instanceof EvalError)) found.push(`${index} threw ${error}`);
    }
  });
  return found;
}
