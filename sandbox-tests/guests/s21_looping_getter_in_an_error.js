export default async function () {
  throw Object.defineProperty(new Error("x"), "message", { get() { for (;;); } });
}
