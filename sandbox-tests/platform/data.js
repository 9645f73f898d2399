// Named after html/infrastructure/structured-clone, FileAPI/*, xhr/formdata/*, WebCryptoAPI/*.
const there = (value) => structuredClone(value);
for (const [what, value] of [["undefined", undefined], ["null", null], ["true", true], ["text", "\u{1f600}\ud800"], ["0.2", 0.2], ["-0", -0], ["NaN", NaN], ["Infinity", Infinity], ["a big integer", -12345678901234567890n]]) {
  test(`structured-clone: ${what}`, () => is(there(value), value));
}
test("structured-clone: wrappers, dates, expressions", () => {
  is(there(new Number(5)).valueOf(), 5);
  is(there(new String("x")).valueOf(), "x");
  is(there(new Boolean(false)).valueOf(), false);
  is(there(new Date(1e12)).getTime(), 1e12);
  const r = there(/ab/gi);
  same([r.source, r.flags, r.lastIndex], ["ab", "gi", 0]);
});
test("structured-clone: maps and sets, keys and order", () => {
  const key = { a: 1 };
  const m = there(new Map([[key, "x"], ["b", key]]));
  const [[k]] = m;
  is(m.get("b"), k);
  same([...there(new Set([1, "2"]))], [1, "2"]);
});
test("structured-clone: arrays keep holes and more", () => {
  const a = [1, , 3];
  a.extra = "x";
  const b = there(a);
  same([b.length, 1 in b, b.extra], [3, false, "x"]);
});
test("structured-clone: cycles and identity", () => {
  const o = { list: [] };
  o.self = o;
  o.list.push(o);
  const c = there(o);
  is(c.self, c);
  is(c.list[0], c);
  is(c === o, false);
});
test("structured-clone: own enumerable text keys only", () => {
  const o = Object.create({ inherited: 1 }, { hidden: { value: 1 }, shown: { value: 2, enumerable: true } });
  o[Symbol("s")] = 3;
  same(there(o), { shown: 2 });
});
test("structured-clone: prototypes are not kept, getters are read", () => {
  class A { constructor() { this.a = 1; } get b() { return 2; } }
  const c = there(new A());
  is(Object.getPrototypeOf(c), Object.prototype);
  same(there({ get a() { return 5; } }), { a: 5 });
});
for (const kind of ["Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array", "Float32Array", "Float64Array", "BigInt64Array"]) {
  test(`structured-clone: ${kind}`, () => {
    const T = globalThis[kind];
    const a = new T(2);
    a[1] = kind.startsWith("Big") ? 7n : 7;
    const b = there(a);
    is(b instanceof T, true);
    is(b[1], a[1]);
    is(b.buffer === a.buffer, false);
  });
}
test("structured-clone: views of one buffer stay views of one", () => {
  const buffer = new ArrayBuffer(8);
  const [a, b] = there([new Uint8Array(buffer, 2), new DataView(buffer)]);
  is(a.buffer, b.buffer);
  is(a.byteOffset, 2);
});
for (const [what, make] of [["Error", () => new Error("m")], ["RangeError", () => new RangeError("m")], ["TypeError", () => new TypeError("m")]]) {
  test(`structured-clone: ${what}`, () => {
    const e = there(make());
    same([e.name, e.message, e instanceof Error], [what, "m", true]);
  });
}
test("structured-clone: a cause goes along", () => is(there(new Error("a", { cause: "b" })).cause, "b"));
for (const [what, make] of [["a function", () => () => {}], ["a symbol", () => Symbol("x")], ["a promise", () => Promise.resolve()], ["a weak map", () => new WeakMap()], ["a proxy", () => new Proxy({}, {})], ["a method in an object", () => ({ a() {} })], ["a response", () => new Response()], ["headers", () => new Headers()]]) {
  test(`structured-clone: ${what} throws`, () => throws("DataCloneError", () => there(make())));
}
test("structured-clone: a getter's error is the error", () => {
  const error = new Error("mine");
  throws(error, () => there({ get a() { throw error; } }));
});
// Nothing can be transferred here; the standard's cases of it are one refusal.
test("structured-clone: a transfer throws and takes nothing", () => {
  const buffer = new ArrayBuffer(1);
  throws("DataCloneError", () => structuredClone(buffer, { transfer: [buffer] }));
  throws("DataCloneError", () => structuredClone(1, { transfer: [{}] }));
  is(buffer.byteLength, 1);
  is(structuredClone(1, { transfer: [] }), 1);
});
test("structured-clone: an argument is needed", () => throws(TypeError, () => structuredClone()));
test("structured-clone: blobs and DOMExceptions", async () => {
  is(await there(new Blob(["ab"], { type: "a/b" })).text(), "ab");
  const e = there(new DOMException("m", "AbortError"));
  same([e.name, e.message, e instanceof DOMException], ["AbortError", "m", true]);
});
test("Blob-constructor: of nothing, of parts, types lower-cased", async () => {
  same([new Blob().size, new Blob().type], [0, ""]);
  const b = new Blob(["a", new Uint8Array([98]), new ArrayBuffer(1), new Blob(["c"]), 1, null], { type: "Text/PLAIN" });
  same([b.size, b.type], [9, "text/plain"]);
  is(await b.text(), "ab\0c1null");
});
test("Blob-constructor: what is no sequence throws", () => {
  throws(TypeError, () => new Blob("x"));
  throws(TypeError, () => new Blob(1));
  throws(TypeError, () => new Blob({}));
  throws(TypeError, () => Blob());
});
test("Blob-constructor: any iterable", async () => is(await new Blob(new Set(["a", "b"])).text(), "ab"));
test("Blob-constructor: a type with odd characters is none", () => is(new Blob([], { type: "a\u00e9" }).type, ""));
test("Blob-constructor: native line ends", async () => is(await new Blob(["a\r\nb\rc"], { endings: "native" }).text(), "a\nb\nc"));
test("Blob-constructor: unknown endings throw", () => throws(TypeError, () => new Blob([], { endings: "x" })));
for (const [from, to, want] of [[undefined, undefined, "abcdef"], [1, 3, "bc"], [-2, undefined, "ef"], [2, -2, "cd"], [4, 2, ""], [0, 100, "abcdef"], [NaN, 2, "ab"]]) {
  test(`Blob-slice: ${from}, ${to}`, async () => is(await new Blob(["abc", "def"]).slice(from, to).text(), want));
}
test("Blob-slice: its type is its own", () => same([new Blob(["a"], { type: "a/b" }).slice().type, new Blob(["a"]).slice(0, 1, "C/D").type], ["", "c/d"]));
test("Blob-array-buffer: bytes", async () => same(new Uint8Array(await new Blob(["é"]).arrayBuffer()), [195, 169]));
test("Blob-bytes: bytes", async () => same(await new Blob(["é"]).bytes(), [195, 169]));
test("Blob-stream: chunks of bytes", async () => {
  const all = [];
  for await (const chunk of new Blob(["ab"]).stream()) all.push(...chunk);
  same(all, [97, 98]);
});
test("File-constructor: name, type, time", () => {
  const f = new File(["ab"], "n.txt", { type: "A/b", lastModified: 5 });
  same([f.name, f.type, f.lastModified, f.size, f instanceof Blob], ["n.txt", "a/b", 5, 2, true]);
  throws(TypeError, () => new File([]));
  throws(TypeError, () => new File());
});
test("formdata-get: null when missing", () => is(new FormData().get("a"), null));
test("formdata-append: text, blob, file, filename", () => {
  const f = new FormData();
  f.append("a", 1);
  f.append("b", new Blob(["x"]));
  f.append("c", new Blob(["x"]), "n");
  f.append("d", new File(["x"], "m"));
  f.append("e", new File(["x"], "m"), "o");
  same([f.get("a"), f.get("b").name, f.get("c").name, f.get("d").name, f.get("e").name], ["1", "blob", "n", "m", "o"]);
});
test("formdata-append: a filename for text throws", () => throws(TypeError, () => new FormData().append("a", "b", "c")));
test("formdata-append: too few arguments", () => {
  throws(TypeError, () => new FormData().append("a"));
  throws(TypeError, () => new FormData().append());
});
test("formdata-getall: all in order", () => {
  const f = new FormData();
  f.append("a", "1");
  f.append("b", "2");
  f.append("a", "3");
  same(f.getAll("a"), ["1", "3"]);
  same(f.getAll("c"), []);
});
test("formdata-set: the first stays in its place", () => {
  const f = new FormData();
  f.append("a", "1");
  f.append("b", "2");
  f.append("a", "3");
  f.set("a", "4");
  same([...f], [["a", "4"], ["b", "2"]]);
});
test("formdata-delete, formdata-has", () => {
  const f = new FormData();
  f.append("a", "1");
  f.append("a", "2");
  is(f.has("a"), true);
  f.delete("a");
  is(f.has("a"), false);
});
test("formdata-iteration: keys, values, forEach", () => {
  const f = new FormData();
  f.append("a", "1");
  same([[...f.keys()], [...f.values()], [...f.entries()]], [["a"], ["1"], [["a", "1"]]]);
  const seen = [];
  f.forEach((value, name, whole) => seen.push(value, name, whole === f));
  same(seen, ["1", "a", true]);
  is(FormData.prototype[Symbol.iterator], FormData.prototype.entries);
});
test("formdata-constructor: a form that is none throws", () => throws(TypeError, () => new FormData("x")));
test("formdata-surrogates: lone ones become U+FFFD", () => {
  const f = new FormData();
  f.append("a\ud800", "b\ud800");
  same([...f], [["a\ufffd", "b\ufffd"]]);
});
test("formdata-multipart: names and line ends are escaped", async () => {
  const f = new FormData();
  f.append('a"\r\nb', "x\ny");
  const text = await new Response(f).text();
  is(text.includes('name="a%22%0D%0Ab"'), true, text);
  is(text.includes("\r\n\r\nx\r\ny\r\n"), true, text);
});
test("getRandomValues: every integer kind, and the same array back", () => {
  for (const T of [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array, BigUint64Array]) {
    const a = new T(16);
    is(crypto.getRandomValues(a), a, T.name);
    is(a.some((v) => v != 0), true, T.name);
  }
});
test("getRandomValues: floats and views throw", () => {
  for (const a of [new Float32Array(1), new Float64Array(1), new DataView(new ArrayBuffer(1))]) {
    throws("TypeMismatchError", () => crypto.getRandomValues(a));
  }
});
test("getRandomValues: over the quota throws", () => throws("QuotaExceededError", () => crypto.getRandomValues(new Uint8Array(65537))));
test("getRandomValues: only its own part of a buffer", () => {
  const all = new Uint8Array(32);
  crypto.getRandomValues(all.subarray(8, 24));
  is(all.subarray(0, 8).every((v) => v === 0) && all.subarray(24).every((v) => v === 0), true);
});
test("randomUUID: version 4, no two alike", () => {
  const seen = new Set();
  for (let i = 0; i < 100; i++) {
    const id = crypto.randomUUID();
    if (!/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id)) throw new Error(id);
    seen.add(id);
  }
  is(seen.size, 100);
});
const hex = (buffer) => [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
for (const [name, want] of [["SHA-256", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"],
  ["sha-384", "38b060a751ac96384cd9327eb1b1e36a21fdb71114be07434c0cc7bf63f6e1da274edebfe76f65fbd51ad2f14898b95b"],
  ["SHA-512", "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"]]) {
  test(`digest: ${name} of nothing`, async () => is(hex(await crypto.subtle.digest(name, new Uint8Array())), want));
  test(`digest: ${name} as an object, of a buffer`, async () => is(hex(await crypto.subtle.digest({ name }, new ArrayBuffer(0))), want));
}
test("digest: an unknown algorithm rejects", () => rejects("NotSupportedError", crypto.subtle.digest("MD4", new Uint8Array())));
test("digest: text rejects", () => rejects(TypeError, crypto.subtle.digest("SHA-256", "x")));
test("hmac: sign and verify, as RFC 4231 says", async () => {
  const key = await crypto.subtle.importKey("raw", new Uint8Array(20).fill(11), { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
  const data = new TextEncoder().encode("Hi There");
  const mac = await crypto.subtle.sign("HMAC", key, data);
  is(hex(mac), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  is(await crypto.subtle.verify("HMAC", key, mac, data), true);
  is(await crypto.subtle.verify("HMAC", key, mac.slice(1), data), false);
});
test("hmac: the usages are what was asked for", async () => {
  const key = await crypto.subtle.importKey("raw", new Uint8Array(1), { name: "HMAC", hash: { name: "SHA-256" } }, false, ["verify"]);
  same([key.usages, key.type, key.extractable, key.algorithm.name, key.algorithm.hash.name, key.algorithm.length], [["verify"], "secret", false, "HMAC", "SHA-256", 8]);
  await rejects("InvalidAccessError", crypto.subtle.sign("HMAC", key, new Uint8Array()));
});
test("hmac: a key without usages or bytes rejects", async () => {
  await rejects("SyntaxError", crypto.subtle.importKey("raw", new Uint8Array(1), { name: "HMAC", hash: "SHA-256" }, false, []));
  await rejects("DataError", crypto.subtle.importKey("raw", new Uint8Array(0), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]));
});
test("hmac: exportKey gives the bytes of an extractable key", async () => {
  const key = await crypto.subtle.importKey("raw", new Uint8Array([1, 2]), { name: "HMAC", hash: "SHA-256" }, true, ["sign"]);
  same(new Uint8Array(await crypto.subtle.exportKey("raw", key)), [1, 2]);
  const closed = await crypto.subtle.importKey("raw", new Uint8Array([1, 2]), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  await rejects("InvalidAccessError", crypto.subtle.exportKey("raw", closed));
});
test("CryptoKey: cannot be made", () => throws(TypeError, () => new CryptoKey()));
test("crypto: tags", () => same([Object.prototype.toString.call(crypto), Object.prototype.toString.call(crypto.subtle)], ["[object Crypto]", "[object SubtleCrypto]"]));
