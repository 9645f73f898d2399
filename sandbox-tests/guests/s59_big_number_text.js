export default async function () {
  for (;;) (10n ** 400000n).toLocaleString();
}
