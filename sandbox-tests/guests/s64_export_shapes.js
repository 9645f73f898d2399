export function then(resolve) { resolve("the namespace was awaited"); }
export const run = 1;
export default async function () {
  return "called";
}
