export default async function (ctx, input) {
  const nested = () => {
    let deep = [];
    for (let i = 0; i < 1e6; i++) deep = [deep];
    return deep;
  };
  const cyclic = {};
  cyclic.self = cyclic;
  const values = {
    nothing: () => undefined,
    nan: () => NaN,
    minus: () => -0,
    date: () => new Date(0),
    map: () => new Map([[1, 2]]),
    surrogate: () => "a\ud800b",
    proto: () => JSON.parse('{"__proto__": {"x": 1}, "y": 2}'),
    bigint: () => 1n,
    symbol: () => Symbol("s"),
    fn: () => () => {},
    cyclic: () => cyclic,
    deep: nested,
    nested: () => JSON.parse("[".repeat(500) + "]".repeat(500)),
    proxy: () => new Proxy([], { get: (t, key) => key === "length" ? 2 ** 32 - 1 : 0 }),
  };
  return values[input.kind]();
}
