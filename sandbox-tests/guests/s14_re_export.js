export * from "ext:core/mod.js";
export default async function () {
  return ["loaded"];
}
