// Holds so many mebibytes of V8's heap.
export default async function (ctx, input) {
  const held = [];
  for (let i = 0; i < input.mib * 8; i++) held.push(new Array(16 * 1024).fill(i));
  return held.length / 8;
}
