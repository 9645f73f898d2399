export default async function () {
  const again = () => Promise.resolve().then(again);
  again();
  await new Promise(() => {});
}
