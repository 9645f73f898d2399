import x from "./p.json" with { type: "json" };
export default async function () {
  return [x];
}
