export default async function () {
  const found = [];
  if (globalThis.left) found.push("global");
  if (Array.prototype.left) found.push("prototype");
  if (Headers.prototype.left) found.push("class");
  globalThis.left = 1;
  Array.prototype.left = 1;
  Headers.prototype.left = 1;
  setInterval(() => {}, 1);
  return found;
}
