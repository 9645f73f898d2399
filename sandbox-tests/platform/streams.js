// Named after streams/*.
const collect = async (stream) => {
  const all = [];
  for await (const chunk of stream) all.push(chunk);
  return all;
};
const of = (...chunks) => new ReadableStream({ start(c) { chunks.forEach((chunk) => c.enqueue(chunk)); c.close(); } });
test("readable-streams/general: read to the end", async () => {
  const reader = of(1, 2).getReader();
  same([await reader.read(), await reader.read(), await reader.read()], [{ value: 1, done: false }, { value: 2, done: false }, { done: true }]);
  await reader.closed;
});
test("readable-streams/general: locked while it has a reader", () => {
  const s = new ReadableStream();
  const reader = s.getReader();
  is(s.locked, true);
  throws(TypeError, () => s.getReader());
  reader.releaseLock();
  is(s.locked, false);
});
test("readable-streams/general: start, pull, cancel are called in their time", async () => {
  const seen = [];
  const s = new ReadableStream({ start: () => { seen.push("start"); }, pull: () => { seen.push("pull"); }, cancel: (why) => { seen.push(`cancel ${why}`); } });
  await pause();
  await s.cancel("x");
  same(seen, ["start", "pull", "cancel x"]);
});
test("readable-streams/general: an error in start errors the stream", async () => {
  const error = new Error("e");
  throws(error, () => new ReadableStream({ start() { throw error; } }));
  await rejects(error, new ReadableStream({ start: () => Promise.reject(error) }).getReader().read());
});
test("readable-streams/general: an error in pull errors the stream", async () => {
  const error = new Error("e");
  await rejects(error, new ReadableStream({ pull() { throw error; } }).getReader().read());
});
test("readable-streams/general: enqueue after close throws", () => {
  new ReadableStream({ start(c) { c.close(); throws(TypeError, () => c.enqueue(1)); throws(TypeError, () => c.close()); } });
});
test("readable-streams/count-queuing-strategy: desiredSize", () => {
  new ReadableStream({ start(c) { is(c.desiredSize, 2); c.enqueue(1); is(c.desiredSize, 1); } }, new CountQueuingStrategy({ highWaterMark: 2 }));
});
test("byte-length-queuing-strategy: size of a chunk", () => {
  const s = new ByteLengthQueuingStrategy({ highWaterMark: 5 });
  same([s.highWaterMark, s.size(new Uint8Array(3)), new CountQueuingStrategy({ highWaterMark: 1 }).size()], [5, 3, 1]);
});
for (const highWaterMark of [-1, NaN, "x"]) {
  test(`readable-streams/bad-strategies: highWaterMark ${highWaterMark}`, () => throws(RangeError, () => new ReadableStream({}, { highWaterMark })));
}
test("readable-streams/bad-underlying-sources: a type that is unknown", () => throws(TypeError, () => new ReadableStream({ type: "x" })));
test("readable-streams/cancel: pending reads are done", async () => {
  const s = new ReadableStream();
  const reader = s.getReader();
  const reading = reader.read();
  await reader.cancel();
  same(await reading, { done: true });
});
test("readable-streams/default-reader: released, its reads reject", async () => {
  const reader = new ReadableStream().getReader();
  const reading = reader.read();
  reader.releaseLock();
  await rejects(TypeError, reading);
  await rejects(TypeError, reader.read());
  await rejects(TypeError, reader.closed);
});
test("readable-streams/tee: both get all", async () => {
  const [a, b] = of(1, 2).tee();
  same([await collect(a), await collect(b)], [[1, 2], [1, 2]]);
});
test("readable-streams/tee: cancelled when both are", async () => {
  let why;
  const [a, b] = new ReadableStream({ cancel(reason) { why = reason; } }).tee();
  const first = a.cancel("a");
  await b.cancel("b");
  await first;
  same(why, ["a", "b"]);
});
test("readable-streams/async-iterator: break cancels", async () => {
  let cancelled = false;
  const s = new ReadableStream({ pull(c) { c.enqueue(1); }, cancel() { cancelled = true; } });
  for await (const _ of s) break;
  same([cancelled, s.locked], [true, false]);
});
test("readable-streams/async-iterator: preventCancel leaves it", async () => {
  let cancelled = false;
  const s = new ReadableStream({ pull(c) { c.enqueue(1); }, cancel() { cancelled = true; } });
  for await (const _ of s.values({ preventCancel: true })) break;
  is(cancelled, false);
});
test("readable-streams/from: arrays and generators", async () => {
  same(await collect(ReadableStream.from([1, 2])), [1, 2]);
  same(await collect(ReadableStream.from((async function* () { yield 1; })())), [1]);
  throws(TypeError, () => ReadableStream.from(1));
});
test("readable-byte-streams/general: read into a view", async () => {
  const s = new ReadableStream({ type: "bytes", start(c) { c.enqueue(new Uint8Array([1, 2, 3])); c.close(); } });
  const reader = s.getReader({ mode: "byob" });
  same((await reader.read(new Uint8Array(2))).value, [1, 2]);
  same((await reader.read(new Uint8Array(2))).value, [3]);
  is((await reader.read(new Uint8Array(2))).done, true);
});
test("readable-byte-streams/respond: byobRequest", async () => {
  const s = new ReadableStream({ type: "bytes", pull(c) { c.byobRequest.view[0] = 7; c.byobRequest.respond(1); } });
  const reader = s.getReader({ mode: "byob" });
  same((await reader.read(new Uint8Array(4))).value, [7]);
});
test("readable-byte-streams/general: a view of no bytes rejects", async () => {
  const reader = new ReadableStream({ type: "bytes" }).getReader({ mode: "byob" });
  await rejects(TypeError, reader.read(new Uint8Array(0)));
});
test("readable-byte-streams/general: text rejects", () => {
  new ReadableStream({ type: "bytes", start(c) { throws(TypeError, () => c.enqueue("x")); } });
});
test("writable-streams/general: writes in order, then close", async () => {
  const seen = [];
  const writer = new WritableStream({ write: (chunk) => { seen.push(chunk); }, close: () => { seen.push("close"); } }).getWriter();
  writer.write(1);
  writer.write(2);
  await writer.close();
  same(seen, [1, 2, "close"]);
});
test("writable-streams/general: back pressure", async () => {
  let release;
  const writer = new WritableStream({ write: () => new Promise((resolve) => { release = resolve; }) }).getWriter();
  is(writer.desiredSize, 1);
  const writing = writer.write(1);
  is(writer.desiredSize, 0);
  await pause();
  release();
  await writing;
  await writer.ready;
  is(writer.desiredSize, 1);
});
test("writable-streams/aborting: abort rejects what waits", async () => {
  let why;
  const writer = new WritableStream({ abort: (reason) => { why = reason; } }).getWriter();
  await pause();
  await writer.abort("x");
  is(why, "x");
  let rejected;
  await writer.write(1).catch((error) => { rejected = error; });
  is(rejected, "x");
});
test("writable-streams/bad-underlying-sinks: an error in write errors it", async () => {
  const error = new Error("e");
  const writer = new WritableStream({ write() { throw error; } }).getWriter();
  writer.closed.catch(() => {});
  await rejects(error, writer.write(1));
  await rejects(error, writer.closed);
});
test("writable-streams/bad-underlying-sinks: a type is refused", () => throws(RangeError, () => new WritableStream({ type: "x" })));
test("writable-streams/close: after close, write rejects", async () => {
  const writer = new WritableStream().getWriter();
  await writer.close();
  await rejects(TypeError, writer.write(1));
});
test("transform-streams/general: identity", async () => {
  const { readable, writable } = new TransformStream();
  const writer = writable.getWriter();
  writer.write("a");
  writer.close();
  same(await collect(readable), ["a"]);
});
test("transform-streams/general: transform and flush", async () => {
  const t = new TransformStream({ transform: (chunk, c) => c.enqueue(chunk * 2), flush: (c) => c.enqueue("end") });
  same(await collect(of(1, 2).pipeThrough(t)), [2, 4, "end"]);
});
test("transform-streams/errors: an error in transform errors both sides", async () => {
  const error = new Error("e");
  const t = new TransformStream({ transform() { throw error; } });
  await rejects(error, collect(of(1).pipeThrough(t)));
});
test("transform-streams/terminate: the readable side ends", async () => {
  const t = new TransformStream({ transform: (chunk, c) => { c.enqueue(chunk); c.terminate(); } });
  const writer = t.writable.getWriter();
  writer.closed.catch(() => {});
  writer.write(1).catch(() => {});
  same(await collect(t.readable), [1]);
});
test("piping/general: to the end, both closed", async () => {
  const seen = [];
  await of(1, 2).pipeTo(new WritableStream({ write: (chunk) => { seen.push(chunk); } }));
  same(seen, [1, 2]);
});
test("piping/error-propagation-forward: the sink is aborted", async () => {
  const error = new Error("e");
  let why;
  const from = new ReadableStream({ start(c) { c.error(error); } });
  await rejects(error, from.pipeTo(new WritableStream({ abort: (reason) => { why = reason; } })));
  is(why, error);
});
test("piping/error-propagation-backward: the source is cancelled", async () => {
  const error = new Error("e");
  let why;
  const from = new ReadableStream({ pull(c) { c.enqueue(1); }, cancel: (reason) => { why = reason; } });
  await rejects(error, from.pipeTo(new WritableStream({ write() { throw error; } })));
  is(why, error);
});
test("piping/abort: by a signal", async () => {
  const c = new AbortController();
  const piping = new ReadableStream().pipeTo(new WritableStream(), { signal: c.signal });
  c.abort();
  await rejects("AbortError", piping);
});
test("piping/pipe-through: locks both", () => {
  const from = new ReadableStream();
  const t = new TransformStream();
  const to = from.pipeThrough(t);
  same([from.locked, t.writable.locked, to === t.readable], [true, true, true]);
});
test("piping/preventions: preventClose leaves the sink open", async () => {
  const sink = new WritableStream();
  await of(1).pipeTo(sink, { preventClose: true });
  await sink.getWriter().write(2);
});
test("queuing-strategies: highWaterMark is needed", () => {
  throws(TypeError, () => new CountQueuingStrategy());
  throws(TypeError, () => new CountQueuingStrategy({}));
});
test("readable-streams/constructor: null source throws", () => throws(TypeError, () => new ReadableStream(null)));
test("readable-streams/controller: cannot be made", () => {
  throws(TypeError, () => new ReadableStreamDefaultController());
  throws(TypeError, () => new ReadableByteStreamController());
  throws(TypeError, () => new ReadableStreamBYOBRequest());
});
test("readable-streams/tags", () => same([of(), new WritableStream(), new TransformStream()].map(String), ["[object ReadableStream]", "[object WritableStream]", "[object TransformStream]"]));
