import * as locks from "ext:deno_web/locks.js";
export default async function () {
  return [typeof locks];
}
