export default async function (ctx, input) {
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const cyclic = new Error("cyclic");
  cyclic.cause = cyclic;
  let deep = new Error("deep");
  for (let i = 0; i < 1e5; i++) deep = new Error("d", { cause: deep });
  const values = {
    nothing: undefined,
    bare: Object.create(null),
    proxy: new Proxy(new Error("p"), { get() { throw 1; } }),
    revoked: revoked.proxy,
    symbol: Symbol("s"),
    fn: () => {},
    frozen: Object.freeze(new Error("frozen")),
    cyclic,
    deep,
    many: new AggregateError(Array(1e5).fill(new Error("m")), "many"),
    long: new Error("x".repeat(1e6)),
    bigint: 10n,
  };
  throw values[input.kind];
}
