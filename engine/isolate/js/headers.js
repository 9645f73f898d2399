// The Headers class of the Fetch standard over a list that only this file can
// reach. What a header may be called or carry is judged again in the proxy.
(function () {
const { core, primordials } = __bootstrap;
const {
  ArrayIsArray,
  ReflectApply,
  String,
  StringPrototypeCharCodeAt,
  StringPrototypeSlice,
  SymbolIterator,
  SymbolToStringTag,
  TypeError,
} = primordials;
const { asciiLower, list, ownData, ownEntries, push } = core.loadExtScript(
  "ext:cambium/base.js",
);

function isToken(name) {
  if (name.length === 0) return false;
  for (let i = 0; i < name.length; i++) {
    const code = StringPrototypeCharCodeAt(name, i);
    const letter = (code >= 65 && code <= 90) || (code >= 97 && code <= 122);
    const digit = code >= 48 && code <= 57;
    // ! # $ % & ' * + - . ^ _ ` | ~
    const mark = code === 33 || (code >= 35 && code <= 39) || code === 42 || code === 43 ||
      code === 45 || code === 46 || code === 94 || code === 95 || code === 96 ||
      code === 124 || code === 126;
    if (!letter && !digit && !mark) return false;
  }
  return true;
}

function headerName(value) {
  const name = typeof value === "string" ? value : String(value);
  if (!isToken(name)) throw new TypeError(`\`${StringPrototypeSlice(name, 0, 100)}\` is not a header name`);
  return asciiLower(name);
}

function isSpace(code) {
  return code === 9 || code === 10 || code === 13 || code === 32;
}

function headerValue(value, name) {
  const text = typeof value === "string" ? value : String(value);
  let start = 0;
  let end = text.length;
  while (start < end && isSpace(StringPrototypeCharCodeAt(text, start))) start++;
  while (end > start && isSpace(StringPrototypeCharCodeAt(text, end - 1))) end--;
  for (let i = start; i < end; i++) {
    const code = StringPrototypeCharCodeAt(text, i);
    if (code > 255 || code === 0 || code === 10 || code === 13) {
      throw new TypeError(`the value of header ${name} has a character no header may have`);
    }
  }
  return StringPrototypeSlice(text, start, end);
}

function needs(given, count, what) {
  if (given < count) throw new TypeError(`${what} needs ${count} argument${count === 1 ? "" : "s"}`);
}

let read;
let isHeaders;

class Headers {
  #pairs = list();

  constructor(init = undefined) {
    if (init === undefined) return;
    if (init === null || typeof init !== "object") throw new TypeError("headers must be an object or a list of pairs");
    if (isHeaders(init)) {
      const from = init.#pairs;
      for (let i = 0; i < from.length; i++) push(this.#pairs, [from[i][0], from[i][1]]);
    } else if (ArrayIsArray(init)) {
      for (let i = 0; i < init.length; i++) {
        const pair = ownData(init, i, "headers");
        if (!ArrayIsArray(pair) || pair.length !== 2) {
          throw new TypeError("each header of a list must be a pair");
        }
        this.#add(ownData(pair, 0, "header"), ownData(pair, 1, "header"));
      }
    } else if (!core.isProxy(init) && typeof init[SymbolIterator] === "function") {
      // A map, a generator: each pair is read once.
      const iterator = ReflectApply(init[SymbolIterator], init, []);
      const next = iterator.next;
      while (true) {
        const step = ReflectApply(next, iterator, []);
        if (step.done) break;
        const pair = step.value;
        if (!ArrayIsArray(pair) || pair.length !== 2) {
          throw new TypeError("each header of a list must be a pair");
        }
        this.#add(ownData(pair, 0, "header"), ownData(pair, 1, "header"));
      }
    } else {
      const entries = ownEntries(init, "headers");
      for (let i = 0; i < entries.length; i++) this.#add(entries[i][0], entries[i][1]);
    }
  }

  #add(name, value) {
    name = headerName(name);
    push(this.#pairs, [name, headerValue(value, name)]);
  }

  append(name, value) {
    needs(arguments.length, 2, "append");
    this.#add(name, value);
  }

  delete(name) {
    needs(arguments.length, 1, "delete");
    name = headerName(name);
    const kept = list();
    for (let i = 0; i < this.#pairs.length; i++) {
      if (this.#pairs[i][0] !== name) push(kept, this.#pairs[i]);
    }
    this.#pairs = kept;
  }

  get(name) {
    needs(arguments.length, 1, "get");
    name = headerName(name);
    let found = null;
    for (let i = 0; i < this.#pairs.length; i++) {
      const pair = this.#pairs[i];
      if (pair[0] === name) found = found === null ? pair[1] : `${found}, ${pair[1]}`;
    }
    return found;
  }

  getSetCookie() {
    const cookies = [];
    let count = 0;
    for (let i = 0; i < this.#pairs.length; i++) {
      if (this.#pairs[i][0] === "set-cookie") define(cookies, count++, this.#pairs[i][1]);
    }
    return cookies;
  }

  has(name) {
    needs(arguments.length, 1, "has");
    name = headerName(name);
    for (let i = 0; i < this.#pairs.length; i++) {
      if (this.#pairs[i][0] === name) return true;
    }
    return false;
  }

  set(name, value) {
    needs(arguments.length, 2, "set");
    name = headerName(name);
    value = headerValue(value, name);
    const kept = list();
    let placed = false;
    for (let i = 0; i < this.#pairs.length; i++) {
      if (this.#pairs[i][0] !== name) push(kept, this.#pairs[i]);
      else if (!placed) {
        push(kept, [name, value]);
        placed = true;
      }
    }
    if (!placed) push(kept, [name, value]);
    this.#pairs = kept;
  }

  forEach(callback, thisArg = undefined) {
    if (typeof callback !== "function") throw new TypeError("forEach takes a function");
    const sorted = this.#sorted();
    for (let i = 0; i < sorted.length; i++) {
      ReflectApply(callback, thisArg, [sorted[i][1], sorted[i][0], this]);
    }
  }

  // Names sorted, values of one name joined, as the standard iterates.
  #sorted() {
    const sorted = list();
    for (let i = 0; i < this.#pairs.length; i++) {
      const name = this.#pairs[i][0];
      const value = this.#pairs[i][1];
      let at = sorted.length;
      while (at > 0 && sorted[at - 1][0] > name) at--;
      if (at > 0 && sorted[at - 1][0] === name && name !== "set-cookie") {
        sorted[at - 1] = [name, `${sorted[at - 1][1]}, ${value}`];
        continue;
      }
      for (let j = sorted.length; j > at; j--) sorted[j] = sorted[j - 1];
      sorted[at] = [name, value];
      sorted.length++;
    }
    return sorted;
  }

  // Sorted anew at each step: what changes meanwhile shows, as the standard has it.
  *#iterate(kind) {
    for (let i = 0; ; i++) {
      const sorted = this.#sorted();
      if (i >= sorted.length) return;
      yield kind === 2 ? [sorted[i][0], sorted[i][1]] : sorted[i][kind];
    }
  }

  entries() {
    return this.#iterate(2);
  }

  keys() {
    return this.#iterate(0);
  }

  values() {
    return this.#iterate(1);
  }

  get [SymbolToStringTag]() {
    return "Headers";
  }

  static {
    read = (headers) => headers.#pairs;
    isHeaders = (value) => value !== null && typeof value === "object" && #pairs in value;
  }
}

// The standard's default iterator is `entries` itself.
primordials.ObjectDefineProperty(Headers.prototype, SymbolIterator, {
  __proto__: null,
  value: Headers.prototype.entries,
  writable: true,
  enumerable: false,
  configurable: true,
});

function define(array, index, value) {
  primordials.ObjectDefineProperty(array, index, {
    __proto__: null,
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}

// Headers from what a module passed, always a copy.
function toHeaders(init) {
  return new Headers(init);
}

return { __proto__: null, define, Headers, headerPairs: (headers) => read(headers), isHeaders: (value) => isHeaders(value), isToken, needs, toHeaders };
})();
