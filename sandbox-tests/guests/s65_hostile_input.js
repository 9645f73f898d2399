export default async function (ctx, input) {
  return {
    own: Object.hasOwn(input, "__proto__"),
    polluted: {}.polluted ?? null,
    plain: Object.getPrototypeOf(input) === Object.prototype,
  };
}
