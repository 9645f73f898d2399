export default async function () {
  while (true) {}
}
