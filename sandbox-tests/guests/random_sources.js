export default async function () {
  return [Math.random(), crypto.randomUUID(), [...crypto.getRandomValues(new Uint8Array(8))]];
}
