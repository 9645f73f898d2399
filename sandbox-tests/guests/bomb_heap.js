export default async function () {
  const held = [];
  for (;;) held.push({ a: [held.length, "x".repeat(10)] });
}
