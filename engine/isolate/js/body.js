// Bodies of requests and responses: what a module may pass as one, always
// copied at once, and how one is read. A body is bytes, a stream of the Streams
// standard, or a reply that still comes in over the run's socket. FormData and
// its multipart form live here too.
(function () {
const { core, primordials } = __bootstrap;
const {
  ArrayBufferIsView,
  ArrayBufferPrototypeGetByteLength,
  DataViewPrototypeGetBuffer,
  DataViewPrototypeGetByteLength,
  DataViewPrototypeGetByteOffset,
  JSONParse,
  JSONStringify,
  ObjectPrototypeIsPrototypeOf,
  PromisePrototypeThen,
  ReflectApply,
  String,
  StringPrototypeCharCodeAt,
  StringPrototypeIndexOf,
  StringPrototypeSlice,
  StringPrototypeToWellFormed,
  SymbolIterator,
  SymbolToStringTag,
  TypedArrayPrototypeGetBuffer,
  TypedArrayPrototypeGetByteLength,
  TypedArrayPrototypeGetByteOffset,
  TypedArrayPrototypeGetSymbolToStringTag,
  TypedArrayPrototypeSet,
  TypedArrayPrototypeSlice,
  TypedArrayPrototypeSubarray,
  TypeError,
  Uint8Array,
} = primordials;
const {
  op_cambium_cancel,
  op_cambium_chunk,
  op_cambium_random_hex,
  op_cambium_read_all,
} = core.ops;
const { asciiLower, isPlain, list, push } = core.loadExtScript("ext:cambium/base.js");
const { needs } = core.loadExtScript("ext:cambium/headers.js");
const { URLSearchParamsPrototype, parseUrlEncoded } = core.loadExtScript(
  "ext:deno_web/00_url.js",
);
const { Blob, BlobPrototype, File, FilePrototype } = core.loadExtScript("ext:deno_web/09_file.js");
const streams = core.loadExtScript("ext:deno_web/06_streams.js");
const { ReadableStream, ReadableStreamPrototype } = streams;
const searchParamsText = URLSearchParamsPrototype.toString;
const blobBuffer = BlobPrototype.arrayBuffer;
const getter = (prototype, name) =>
  primordials.ReflectGetOwnPropertyDescriptor(prototype, name).get;
const blobType = getter(BlobPrototype, "type");
const fileName = getter(FilePrototype, "name");

const EMPTY = new Uint8Array(0);

// A private copy of the bytes as they are now.
function copyBytes(value) {
  if (core.isAnyArrayBuffer(value)) {
    return TypedArrayPrototypeSlice(new Uint8Array(value, 0, ArrayBufferPrototypeGetByteLength(value)));
  }
  if (TypedArrayPrototypeGetSymbolToStringTag(value) !== undefined) {
    return TypedArrayPrototypeSlice(
      new Uint8Array(
        TypedArrayPrototypeGetBuffer(value),
        TypedArrayPrototypeGetByteOffset(value),
        TypedArrayPrototypeGetByteLength(value),
      ),
    );
  }
  return TypedArrayPrototypeSlice(
    new Uint8Array(
      DataViewPrototypeGetBuffer(value),
      DataViewPrototypeGetByteOffset(value),
      DataViewPrototypeGetByteLength(value),
    ),
  );
}

function isBytes(value) {
  return value !== null && typeof value === "object" &&
    (core.isAnyArrayBuffer(value) || ArrayBufferIsView(value));
}

// A body's inner state: `bytes`, `stream` or `reply` (a stream id) holds it.
function inner(bytes, stream, reply) {
  return { __proto__: null, bytes, stream, reply, used: false };
}

// What a module passed as a body: {inner, type}. `json` lets plain objects
// through as JSON.
function takeBody(value, json) {
  const body = (bytes, type) => ({ __proto__: null, inner: inner(bytes, null, 0), type });
  if (value === undefined || value === null) return { __proto__: null, inner: null, type: null };
  if (typeof value === "string") return body(core.encode(value), "text/plain;charset=UTF-8");
  if (isBytes(value)) return body(copyBytes(value), null);
  if (typeof value === "object" && !core.isProxy(value)) {
    if (ObjectPrototypeIsPrototypeOf(URLSearchParamsPrototype, value)) {
      const text = ReflectApply(searchParamsText, value, []);
      return body(core.encode(text), "application/x-www-form-urlencoded;charset=UTF-8");
    }
    if (ObjectPrototypeIsPrototypeOf(BlobPrototype, value)) {
      const type = ReflectApply(blobType, value, []);
      const bytes = PromisePrototypeThen(
        ReflectApply(blobBuffer, value, []),
        (buffer) => new Uint8Array(buffer),
      );
      return body(bytes, type === "" ? null : type);
    }
    if (isFormData(value)) {
      const boundary = `----cambium${op_cambium_random_hex()}`;
      return body(multipart(value, boundary), `multipart/form-data; boundary=${boundary}`);
    }
    if (ObjectPrototypeIsPrototypeOf(ReadableStreamPrototype, value)) {
      if (json) throw new TypeError("a stream cannot be a request body; pass a string or bytes");
      if (streams.isReadableStreamLocked(value) || streams.isReadableStreamDisturbed(value)) {
        throw new TypeError("the stream is locked or was already read");
      }
      return { __proto__: null, inner: inner(null, value, 0), type: null };
    }
    if (json && isPlain(value)) {
      return body(core.encode(JSONStringify(value)), "application/json");
    }
  }
  if (json) {
    throw new TypeError(
      "body must be a string, bytes, URLSearchParams, FormData, Blob or a plain object",
    );
  }
  return body(core.encode(String(value)), "text/plain;charset=UTF-8");
}

async function readStream(stream) {
  const reader = streams.acquireReadableStreamDefaultReader(stream);
  const chunks = list();
  let size = 0;
  while (true) {
    const step = await streamRead(reader);
    if (step.done) break;
    if (!isBytes(step.value)) throw new TypeError("a body's stream must give bytes");
    const bytes = copyBytes(step.value);
    size += TypedArrayPrototypeGetByteLength(bytes);
    push(chunks, bytes);
  }
  return join(chunks, size);
}
const readerRead = streams.ReadableStreamDefaultReader.prototype.read;
const streamRead = (reader) => ReflectApply(readerRead, reader, []);

function join(chunks, size) {
  const whole = new Uint8Array(size);
  let at = 0;
  for (let i = 0; i < chunks.length; i++) {
    TypedArrayPrototypeSet(whole, chunks[i], at);
    at += TypedArrayPrototypeGetByteLength(chunks[i]);
  }
  return whole;
}

// An error of the run's socket as the module sees it: `code` says which rule.
function refused(fault) {
  const error = new TypeError(fault.message);
  primordials.ObjectDefineProperty(error, "code", {
    __proto__: null,
    value: fault.code,
    writable: true,
    enumerable: true,
    configurable: true,
  });
  return error;
}

// Marks a body as read and gives its bytes. Each body can be read once.
function consume(body) {
  if (body === null) return EMPTY;
  if (body.used || (body.stream !== null && streams.isReadableStreamDisturbed(body.stream))) {
    throw new TypeError("the body was already read");
  }
  if (body.stream !== null && streams.isReadableStreamLocked(body.stream)) {
    throw new TypeError("the body's stream is locked");
  }
  body.used = true;
  if (body.stream !== null) return readStream(body.stream);
  if (body.reply !== 0) return readReply(body.reply);
  return body.bytes;
}

async function readReply(reply) {
  const answer = await op_cambium_read_all(reply);
  if (answer.fault) throw refused(answer.fault);
  return answer.bytes;
}

// The body as a stream; made when first asked for.
function bodyStream(body) {
  if (body === null) return null;
  if (body.stream !== null) return body.stream;
  const reply = body.reply;
  const bytes = body.bytes;
  const used = body.used;
  body.stream = new ReadableStream({
    __proto__: null,
    type: "bytes",
    async pull(controller) {
      if (used) return controller.close();
      if (reply === 0) {
        const whole = await bytes;
        if (TypedArrayPrototypeGetByteLength(whole) > 0) controller.enqueue(TypedArrayPrototypeSlice(whole));
        return controller.close();
      }
      const answer = await op_cambium_chunk(reply);
      if (answer.fault) return controller.error(refused(answer.fault));
      if (answer.bytes === null) return controller.close();
      controller.enqueue(answer.bytes);
    },
    cancel() {
      if (reply !== 0) op_cambium_cancel(reply);
    },
  });
  return body.stream;
}

function bodyUsed(body) {
  if (body === null) return false;
  return body.used || (body.stream !== null && streams.isReadableStreamDisturbed(body.stream));
}

// Two bodies with the same bytes in place of one, for `clone`.
function tee(body) {
  if (body === null) return null;
  if (bodyUsed(body)) throw new TypeError("the body was already read");
  if (body.stream === null && body.reply === 0) return inner(body.bytes, null, 0);
  const pair = streams.readableStreamTee(bodyStream(body), true);
  body.stream = pair[0];
  body.reply = 0;
  return inner(null, pair[1], 0);
}

// The reading methods of Request and Response. `bodyOf` and `typeOf` give the
// inner state of a branded object.
function mixBody(prototype, bodyOf, typeOf) {
  const methods = {
    __proto__: null,
    async text() {
      return textOf(await consume(bodyOf(this)));
    },
    async json() {
      return JSONParse(textOf(await consume(bodyOf(this))));
    },
    async arrayBuffer() {
      return TypedArrayPrototypeGetBuffer(TypedArrayPrototypeSlice(await consume(bodyOf(this))));
    },
    async bytes() {
      return TypedArrayPrototypeSlice(await consume(bodyOf(this)));
    },
    async blob() {
      const type = typeOf(this);
      return new Blob([await consume(bodyOf(this))], { __proto__: null, type });
    },
    async formData() {
      const type = typeOf(this);
      const bytes = await consume(bodyOf(this));
      return parseForm(bytes, type);
    },
  };
  for (const name of ["text", "json", "arrayBuffer", "bytes", "blob", "formData"]) {
    primordials.ObjectDefineProperty(prototype, name, {
      __proto__: null,
      value: methods[name],
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }
  const accessor = (name, get) =>
    primordials.ObjectDefineProperty(prototype, name, {
      __proto__: null,
      get,
      set: undefined,
      enumerable: true,
      configurable: true,
    });
  accessor("body", function body() {
    return bodyStream(bodyOf(this));
  });
  accessor("bodyUsed", function bodyUsedGetter() {
    return bodyUsed(bodyOf(this));
  });
}

function textOf(bytes) {
  const text = core.decode(bytes);
  return StringPrototypeCharCodeAt(text, 0) === 0xfeff ? StringPrototypeSlice(text, 1) : text;
}

let formEntries;
let isFormData;

// FormData: a list of names with strings or files.
class FormData {
  #entries = list();

  constructor(form = undefined) {
    if (form !== undefined) throw new TypeError("there is no form to read from here");
  }

  #entry(given, name, value, filename) {
    needs(given, 2, "a form's entry");
    name = text(name);
    if (given > 2 && !ObjectPrototypeIsPrototypeOf(BlobPrototype, value)) {
      throw new TypeError("only a blob has a file name");
    }
    if (ObjectPrototypeIsPrototypeOf(BlobPrototype, value)) {
      const isFile = ObjectPrototypeIsPrototypeOf(FilePrototype, value);
      const as = filename === undefined
        ? (isFile ? ReflectApply(fileName, value, []) : "blob")
        : text(filename);
      const type = ReflectApply(blobType, value, []);
      const file = isFile && filename === undefined
        ? value
        : new File([value], as, { __proto__: null, type });
      return [name, file];
    }
    return [name, text(value)];
  }

  append(name, value, filename = undefined) {
    push(this.#entries, this.#entry(arguments.length, name, value, filename));
  }

  // Takes the place of the first entry of its name.
  set(name, value, filename = undefined) {
    const entry = this.#entry(arguments.length, name, value, filename);
    const kept = list();
    let placed = false;
    for (let i = 0; i < this.#entries.length; i++) {
      if (this.#entries[i][0] !== entry[0]) push(kept, this.#entries[i]);
      else if (!placed) {
        push(kept, entry);
        placed = true;
      }
    }
    if (!placed) push(kept, entry);
    this.#entries = kept;
  }

  delete(name) {
    needs(arguments.length, 1, "delete");
    name = text(name);
    const kept = list();
    for (let i = 0; i < this.#entries.length; i++) {
      if (this.#entries[i][0] !== name) push(kept, this.#entries[i]);
    }
    this.#entries = kept;
  }

  get(name) {
    needs(arguments.length, 1, "get");
    name = text(name);
    for (let i = 0; i < this.#entries.length; i++) {
      if (this.#entries[i][0] === name) return this.#entries[i][1];
    }
    return null;
  }

  getAll(name) {
    needs(arguments.length, 1, "getAll");
    name = text(name);
    const found = [];
    let count = 0;
    for (let i = 0; i < this.#entries.length; i++) {
      if (this.#entries[i][0] === name) {
        primordials.ObjectDefineProperty(found, count++, {
          __proto__: null,
          value: this.#entries[i][1],
          writable: true,
          enumerable: true,
          configurable: true,
        });
      }
    }
    return found;
  }

  has(name) {
    needs(arguments.length, 1, "has");
    name = text(name);
    for (let i = 0; i < this.#entries.length; i++) {
      if (this.#entries[i][0] === name) return true;
    }
    return false;
  }

  forEach(callback, thisArg = undefined) {
    if (typeof callback !== "function") throw new TypeError("forEach takes a function");
    for (let i = 0; i < this.#entries.length; i++) {
      ReflectApply(callback, thisArg, [this.#entries[i][1], this.#entries[i][0], this]);
    }
  }

  *#iterate(kind) {
    for (let i = 0; i < this.#entries.length; i++) {
      const entry = this.#entries[i];
      yield kind === 2 ? [entry[0], entry[1]] : entry[kind];
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
    return "FormData";
  }

  static {
    formEntries = (form) => form.#entries;
    isFormData = (value) => value !== null && typeof value === "object" && #entries in value;
  }
}

primordials.ObjectDefineProperty(FormData.prototype, SymbolIterator, {
  __proto__: null,
  value: FormData.prototype.entries,
  writable: true,
  enumerable: false,
  configurable: true,
});

// Text without lone surrogates, as forms and URLs carry it.
function text(value) {
  return StringPrototypeToWellFormed(String(value));
}

// Every line end as CR LF, as the standard encodes names and values.
function withLineEnds(given) {
  let whole = "";
  for (let i = 0; i < given.length; i++) {
    const code = StringPrototypeCharCodeAt(given, i);
    if (code === 13 && StringPrototypeCharCodeAt(given, i + 1) === 10) i++;
    whole += code === 10 || code === 13 ? "\r\n" : given[i];
  }
  return whole;
}

// A name or filename inside a multipart header.
function quoted(text) {
  let safe = "";
  for (let i = 0; i < text.length; i++) {
    const code = StringPrototypeCharCodeAt(text, i);
    safe += code === 10 ? "%0A" : code === 13 ? "%0D" : code === 34 ? "%22" : text[i];
  }
  return safe;
}

async function multipart(form, boundary) {
  const entries = formEntries(form);
  const pieces = list();
  for (let i = 0; i < entries.length; i++) {
    push(pieces, [entries[i][0], entries[i][1]]);
  }
  const chunks = list();
  let size = 0;
  const add = (bytes) => {
    size += TypedArrayPrototypeGetByteLength(bytes);
    push(chunks, bytes);
  };
  for (let i = 0; i < pieces.length; i++) {
    const name = quoted(withLineEnds(pieces[i][0]));
    const value = pieces[i][1];
    if (typeof value === "string") {
      add(core.encode(
        `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${withLineEnds(value)}\r\n`,
      ));
      continue;
    }
    const type = ReflectApply(blobType, value, []) || "application/octet-stream";
    const file = quoted(ReflectApply(fileName, value, []));
    add(core.encode(
      `--${boundary}\r\nContent-Disposition: form-data; name="${name}"; filename="${file}"\r\n` +
        `Content-Type: ${type}\r\n\r\n`,
    ));
    add(new Uint8Array(await ReflectApply(blobBuffer, value, [])));
    add(core.encode("\r\n"));
  }
  add(core.encode(`--${boundary}--\r\n`));
  return join(chunks, size);
}

function parameter(header, name) {
  const at = StringPrototypeIndexOf(asciiLower(header), `${name}=`);
  if (at < 0) return null;
  let text = StringPrototypeSlice(header, at + name.length + 1);
  if (text[0] === '"') {
    const end = StringPrototypeIndexOf(text, '"', 1);
    return end < 0 ? null : StringPrototypeSlice(text, 1, end);
  }
  const end = StringPrototypeIndexOf(text, ";");
  if (end >= 0) text = StringPrototypeSlice(text, 0, end);
  return text;
}

function findBytes(bytes, wanted, from) {
  const size = TypedArrayPrototypeGetByteLength(bytes);
  const length = TypedArrayPrototypeGetByteLength(wanted);
  for (let i = from; i + length <= size; i++) {
    let same = 0;
    while (same < length && bytes[i + same] === wanted[same]) same++;
    if (same === length) return i;
  }
  return -1;
}

// The content type of one part.
function partType(head) {
  const mark = "content-type:";
  const at = StringPrototypeIndexOf(asciiLower(head), mark);
  if (at < 0) return "text/plain";
  const end = StringPrototypeIndexOf(head, "\r\n", at);
  const type = StringPrototypeSlice(head, at + mark.length, end < 0 ? head.length : end);
  return type[0] === " " ? StringPrototypeSlice(type, 1) : type;
}

function parseForm(bytes, type) {
  const form = new FormData();
  const lower = asciiLower(type);
  if (StringPrototypeIndexOf(lower, "application/x-www-form-urlencoded") === 0) {
    const pairs = parseUrlEncoded(bytes);
    for (let i = 0; i < pairs.length; i++) {
      push(formEntries(form), [pairs[i][0], pairs[i][1]]);
    }
    return form;
  }
  const boundary = StringPrototypeIndexOf(lower, "multipart/form-data") === 0
    ? parameter(type, "boundary")
    : null;
  if (boundary === null) throw new TypeError("the body is not a form");
  const mark = core.encode(`--${boundary}`);
  const gap = core.encode("\r\n\r\n");
  const markSize = TypedArrayPrototypeGetByteLength(mark);
  let at = findBytes(bytes, mark, 0);
  while (at >= 0) {
    const start = at + markSize;
    if (bytes[start] === 45 && bytes[start + 1] === 45) return form;
    const split = findBytes(bytes, gap, start);
    const next = split < 0 ? -1 : findBytes(bytes, mark, split);
    if (next < 0) break;
    const head = core.decode(TypedArrayPrototypeSubarray(bytes, start + 2, split));
    const content = TypedArrayPrototypeSlice(bytes, split + 4, next - 2);
    const name = parameter(head, "; name") ?? parameter(head, " name");
    const file = parameter(head, "filename");
    if (name === null) break;
    push(formEntries(form), [
      name,
      file === null
        ? core.decode(content)
        : new File([content], file, { __proto__: null, type: partType(head) }),
    ]);
    at = next;
  }
  throw new TypeError("the form of the body is broken");
}

return {
  __proto__: null,
  bodyUsed,
  consume,
  FormData,
  inner,
  isBytes,
  mixBody,
  refused,
  takeBody,
  tee,
};
})();
