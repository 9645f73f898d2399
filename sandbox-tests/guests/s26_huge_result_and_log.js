export default async function () {
  for (let i = 0; i < 100; i++) console.log("x".repeat(1e6));
  for (let i = 0; i < 10000; i++) console.log("line", i, { a: [1, 2, { b: "c" }] });
  return "x".repeat(11 * 1024 * 1024);
}
