export default async function () {
  const found = [];
  for (const attempt of [() => eval("1"), () => (0, eval)("1"), () => globalThis.eval("var x = 1")]) {
    try {
      found.push(attempt());
    } catch (error) {
      if (!(error instanceof EvalError)) found.push(String(error));
    }
  }
  return found;
}
