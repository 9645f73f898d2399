// Results over the cap, and results that only look as if they were.
export default async function (ctx, input) {
  const long = "x".repeat(1e8);
  switch (input.kind) {
    case "string": return long;
    case "inside": return { page: { items: [{ text: long }] } };
    case "bytes": return new Uint8Array(5e7);
    case "array": return new Array(1e5).fill(0);
    case "holes": return new Array(2 ** 32 - 1);
    case "response": return new Response(new Uint8Array(5e7));
    case "many": return Array.from({ length: 100 }, () => "y".repeat(2000));
    case "shortened": return { long, toJSON: () => "short" };
    case "inherited": return new (class { long = long; toJSON() { return "short"; } })();
    case "hidden": return Object.defineProperty({ a: 1 }, "long", { value: long });
    case "symbol": return { [Symbol("long")]: long };
    case "getter": {
      Object.defineProperty(Object.prototype, "inherited", { value: long, enumerable: true });
      return { get a() { return 1; } };
    }
    case "proxied": return new Proxy({ long }, { get: (_, key) => key === "toJSON" ? () => "short" : undefined });
  }
}
