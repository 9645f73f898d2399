export default async function () {
  const held = [];
  for (;;) held.push(new Uint8Array(16 * 1024 * 1024).fill(1));
}
