// Named after fetch/api/request/*, response/* and body/*.
const json = (text) => new Response(text, { headers: { "content-type": "application/json" } });
const request = (init) => new Request("https://a.test/x", { method: "POST", ...init });
test("response-init-001: defaults", () => {
  const r = new Response();
  same([r.type, r.url, r.ok, r.status, r.statusText, r.body, r.redirected, r.bodyUsed],
    ["default", "", true, 200, "", null, false, false]);
});
test("response-init-001: given", () => {
  const r = new Response("x", { status: 404, statusText: "gone", headers: { a: "b" } });
  same([r.ok, r.status, r.statusText, r.headers.get("a")], [false, 404, "gone", "b"]);
});
for (const status of [0, 100, 199, 600, 1000, NaN]) {
  test(`response-error: status ${status} throws`, () => throws(RangeError, () => new Response("", { status })));
}
for (const statusText of ["\n", "é\u0100", "\0"]) {
  test(`response-error: statusText ${JSON.stringify(statusText)} throws`, () => throws(TypeError, () => new Response("", { statusText })));
}
for (const status of [204, 205, 304]) {
  test(`response-error: a body with ${status} throws`, () => {
    throws(TypeError, () => new Response("x", { status }));
    is(new Response(null, { status }).body, null);
  });
}
const types = [
  ["text", () => "hi", "text/plain;charset=UTF-8"],
  ["URLSearchParams", () => new URLSearchParams("a=b"), "application/x-www-form-urlencoded;charset=UTF-8"],
  ["a blob with a type", () => new Blob(["hi"], { type: "a/b" }), "a/b"],
  ["a blob without", () => new Blob(["hi"]), null],
  ["a buffer", () => new ArrayBuffer(2), null],
  ["a view", () => new Uint8Array(2), null],
  ["a stream", () => new ReadableStream(), null],
];
for (const [what, make, want] of types) {
  test(`response-init-contenttype: ${what}`, () => is(new Response(make()).headers.get("content-type"), want));
  test(`request-init-contenttype: ${what}`, () => is(request({ body: make(), duplex: "half" }).headers.get("content-type"), want));
}
test("response-init-contenttype: form data has a boundary", () => {
  const form = new FormData();
  if (!/^multipart\/form-data; boundary=.+/.test(new Response(form).headers.get("content-type"))) throw new Error("none");
});
test("response-init-contenttype: a given one stays", () => is(json("{}").headers.get("content-type"), "application/json"));
test("response-consume: text, json, arrayBuffer, bytes, blob", async () => {
  is(await new Response("é").text(), "é");
  same(await json('{"a":[1]}').json(), { a: [1] });
  same(new Uint8Array(await new Response("é").arrayBuffer()), [195, 169]);
  same(await new Response("é").bytes(), [195, 169]);
  const blob = await json("{}").blob();
  same([blob.size, blob.type], [2, "application/json"]);
});
test("response-consume: null bodies", async () => {
  is(await new Response().text(), "");
  is((await new Response().arrayBuffer()).byteLength, 0);
  is((await new Response().blob()).size, 0);
  await rejects(SyntaxError, new Response().json());
});
test("response-consume: bad JSON", () => rejects(SyntaxError, json("{").json()));
test("response-consume: a byte order mark goes from text and JSON", async () => {
  is(await new Response("\ufeffx").text(), "x");
  is(await new Response("\ufeff1").json(), 1);
});
test("response-consume: broken UTF-8 is replaced", async () => is(await new Response(new Uint8Array([97, 255, 98])).text(), "a\ufffdb"));
test("response-consume: form data, both kinds", async () => {
  const form = new FormData();
  form.append("a", "1");
  form.append("é", new File(["x"], "f.txt", { type: "text/plain" }));
  const back = await new Response(form).formData();
  is(back.get("a"), "1");
  same([back.get("é").name, back.get("é").type, await back.get("é").text()], ["f.txt", "text/plain", "x"]);
  const url = await new Response(new URLSearchParams("a=1&b=+2")).formData();
  same([...url], [["a", "1"], ["b", " 2"]]);
});
test("response-consume: form data of another type", () => rejects(TypeError, new Response("x").formData()));
test("response-consume: broken multipart", () => rejects(TypeError, new Response("--a\r\n", { headers: { "content-type": "multipart/form-data; boundary=a" } }).formData()));
for (const method of ["text", "json", "arrayBuffer", "bytes", "blob"]) {
  test(`response-stream-disturbed: ${method} after text`, async () => {
    const r = json("1");
    is(r.bodyUsed, false);
    await r.text();
    is(r.bodyUsed, true);
    await rejects(TypeError, () => r[method]());
  });
  test(`request-consume: ${method}`, async () => {
    const r = request({ body: "1" });
    await r[method]();
    is(r.bodyUsed, true);
    await rejects(TypeError, () => r[method]());
  });
}
test("response-stream: body is one stream of bytes", async () => {
  const r = new Response("ab");
  is(r.body, r.body);
  const reader = r.body.getReader();
  same((await reader.read()).value, [97, 98]);
  is((await reader.read()).done, true);
  is(r.bodyUsed, true);
});
test("response-stream: a locked body cannot be read", async () => {
  const r = new Response("ab");
  r.body.getReader();
  await rejects(TypeError, r.text());
});
test("response-from-stream: chunks are joined", async () => {
  const chunks = [new Uint8Array([97]), new Uint8Array([98, 99])];
  const stream = new ReadableStream({ pull: (c) => chunks.length ? c.enqueue(chunks.shift()) : c.close() });
  is(await new Response(stream).text(), "abc");
});
test("response-from-stream: a text chunk fails", () =>
  rejects(TypeError, new Response(new ReadableStream({ start(c) { c.enqueue("x"); c.close(); } })).text()));
