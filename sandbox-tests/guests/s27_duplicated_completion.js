export default function () {
  return new Promise((resolve) => {
    resolve("first");
    resolve("second");
    setTimeout(() => { for (;;); }, 0);
  });
}
