// What the other scripts of the glue share: reading values a module made
// without running its code where that can be avoided, lists that no prototype
// can reach into, and text about any value that is bounded and never throws.
// Primordials only: nothing here looks a method up on an object of the module.
(function () {
const { core, primordials } = __bootstrap;
const {
  ArrayIsArray,
  DatePrototypeToISOString,
  JSONStringify,
  MapPrototypeGetSize,
  NumberPrototypeToString,
  ObjectHasOwn,
  ObjectPrototype,
  ReflectGetOwnPropertyDescriptor,
  ReflectGetPrototypeOf,
  ReflectOwnKeys,
  SafeMapIterator,
  SafeSetIterator,
  SetPrototypeGetSize,
  StringPrototypeCharCodeAt,
  StringPrototypeSlice,
  SymbolPrototypeToString,
  TypeError,
  TypedArrayPrototypeGetLength,
  TypedArrayPrototypeGetSymbolToStringTag,
} = primordials;

// Most characters of one rendered value, of a message and of a stack.
const SHOWN = 16384;
const MESSAGE = 4096;
const STACK = 8192;

function list() {
  return { __proto__: null, length: 0 };
}

function push(to, value) {
  to[to.length++] = value;
}

// An own data property, or undefined. A getter is refused rather than read
// twice with two answers.
function ownData(object, key, what) {
  const found = ReflectGetOwnPropertyDescriptor(object, key);
  if (found === undefined) return undefined;
  if (!ObjectHasOwn(found, "value")) {
    throw new TypeError(`${what}.${key} must be a plain value, not a getter`);
  }
  return found.value;
}

// Refuses a proxy: what it answers may change from one look to the next.
function plainObject(value, what) {
  if (value === null || typeof value !== "object" || core.isProxy(value)) {
    throw new TypeError(`${what} must be a plain object`);
  }
  return value;
}

function isPlain(value) {
  if (value === null || typeof value !== "object" || core.isProxy(value)) return false;
  if (ArrayIsArray(value)) return true;
  const parent = ReflectGetPrototypeOf(value);
  return parent === null || parent === ObjectPrototype;
}

// Own enumerable string keys and data values, as a list of pairs.
function ownEntries(object, what) {
  const keys = ReflectOwnKeys(plainObject(object, what));
  const entries = list();
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i];
    const found = ReflectGetOwnPropertyDescriptor(object, key);
    if (found === undefined || !found.enumerable) continue;
    if (typeof key !== "string") throw new TypeError(`${what} has a key that is a symbol`);
    if (!ObjectHasOwn(found, "value")) {
      throw new TypeError(`${what}.${key} must be a plain value, not a getter`);
    }
    push(entries, [key, found.value]);
  }
  return entries;
}

function primitiveText(value) {
  switch (typeof value) {
    case "string":
      return value;
    case "symbol":
      return SymbolPrototypeToString(value);
    case "number":
      return NumberPrototypeToString(value);
    default:
      return `${value}`;
  }
}

function isPrimitive(value) {
  return value === null || (typeof value !== "object" && typeof value !== "function");
}

function render(value, depth, state) {
  if (state.left <= 0) return "";
  if (typeof value === "string") {
    const text = JSONStringify(StringPrototypeSlice(value, 0, state.left));
    state.left -= text.length;
    return text;
  }
  if (isPrimitive(value)) {
    const text = typeof value === "bigint" ? `${value}n` : primitiveText(value);
    state.left -= text.length;
    return text;
  }
  state.left -= 8;
  if (core.isProxy(value)) return "[Proxy]";
  if (typeof value === "function") return "[Function]";
  if (core.isNativeError(value)) return describe(value).stack || describe(value).message;
  if (core.isDate(value)) {
    try {
      return DatePrototypeToISOString(value);
    } catch {
      return "Invalid Date";
    }
  }
  if (core.isTypedArray(value)) {
    return `${TypedArrayPrototypeGetSymbolToStringTag(value)}(${
      TypedArrayPrototypeGetLength(value)
    })`;
  }
  if (core.isPromise(value)) return "[Promise]";
  if (depth > 4) return ArrayIsArray(value) ? "[Array]" : "[Object]";
  let text = "";
  let shown = 0;
  const add = (piece) => {
    text += shown++ === 0 ? ` ${piece}` : `, ${piece}`;
  };
  if (core.isMap(value)) {
    for (const entry of new SafeMapIterator(value)) {
      if (state.left <= 0 || shown >= 100) break;
      add(`${render(entry[0], depth + 1, state)} => ${render(entry[1], depth + 1, state)}`);
    }
    return `Map(${MapPrototypeGetSize(value)}) {${text} }`;
  }
  if (core.isSet(value)) {
    for (const entry of new SafeSetIterator(value)) {
      if (state.left <= 0 || shown >= 100) break;
      add(render(entry, depth + 1, state));
    }
    return `Set(${SetPrototypeGetSize(value)}) {${text} }`;
  }
  const array = ArrayIsArray(value);
  const keys = array ? value : ReflectOwnKeys(value);
  const most = keys.length < 100 ? keys.length : 100;
  for (let i = 0; i < most && state.left > 0; i++) {
    const key = array ? i : keys[i];
    const found = ReflectGetOwnPropertyDescriptor(value, key);
    if (found === undefined || (!array && !found.enumerable)) continue;
    const shownValue = ObjectHasOwn(found, "value")
      ? render(found.value, depth + 1, state)
      : "[Getter]";
    add(array ? shownValue : `${primitiveText(key)}: ${shownValue}`);
  }
  if (keys.length > most) add("...");
  return array ? `[${text} ]` : `{${text} }`;
}