test("response-from-stream: its error is the error", async () => {
  const error = new Error("broken");
  await rejects(error, new Response(new ReadableStream({ start(c) { c.error(error); } })).text());
});
test("response-from-stream: a locked or read stream throws", async () => {
  const locked = new ReadableStream();
  locked.getReader();
  throws(TypeError, () => new Response(locked));
});
test("response-clone: both can be read", async () => {
  const r = new Response("x", { status: 201, headers: { a: "b" } });
  const copy = r.clone();
  same([copy.status, copy.headers.get("a"), await r.text(), await copy.text()], [201, "b", "x", "x"]);
});
test("response-clone: headers are apart", () => {
  const r = new Response();
  const copy = r.clone();
  copy.headers.set("a", "b");
  is(r.headers.has("a"), false);
});
test("response-clone: of a stream", async () => {
  const r = new Response(new ReadableStream({ start(c) { c.enqueue(new Uint8Array([97])); c.close(); } }));
  const copy = r.clone();
  same([await r.text(), await copy.text()], ["a", "a"]);
});
test("response-clone: of a used one throws", async () => {
  const r = new Response("x");
  await r.text();
  throws(TypeError, () => r.clone());
});
test("response-static-json: type and body", async () => {
  const r = Response.json({ a: 1 }, { status: 202 });
  same([r.status, r.headers.get("content-type"), await r.json()], [202, "application/json", { a: 1 }]);
  is(Response.json(1, { headers: { "content-type": "a/b" } }).headers.get("content-type"), "a/b");
});
test("response-static-json: what is no JSON throws", () => {
  throws(TypeError, () => Response.json(Symbol("a")));
  throws(TypeError, () => Response.json(undefined));
});
test("response-static-error: type error, status 0", () => {
  const r = Response.error();
  same([r.type, r.status, r.ok, r.statusText], ["error", 0, false, ""]);
});
test("response-static-redirect: location and status", () => {
  const r = Response.redirect("https://a.test/x", 308);
  same([r.status, r.headers.get("location")], [308, "https://a.test/x"]);
  is(Response.redirect("https://a.test").status, 302);
});
test("response-static-redirect: other statuses and bad URLs throw", () => {
  throws(RangeError, () => Response.redirect("https://a.test", 200));
  throws(TypeError, () => Response.redirect("x"));
});
test("request-structure: defaults", () => {
  const r = new Request("https://a.test/x?y#z");
  same([r.method, r.url, r.bodyUsed, r.body, [...r.headers]], ["GET", "https://a.test/x?y#z", false, null, []]);
  is(r.signal instanceof AbortSignal, true);
});
test("request-structure: what the standard lists is there", () => {
  const r = new Request("https://a.test/");
  same([r.destination, r.referrer, r.mode, r.credentials, r.cache, r.redirect, r.integrity, r.keepalive, r.duplex],
    ["", "about:client", "cors", "same-origin", "default", "follow", "", false, "half"]);
});
for (const [given, want] of [["get", "GET"], ["Post", "POST"], ["delete", "DELETE"], ["patch", "patch"], ["chicken", "chicken"]]) {
  test(`request-init-002: method ${given}`, () => is(new Request("https://a.test/", { method: given }).method, want));
}
for (const method of ["", "a b", "CONNECT", "TRACE", "track", "GET\n"]) {
  test(`request-error: method ${JSON.stringify(method)} throws`, () => throws(TypeError, () => new Request("https://a.test/", { method })));
}
test("request-error: a body with GET or HEAD throws", () => {
  throws(TypeError, () => new Request("https://a.test/", { body: "x" }));
  throws(TypeError, () => new Request("https://a.test/", { method: "HEAD", body: "x" }));
});
test("request-error: a URL with credentials throws", () => throws(TypeError, () => new Request("https://u:p@a.test/")));
test("request-error: a URL that cannot be parsed throws", () => throws(TypeError, () => new Request("x")));
test("request-init-003: of another request", async () => {
  const from = request({ body: "x", headers: { a: "b" } });
  const r = new Request(from, { headers: { c: "d" } });
  same([r.method, r.headers.get("a"), r.headers.get("c"), await r.text()], ["POST", null, "d", "x"]);
  is(from.bodyUsed, true);
});
test("request-init-003: of a used one throws", async () => {
  const from = request({ body: "x" });
  await from.text();
  throws(TypeError, () => new Request(from));
});
test("request-init-stream: a stream needs duplex", () => throws(TypeError, () => request({ body: new ReadableStream() })));
test("request-clone: both can be read", async () => {
  const r = request({ body: "x", headers: { a: "b" } });
  const copy = r.clone();
  same([copy.method, copy.headers.get("a"), await r.text(), await copy.text()], ["POST", "b", "x", "x"]);
});
test("request-clone: of a used one throws", async () => {
  const r = request({ body: "x" });
  await r.text();
  throws(TypeError, () => r.clone());
});
test("request-init-001: signal follows the given one", () => {
  const controller = new AbortController();
  const r = new Request("https://a.test/", { signal: controller.signal });
  is(r.signal.aborted, false);
  controller.abort();
  is(r.signal.aborted, true);
});
test("request-init-001: a signal that is none throws", () => throws(TypeError, () => new Request("https://a.test/", { signal: {} })));
test("request-init-001: a URL object, and tags", () => {
  is(new Request(new URL("https://a.test/x")).url, "https://a.test/x");
  is(Object.prototype.toString.call(new Request("https://a.test")), "[object Request]");
  is(Object.prototype.toString.call(new Response()), "[object Response]");
});
test("response-headers: are not those given", () => {
  const given = new Headers({ a: "b" });
  const r = new Response("", { headers: given });
  given.set("a", "c");
  is(r.headers.get("a"), "b");
});
test("response-body-buffers: bytes are taken when given", async () => {
  const bytes = new Uint8Array([97]);
  const r = new Response(bytes);
  bytes[0] = 98;
  is(await r.text(), "a");
});
test("response-body-views: offset and length are kept", async () =>
  is(await new Response(new Uint8Array([97, 98, 99, 100]).subarray(1, 3)).text(), "bc"));
test("body-blob-type: lower case of the header", async () => is((await new Response("x", { headers: { "content-type": "Text/HTML" } }).blob()).type, "text/html"));
