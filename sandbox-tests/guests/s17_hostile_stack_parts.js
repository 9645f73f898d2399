export default async function () {
  const error = new Error("x");
  error.name = Symbol("n");
  Object.defineProperty(error, "message", { get() { throw new Error("inner"); } });
  Error.prepareStackTrace = () => { throw 1; };
  void error.stack;
  throw error;
}
