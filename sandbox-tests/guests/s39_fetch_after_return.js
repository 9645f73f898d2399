export default async function (ctx) {
  setTimeout(() => ctx.fetch("/late-timer"), 0);
  Promise.resolve().then(() => Promise.resolve()).then(() => setTimeout(() => ctx.fetch("/later"), 1));
  return "returned";
}
