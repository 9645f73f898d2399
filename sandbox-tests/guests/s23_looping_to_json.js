export default async function () {
  return { toJSON() { for (;;); } };
}
