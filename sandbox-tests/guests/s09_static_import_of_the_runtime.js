import { core } from "ext:core/mod.js";
export default async function () {
  return [typeof core];
}
