export default async function () {
  return Array.prototype.includes.call({ length: 2 ** 53 - 1 }, 1);
}
