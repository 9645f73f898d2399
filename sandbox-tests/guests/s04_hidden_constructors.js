export default async function () {
  const found = [];
  for (const f of [async () => {}, function* () {}, async function* () {}]) {
    const Constructor = Object.getPrototypeOf(f).constructor;
    for (const attempt of [() => Constructor("return 1"), () => new Constructor("yield 1")]) {
      try {
        found.push(String(attempt()));
      } catch (error) {
        if (!(error instanceof EvalError)) found.push(String(error));
      }
    }
  }
  return found;
}
