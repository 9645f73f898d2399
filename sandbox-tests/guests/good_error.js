async function inner() {
  throw new RangeError("too far");
}
export default async function () {
  await inner();
}
