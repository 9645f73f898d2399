// Put before each file of cases: a case is a name and a function that throws
// when something is not as the standard says.
const cases = [];
const test = (name, body) => cases.push([name, body]);
const show = (value) => {
  if (typeof value === "string") return JSON.stringify(value);
  try { return `${JSON.stringify(value)}` === "undefined" ? String(value) : JSON.stringify(value); } catch { return String(value); }
};
function is(got, want, what = "") {
  if (!Object.is(got, want)) throw new Error(`${what} is ${show(got)}, not ${show(want)}`);
}
function same(got, want, what = "") {
  const bytes = (value) => ArrayBuffer.isView(value) ? [...value] : value;
  const [a, b] = [JSON.stringify(bytes(got)), JSON.stringify(bytes(want))];
  if (a !== b) throw new Error(`${what} is ${a}, not ${b}`);
}
function throws(kind, body, what = "") {
  try { body(); } catch (error) { return matches(error, kind, what); }
  throw new Error(`${what} did not throw ${kind.name ?? kind}`);
}
async function rejects(kind, promise, what = "") {
  try { await (typeof promise === "function" ? promise() : promise); } catch (error) { return matches(error, kind, what); }
  throw new Error(`${what} did not reject with ${kind.name ?? kind}`);
}
// An error class, the name of a DOMException, or the very value.
function matches(error, kind, what) {
  if (typeof kind === "string") {
    if (!(error instanceof DOMException) || error.name !== kind) throw new Error(`${what} threw ${error}, not ${kind}`);
  } else if (typeof kind === "function") {
    if (!(error instanceof kind)) throw new Error(`${what} threw ${error}, not ${kind.name}`);
  } else if (error !== kind) throw new Error(`${what} threw ${error}`);
  return error;
}
const pause = (ms = 0) => new Promise((resolve) => setTimeout(resolve, ms));
export default async function () {
  const results = [];
  for (const [name, body] of cases) {
    try {
      await body();
      results.push([name, ""]);
    } catch (error) {
      results.push([name, String(error).slice(0, 300)]);
    }
  }
  return results;
}
