// Named after encoding/* and html/webappapis/atob/*.
test("api-basics: utf-8 is the default, tag and encoding", () => {
  is(new TextEncoder().encoding, "utf-8");
  is(new TextDecoder().encoding, "utf-8");
  same([new TextDecoder().fatal, new TextDecoder().ignoreBOM], [false, false]);
});
for (const [label, want] of [["utf-8", "utf-8"], ["UTF8", "utf-8"], [" unicode-1-1-utf-8 ", "utf-8"], ["latin1", "windows-1252"], ["ascii", "windows-1252"],
  ["iso-8859-1", "windows-1252"], ["utf-16", "utf-16le"], ["utf-16be", "utf-16be"], ["shift_jis", "shift_jis"], ["euc-kr", "euc-kr"], ["gb18030", "gb18030"],
  ["big5", "big5"], ["koi8-r", "koi8-r"], ["windows-1251", "windows-1251"], ["iso-8859-15", "iso-8859-15"], ["macintosh", "macintosh"]]) {
  test(`textdecoder-labels: ${label}`, () => is(new TextDecoder(label).encoding, want));
}
for (const label of ["", "x", "utf-7", "utf-32", "replacement", "hz-gb-2312", "\0utf-8"]) {
  test(`textdecoder-labels: ${JSON.stringify(label)} throws`, () => throws(RangeError, () => new TextDecoder(label)));
}
test("api-surrogates-utf8: lone ones become U+FFFD", () => {
  same(new TextEncoder().encode("\ud800"), [239, 191, 189]);
  same(new TextEncoder().encode("a\udc00b"), [97, 239, 191, 189, 98]);
  same(new TextEncoder().encode("\ud834\udd1e"), [240, 157, 132, 158]);
});
test("textencoder-utf16-surrogates: of undefined and null", () => {
  same(new TextEncoder().encode(), []);
  same(new TextEncoder().encode(undefined), []);
  same(new TextEncoder().encode(null), [110, 117, 108, 108]);
});
for (const [text, size, read, written] of [["Hi", 0, 0, 0], ["A", 10, 1, 1], ["\u{1d306}", 4, 2, 4], ["\u{1d306}A", 3, 0, 0], ["\ud834A\udf06A¥Hi", 10, 5, 10], ["é", 1, 0, 0]]) {
  test(`encodeInto: ${JSON.stringify(text)} into ${size}`, () => {
    const answer = new TextEncoder().encodeInto(text, new Uint8Array(size));
    same([answer.read, answer.written], [read, written]);
  });
}
for (const bytes of [[255], [192], [224], [192, 0], [224, 128], [240, 128, 128], [237, 160, 128], [244, 144, 128, 128], [252, 128, 128, 128, 128, 128], [0x80]]) {
  test(`textdecoder-fatal: ${bytes}`, () => {
    throws(TypeError, () => new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(bytes)));
    is(new TextDecoder().decode(new Uint8Array(bytes)).includes("\ufffd"), true);
  });
}
test("textdecoder-fatal: it works again afterwards", () => {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  throws(TypeError, () => decoder.decode(new Uint8Array([226, 153])));
  is(decoder.decode(new Uint8Array([226, 153, 165])), "\u2665");
});
test("textdecoder-ignorebom: goes unless told", () => {
  const bytes = new Uint8Array([239, 187, 191, 97]);
  is(new TextDecoder().decode(bytes), "a");
  is(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes), "\ufeffa");
});
test("textdecoder-utf16: both orders, and a half", () => {
  is(new TextDecoder("utf-16le").decode(new Uint8Array([97, 0, 61, 216, 0, 222])), "a\u{1f600}");
  is(new TextDecoder("utf-16be").decode(new Uint8Array([0, 97])), "a");
  is(new TextDecoder("utf-16le").decode(new Uint8Array([97])), "\ufffd");
});
test("textdecoder-streaming: a character over two chunks", () => {
  const decoder = new TextDecoder();
  is(decoder.decode(new Uint8Array([226, 153]), { stream: true }), "");
  is(decoder.decode(new Uint8Array([165]), { stream: true }), "\u2665");
  is(decoder.decode(), "");
});
test("textdecoder-streaming: the end is flushed", () => {
  const decoder = new TextDecoder();
  decoder.decode(new Uint8Array([226]), { stream: true });
  is(decoder.decode(), "\ufffd");
});
test("textdecoder-arguments: what can be decoded", () => {
  is(new TextDecoder().decode(), "");
  is(new TextDecoder().decode(undefined), "");
  is(new TextDecoder().decode(new ArrayBuffer(2)), "\0\0");
  is(new TextDecoder().decode(new DataView(new Uint8Array([97, 98]).buffer, 1)), "b");
  is(new TextDecoder().decode(new Uint16Array([97])), "a\0");
  throws(TypeError, () => new TextDecoder().decode("a"));
  throws(TypeError, () => new TextDecoder().decode(null));
});
test("textdecoder-windows: latin 1 is windows-1252", () => is(new TextDecoder("latin1").decode(new Uint8Array([128, 233])), "\u20acé"));
test("textdecoder-mistakes: shift_jis", () => is(new TextDecoder("shift_jis").decode(new Uint8Array([130, 160])), "\u3042"));
test("encode-utf8 stream: a surrogate pair over two chunks", async () => {
  const stream = new TextEncoderStream();
  const writer = stream.writable.getWriter();
  writer.write("\ud83d");
  writer.write("\ude00");
  writer.close();
  const all = [];
  for await (const chunk of stream.readable) all.push(...chunk);
  same(all, [240, 159, 152, 128]);
});
test("decode-utf8 stream: a character over two chunks", async () => {
  const stream = new TextDecoderStream();
  const writer = stream.writable.getWriter();
  writer.write(new Uint8Array([226, 153]));
  writer.write(new Uint8Array([165]));
  writer.close();
  let text = "";
  for await (const chunk of stream.readable) text += chunk;
  is(text, "\u2665");
});
test("decode-bad-chunks: text is refused", async () => {
  const stream = new TextDecoderStream();
  const writer = stream.writable.getWriter();
  writer.closed.catch(() => {});
  const reading = stream.readable.getReader().read();
  reading.catch(() => {});
  await rejects(TypeError, writer.write("x"));
});
for (const [given, want] of [["", ""], ["abcd", "i·\x1d"], [" abcd", "i·\x1d"], ["ab", "i"], ["abc", "i·"], ["ab=\t=", "i"], ["YQ==", "a"], ["YQ", "a"], ["//A", "ÿð"], ["\nYQ\r", "a"], [12, "×"], [null, "\x9eée"], [NaN, "5£"]]) {
  test(`base64: atob(${typeof given === "string" ? JSON.stringify(given) : given})`, () => is(atob(given), want));
}
for (const given of ["a", "ab=", "abcde", "abcd=", "=", "ab===", "*", "-_", "A\0", "é", "{}"]) {
  test(`base64: atob(${JSON.stringify(given)}) throws`, () => throws("InvalidCharacterError", () => atob(given)));
}
for (const [given, want] of [["", ""], ["a", "YQ=="], ["ÿð", "//A="], ["ab", "YWI="], [null, "bnVsbA=="], [12, "MTI="], ["\0", "AA=="]]) {
  test(`base64: btoa(${JSON.stringify(given)})`, () => is(btoa(given), want));
}
test("base64: btoa of a character beyond 255 throws", () => throws("InvalidCharacterError", () => btoa("\u0100")));
test("base64: every byte there and back", () => {
  let all = "";
  for (let i = 0; i < 256; i++) all += String.fromCharCode(i);
  is(atob(btoa(all)), all);
});
