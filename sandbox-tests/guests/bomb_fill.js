export default async function () {
  const held = [];
  for (;;) held.push(new Array(3e7).fill({}));
}
