// Named after url/url-constructor, url-setters, urlsearchparams-*.
const parsed = [
  ["http://example\t.\norg", null, "http://example.org/"],
  ["http://user:pass@foo:21/bar;par?b#c", null, "http://user:pass@foo:21/bar;par?b#c"],
  ["https://test:@test", null, "https://test@test/"],
  ["https://:@test", null, "https://test/"],
  ["http:foo.com", "http://example.org/foo/bar", "http://example.org/foo/foo.com"],
  ["\t   :foo.com   \n", "http://example.org/foo/bar", "http://example.org/foo/:foo.com"],
  [" foo.com  ", "http://example.org/foo/bar", "http://example.org/foo/foo.com"],
  ["a:\t foo.com", null, "a: foo.com"],
  ["http://f:21/ b ? d # e ", null, "http://f:21/%20b%20?%20d%20#%20e"],
  ["http://f:/c", null, "http://f/c"],
  ["http://f:0/c", null, "http://f:0/c"],
  ["http://f:00000000000000/c", null, "http://f:0/c"],
  ["http://f:00000000000000000000080/c", null, "http://f/c"],
  ["", "http://example.org/foo/bar", "http://example.org/foo/bar"],
  [":foo.com/", "http://example.org/foo/bar", "http://example.org/foo/:foo.com/"],
  ["#", "http://example.org/foo/bar", "http://example.org/foo/bar#"],
  ["?", "http://example.org/foo/bar", "http://example.org/foo/bar?"],
  ["/", "http://example.org/foo/bar", "http://example.org/"],
  [":23", "http://example.org/foo/bar", "http://example.org/foo/:23"],
  ["//", "file:///x", "file:///"],
  ["http::@c:29", "http://example.org/foo/bar", "http://example.org/foo/:@c:29"],
  ["http://&a:foo(b]c@d:2/", null, "http://&a:foo(b%5Dc@d:2/"],
  ["http://foo.com:b@d/", null, "http://foo.com:b@d/"],
  ["http://foo.com/\\@", null, "http://foo.com//@"],
  ["http:\\\\foo.com\\", null, "http://foo.com/"],
  ["http:\\\\a\\b:c\\d@foo.com\\", null, "http://a/b:c/d@foo.com/"],
  ["foo:/", null, "foo:/"],
  ["foo:/bar.com/", null, "foo:/bar.com/"],
  ["foo://///////", null, "foo://///////"],
  ["c:/foo", null, "c:/foo"],
  ["//foo/bar", "http://example.org/foo/bar", "http://foo/bar"],
  ["http://foo/path;a??e#f#g", null, "http://foo/path;a??e#f#g"],
  ["[61:24:74]:98", "http://example.org/foo/bar", "http://example.org/foo/[61:24:74]:98"],
  ["http:[61:27]/:foo", "http://example.org/foo/bar", "http://example.org/foo/[61:27]/:foo"],
  ["http://[1::2]:3:4", null, null],
  ["http://2001::1", null, null],
  ["http://[::127.0.0.1]", null, "http://[::7f00:1]/"],
  ["http://[::1%25eth0]", null, null],
  ["http://[0:0:0:0:0:0:13.1.68.3]", null, "http://[::d01:4403]/"],
  ["http://[2001::1]:80/", null, "http://[2001::1]/"],
  ["/a/b/c/./../d", "http://example.org/", "http://example.org/a/b/d"],
  ["http://example.com/foo/%2e%2", null, "http://example.com/foo/%2e%2"],
  ["http://example.com/foo/%2e./%2e%2e/.%2e/%2e.bar", null, "http://example.com/%2e.bar"],
  ["http://example.com////../..", null, "http://example.com//"],
  ["http://example.com/foo/bar/..", null, "http://example.com/foo/"],
  ["http://example.com/foo/../../../ton", null, "http://example.com/ton"],
  ["http://example.com/foo%41%7a", null, "http://example.com/foo%41%7a"],
  ["http://example.com/foo\tbar", null, "http://example.com/foobar"],
  ["http://example.com\\\\foo\\\\bar", null, "http://example.com//foo//bar"],
  ["http://example.com/你好你好", null, "http://example.com/%E4%BD%A0%E5%A5%BD%E4%BD%A0%E5%A5%BD"],
  ["http://www.google.com/foo?bar=baz# \u00bb", null, "http://www.google.com/foo?bar=baz#%20%C2%BB"],
  ["data:test# \u00bb", null, "data:test#%20%C2%BB"],
  ["http://www", null, "http://www/"],
  ["http://192.0x00A80001", null, "http://192.168.0.1/"],
  ["http://0x7f.1/test", null, "http://127.0.0.1/test"],
  ["http://256.256.256.256", null, null],
  ["http://4294967296", null, null],
  ["http://GOO 　goo.com", null, null],
  ["http://ａｂｃ.com", null, "http://abc.com/"],
  ["http://faß.ExAmPlE/", null, "http://xn--fa-hia.example/"],
  ["http://EXAMPLE.com:443/", null, "http://example.com:443/"],
  ["https://EXAMPLE.com:443/", null, "https://example.com/"],
  ["http://a_b:1/", null, "http://a_b:1/"],
  ["http://host/?'", null, "http://host/?%27"],
  ["notspecial://host/?'", null, "notspecial://host/?'"],
  ["javascript:/../", null, "javascript:/"],
  ["mailto:/example.com/", null, "mailto:/example.com/"],
  ["data:/example.com/", null, "data:/example.com/"],
  ["file:c:\\foo\\bar.html", "file:///tmp/mock/path", "file:///c:/foo/bar.html"],
  ["https://\x00y", null, null],
  ["https://x/\x00y", null, "https://x/%00y"],
  ["http://a.b/c?d\ud800e", null, "http://a.b/c?d%EF%BF%BDe"],
  ["http://h:65536/", null, null],
  ["http://h:-1/", null, null],
  ["http:///bad:80", null, "http://bad/"],
  ["http://:80/", null, null],
  ["http://a b/", null, null],
  ["//server/x", "about:blank", null],
  ["x", "mailto:x@x.com", null],
  ["#x", "mailto:x@x.com", "mailto:x@x.com#x"],
  ["http://1.2.3.4.5/", null, null],
  ["http://foo.0x4/", null, null],
  ["http://xn--/", null, null],
];
for (const [input, base, want] of parsed) {
  const name = `url-constructor: ${JSON.stringify(input)}${base === null ? "" : ` against ${base}`}`;
  test(name, () => {
    const make = () => base === null ? new URL(input) : new URL(input, base);
    if (want === null) {
      throws(TypeError, make);
      is(URL.canParse(input, base ?? undefined), false, "canParse");
      is(URL.parse(input, base ?? undefined), null, "parse");
    } else {
      is(make().href, want, "href");
      is(URL.canParse(input, base ?? undefined), true, "canParse");
    }
  });
}
const setters = [
  ["protocol", "a://example.net", "b", "b://example.net"],
  ["protocol", "http://localhost/", "a", "http://localhost/"],
  ["protocol", "https://example.net:1234", "https:foo : bar", "https://example.net:1234/"],
  ["username", "https://example.com/", "me", "https://me@example.com/"],
  ["username", "file:///home/you/index.html", "me", "file:///home/you/index.html"],
  ["password", "https://me@example.com/", "s:c", "https://me:s%3Ac@example.com/"],
  ["host", "http://example.net:8080/x", "example.com:", "http://example.com:8080/x"],
  ["host", "http://example.net/x", "example.com:90/y", "http://example.com:90/x"],
  ["hostname", "http://example.net:8080", "example.com:90", "http://example.net:8080/"],
  ["hostname", "http://example.net", "[::1]", "http://[::1]/"],
  ["hostname", "https://example.net/", "", "https://example.net/"],
  ["port", "http://example.net", "8080", "http://example.net:8080/"],
  ["port", "http://example.net:8080", "", "http://example.net/"],
  ["port", "http://example.net/x", "9000x", "http://example.net:9000/x"],
  ["port", "http://example.net:8080/x", "65536", "http://example.net:8080/x"],
  ["pathname", "https://example.net#nav", "../home", "https://example.net/home#nav"],
  ["pathname", "mailto:me@example.net", "/foo", "mailto:me@example.net"],
  ["pathname", "https://lookout.net/", "?x", "https://lookout.net/%3Fx"],
  ["search", "https://example.net#nav", "lang=fr", "https://example.net/?lang=fr#nav"],
  ["search", "https://example.net?lang=en#nav", "", "https://example.net/#nav"],
  ["search", "https://example.net", "??lang=fr", "https://example.net/??lang=fr"],
  ["hash", "https://example.net", "main", "https://example.net/#main"],
  ["hash", "https://example.net#nav", "", "https://example.net/"],
  ["hash", "https://example.net", "##nav", "https://example.net/##nav"],
];
for (const [part, from, to, want] of setters) {
  test(`url-setters: ${part} = ${JSON.stringify(to)} of ${from}`, () => {
    const url = new URL(from);
    url[part] = to;
    is(url.href, want);
  });
}
test("url-setters: href that cannot be parsed throws and changes nothing", () => {
  const url = new URL("https://a.test/");
  throws(TypeError, () => { url.href = "x"; });
  is(url.href, "https://a.test/");
});
test("url-origin: special schemes have one, others are null", () => {
  is(new URL("https://a.test:8443/x").origin, "https://a.test:8443");
  is(new URL("foo://a.test/x").origin, "null");
  is(new URL("file:///x").origin, "null");
});
test("url-tojson: the href", () => is(JSON.stringify({ u: new URL("https://a.test") }), '{"u":"https://a.test/"}'));
test("url-searchparams: one object, and it follows the URL", () => {
  const url = new URL("http://example.org/?a=b");
  is(url.searchParams, url.searchParams);
  url.searchParams.append("c", "d e");
  is(url.search, "?a=b&c=d+e");
  url.search = "?x=y";
  same([...url.searchParams], [["x", "y"]]);
});
test("url-searchparams: emptied params empty the search", () => {
  const url = new URL("http://example.org/file?a=1#f");
  url.searchParams.delete("a");
  is(url.href, "http://example.org/file#f");
});
test("urlsearchparams-constructor: of nothing, of text, with a question mark", () => {
  is(String(new URLSearchParams()), "");
  is(String(new URLSearchParams("?a=b")), "a=b");
  is(new URLSearchParams("a=b+c").get("a"), "b c");
  is(new URLSearchParams("a=b%2Bc").get("a"), "b+c");
});
test("urlsearchparams-constructor: of pairs, of a record, of another, of FormData", () => {
  is(String(new URLSearchParams([["a", "1"], ["a", "2"]])), "a=1&a=2");
  is(String(new URLSearchParams({ a: 1, b: null })), "a=1&b=null");
  is(String(new URLSearchParams(new URLSearchParams("x=y"))), "x=y");
  const form = new FormData();
  form.append("k", "v");
  is(String(new URLSearchParams(form)), "k=v");
});
test("urlsearchparams-constructor: a pair of three throws", () => throws(TypeError, () => new URLSearchParams([[1, 2, 3]])));
test("urlsearchparams-constructor: surrogates", () => is(String(new URLSearchParams({ "x\udc53": "1" })), "x%EF%BF%BD=1"));
test("urlsearchparams-get: null when missing", () => is(new URLSearchParams("a").get("b"), null));
test("urlsearchparams-getall: all in order", () => same(new URLSearchParams("a=1&b=2&a=3").getAll("a"), ["1", "3"]));
test("urlsearchparams-has: by name and by value", () => {
  const p = new URLSearchParams("a=1&a=2");
  is(p.has("a"), true);
  is(p.has("a", "2"), true);
  is(p.has("a", "3"), false);
});
test("urlsearchparams-set: the first stays in its place, the rest go", () => {
  const p = new URLSearchParams("a=1&b=2&a=3");
  p.set("a", "4");
  is(String(p), "a=4&b=2");
});
test("urlsearchparams-delete: by value", () => {
  const p = new URLSearchParams("a=1&a=2");
  p.delete("a", "1");
  is(String(p), "a=2");
});
test("urlsearchparams-append: twice the same", () => {
  const p = new URLSearchParams();
  p.append("a", "b");
  p.append("a", "b");
  is(p.size, 2);
});
test("urlsearchparams-sort: by code units, stable", () => {
  const p = new URLSearchParams("z=b&a=b&z=a&a=a&\ufffc=1&\ud83c\udf08=2");
  p.sort();
  same([...p.keys()], ["a", "a", "z", "z", "\ud83c\udf08", "\ufffc"]);
  same(p.getAll("z"), ["b", "a"]);
});
test("urlsearchparams-stringifier: what is escaped", () => {
  is(String(new URLSearchParams([["a", "b c"], ["d", "e*-._"], ["f", "~'()!"], ["g", "\n"], ["é", ""]])),
    "a=b+c&d=e*-._&f=%7E%27%28%29%21&g=%0A&%C3%A9=");
});
test("urlsearchparams-foreach: value, name, object", () => {
  const seen = [];
  const p = new URLSearchParams("a=1&b=2");
  p.forEach((value, name, whole) => seen.push(value, name, whole === p));
  same(seen, ["1", "a", true, "2", "b", true]);
});
test("urlsearchparams-foreach: iterators by name", () => {
  const p = new URLSearchParams("a=1&b=2");
  same([...p.entries()], [["a", "1"], ["b", "2"]]);
  same([...p.values()], ["1", "2"]);
});
test("url-constructor: without new throws", () => throws(TypeError, () => URL("https://a.test")));
test("url-statics: object URLs are not here", () => is("createObjectURL" in URL, false));
test("url-tostring: parts", () => {
  const url = new URL("https://u:p@h.test:8/p/q?s#f");
  same([url.protocol, url.username, url.password, url.host, url.hostname, url.port, url.pathname, url.search, url.hash],
    ["https:", "u", "p", "h.test:8", "h.test", "8", "/p/q", "?s", "#f"]);
});
