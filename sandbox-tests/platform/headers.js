// Named after fetch/api/headers/*.
test("headers-basic: of nothing, undefined and a record", () => {
  same([...new Headers()], []);
  same([...new Headers(undefined)], []);
  same([...new Headers({ b: "2", a: "1" })], [["a", "1"], ["b", "2"]]);
});
test("headers-basic: null throws", () => throws(TypeError, () => new Headers(null)));
test("headers-basic: a number throws", () => throws(TypeError, () => new Headers(1)));
test("headers-basic: of pairs, of another, of a map, of a generator", () => {
  same([...new Headers([["b", "2"], ["a", "1"], ["B", "3"]])], [["a", "1"], ["b", "2, 3"]]);
  same([...new Headers(new Headers({ a: "1" }))], [["a", "1"]]);
  same([...new Headers(new Map([["a", "1"]]))], [["a", "1"]]);
  same([...new Headers((function* () { yield ["a", "1"]; })())], [["a", "1"]]);
});
test("headers-structure: methods", () => {
  for (const name of ["append", "delete", "get", "has", "set", "entries", "keys", "values", "forEach", "getSetCookie"]) {
    is(typeof new Headers()[name], "function", name);
  }
  is(Headers.prototype[Symbol.iterator], Headers.prototype.entries);
});
test("headers-casing: names are one whatever their case", () => {
  const h = new Headers({ "Content-Type": "a" });
  is(h.get("CONTENT-TYPE"), "a");
  is(h.has("content-type"), true);
  h.delete("cOnTeNt-TyPe");
  is(h.has("content-type"), false);
});
test("headers-combine: get joins by comma and space", () => {
  const h = new Headers([["a", "1"], ["a", "2"]]);
  is(h.get("a"), "1, 2");
  h.set("a", "3");
  is(h.get("a"), "3");
});
test("headers-errors: names that are no token", () => {
  for (const name of ["", " ", "a b", "a:b", "a\n", "é", "a/b", "(a)", "\0"]) {
    throws(TypeError, () => new Headers().append(name, "x"), name);
    throws(TypeError, () => new Headers().get(name), name);
    throws(TypeError, () => new Headers().has(name), name);
    throws(TypeError, () => new Headers().delete(name), name);
  }
});
test("headers-errors: values that are none", () => {
  for (const value of ["a\nb", "a\rb", "a\0b", "\u0100"]) throws(TypeError, () => new Headers().append("a", value), value);
});
test("headers-errors: too few arguments", () => {
  throws(TypeError, () => new Headers().append("a"));
  throws(TypeError, () => new Headers().set("a"));
  throws(TypeError, () => new Headers().get());
  throws(TypeError, () => new Headers().has());
  throws(TypeError, () => new Headers().delete());
});
test("headers-errors: a pair of one or three", () => {
  throws(TypeError, () => new Headers([["a"]]));
  throws(TypeError, () => new Headers([["a", "b", "c"]]));
});
test("headers-errors: forEach without a function", () => throws(TypeError, () => new Headers().forEach("x")));
test("headers-normalize: white space around a value goes", () => {
  for (const [given, want] of [[" a", "a"], ["a ", "a"], ["\t a \r\n", "a"], [" a b ", "a b"], ["", ""]]) {
    is(new Headers({ x: given }).get("x"), want, JSON.stringify(given));
  }
});
test("headers-normalize: bytes up to 255 are kept", () => is(new Headers({ x: "ÿé" }).get("x"), "ÿé"));
test("headers-values: numbers and objects become text", () => {
  is(new Headers({ x: 1 }).get("x"), "1");
  is(new Headers({ x: { toString: () => "y" } }).get("x"), "y");
  is(new Headers({ x: null }).get("x"), "null");
});
test("headers-record: own enumerable keys only", () => {
  const object = Object.create({ inherited: "1" }, { hidden: { value: "2", enumerable: false } });
  object.own = "3";
  same([...new Headers(object)], [["own", "3"]]);
});
test("headers-record: a symbol key throws", () => throws(TypeError, () => new Headers({ [Symbol("a")]: "1" })));
test("headers-iterate: sorted, each name once but set-cookie", () => {
  const h = new Headers([["set-cookie", "a=b"], ["fizz", "buzz"], ["X-Header", "test"], ["set-cookie", "c=d"]]);
  same([...h], [["fizz", "buzz"], ["set-cookie", "a=b"], ["set-cookie", "c=d"], ["x-header", "test"]]);
});
test("headers-iterate: what is changed while iterating shows", () => {
  const h = new Headers({ a: "1", b: "2", c: "3" });
  const seen = [];
  for (const [name] of h) {
    seen.push(name);
    h.delete("b");
  }
  same(seen, ["a", "c"]);
});
test("headers-iterate: keys, values, entries and their iterator", () => {
  const h = new Headers({ a: "1", b: "2" });
  same([...h.keys()], ["a", "b"]);
  same([...h.values()], ["1", "2"]);
  same([...h.entries()], [["a", "1"], ["b", "2"]]);
  const it = h.keys();
  is(it[Symbol.iterator](), it);
});
test("headers-foreach: value, name, object, this", () => {
  const h = new Headers({ a: "1" });
  const seen = [];
  const self = {};
  h.forEach(function (value, name, whole) { seen.push(value, name, whole === h, this === self); }, self);
  same(seen, ["1", "a", true, true]);
});
test("header-setcookie: getSetCookie gives each", () => {
  const h = new Headers([["Set-Cookie", "a=1"], ["set-cookie", "b=2"]]);
  same(h.getSetCookie(), ["a=1", "b=2"]);
  is(h.get("set-cookie"), "a=1, b=2");
  h.set("set-cookie", "c=3");
  same(h.getSetCookie(), ["c=3"]);
});
test("header-setcookie: none is an empty list", () => same(new Headers().getSetCookie(), []));
test("headers-class: tag and new", () => {
  is(Object.prototype.toString.call(new Headers()), "[object Headers]");
  throws(TypeError, () => Headers());
});
test("headers-append: after set keeps both", () => {
  const h = new Headers();
  h.set("a", "1");
  h.append("A", "2");
  is(h.get("a"), "1, 2");
});
test("headers-empty: an empty value is there", () => {
  const h = new Headers({ a: "" });
  is(h.get("a"), "");
  is(h.has("a"), true);
  is(h.get("b"), null);
});
test("headers-brand: methods need a Headers", () => throws(TypeError, () => Headers.prototype.get.call({}, "a")));