// Any value as text for a console line.
function show(value) {
  try {
    if (typeof value === "string") return value;
    return StringPrototypeSlice(render(value, 0, { __proto__: null, left: SHOWN }), 0, SHOWN);
  } catch {
    return "[a value that cannot be shown]";
  }
}

function stringOr(value, fallback) {
  return typeof value === "string" ? value : fallback;
}

// What was thrown, as bounded text. Reads `name`, `message` and `stack`, which
// may run code of the module: it can throw (fixed text) or loop (the limits of
// the run end it), nothing else.
function describe(error) {
  const fixed = { __proto__: null, message: "threw a value that cannot be shown", stack: "" };
  try {
    if (isPrimitive(error)) {
      fixed.message = StringPrototypeSlice(`threw ${show(error)}`, 0, MESSAGE);
      return fixed;
    }
    if (core.isProxy(error)) return fixed;
    if (!core.isNativeError(error)) {
      const name = stringOr(error.name, "");
      const message = stringOr(error.message, "");
      fixed.message = StringPrototypeSlice(
        name === "" && message === "" ? `threw ${show(error)}` : `${name || "Error"}: ${message}`,
        0,
        MESSAGE,
      );
      return fixed;
    }
    const name = stringOr(error.name, "Error");
    const message = stringOr(error.message, "");
    fixed.message = StringPrototypeSlice(message === "" ? name : `${name}: ${message}`, 0, MESSAGE);
    fixed.stack = StringPrototypeSlice(stringOr(error.stack, ""), 0, STACK);
  } catch {
    // The fixed text stands.
  }
  return fixed;
}

// A lower bound of a value's length as JSON, by what is near its top: making a
// text far over the cap would cost the memory that the cap is there to save.
// Runs no code of the module; whatever it cannot see counts nothing.
function textAtLeast(value, most) {
  let found = 0;
  const queue = list();
  push(queue, value);
  for (let at = 0; at < queue.length && found <= most; at++) {
    const one = queue[at];
    if (typeof one === "string") found += one.length;
    if (isPrimitive(one) || typeof one === "function" || !isTextPlain(one)) continue;
    if (core.isTypedArray(one)) {
      // `"0":1,` each.
      found += 6 * TypedArrayPrototypeGetLength(one);
      continue;
    }
    const array = ArrayIsArray(one);
    if (array && (found += one.length) > most) break;
    // The keys of a string object are as many as its characters.
    if (!array && ObjectHasOwn(one, "length")) continue;
    const keys = array ? one : ReflectOwnKeys(one);
    for (let i = 0; i < keys.length && i < LOOKED_AT && queue.length < LOOKED_AT; i++) {
      const key = array ? i : keys[i];
      const entry = ReflectGetOwnPropertyDescriptor(one, key);
      if (typeof key === "symbol" || entry === undefined || !entry.enumerable) continue;
      if (ObjectHasOwn(entry, "value")) push(queue, entry.value);
    }
  }
  return found;
}
// Values looked at; enough for the texts of a page of results.
const LOOKED_AT = 256;

// True when no proxy and no `toJSON` stands between an object and its text.
function isTextPlain(object) {
  for (let one = object; one !== null; one = ReflectGetPrototypeOf(one)) {
    if (core.isProxy(one) || ObjectHasOwn(one, "toJSON")) return false;
  }
  return true;
}

function asciiLower(text) {
  let lower = "";
  for (let i = 0; i < text.length; i++) {
    const code = StringPrototypeCharCodeAt(text, i);
    lower += code >= 65 && code <= 90 ? LOWER[code - 65] : text[i];
  }
  return lower;
}
const LOWER = "abcdefghijklmnopqrstuvwxyz";
const UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

function asciiUpper(text) {
  let upper = "";
  for (let i = 0; i < text.length; i++) {
    const code = StringPrototypeCharCodeAt(text, i);
    upper += code >= 97 && code <= 122 ? UPPER[code - 97] : text[i];
  }
  return upper;
}

return {
  __proto__: null,
  asciiLower,
  asciiUpper,
  describe,
  isPlain,
  isPrimitive,
  list,
  ownData,
  ownEntries,
  plainObject,
  primitiveText,
  push,
  show,
  textAtLeast,
};
})();
