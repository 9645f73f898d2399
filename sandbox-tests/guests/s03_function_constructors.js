export default async function () {
  const found = [];
  const tries = [
    () => Function("return 1")(),
    () => new Function("return 1")(),
    () => new (class extends Function {})("return 1")(),
    () => Reflect.construct(Function, ["return 1"])(),
    () => Reflect.apply(Function, undefined, ["return 1"])(),
    () => Function.prototype.constructor("a", "return a")(1),
    () => Function.call.call(Function, null, "return 1")(),
  ];
  for (const attempt of tries) {
    try {
      found.push(attempt());
    } catch (error) {
      if (!(error instanceof EvalError)) found.push(String(error));
    }
  }
  return found;
}
