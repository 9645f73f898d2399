// Named after dom/events/*, dom/abort/*, html/webappapis/timers/*, webidl/dom-exception.
test("Event-constructors: defaults and given", () => {
  const e = new Event("a");
  same([e.type, e.bubbles, e.cancelable, e.composed, e.defaultPrevented, e.eventPhase, e.target, e.isTrusted], ["a", false, false, false, false, 0, null, false]);
  const f = new Event("b", { bubbles: true, cancelable: true });
  same([f.bubbles, f.cancelable], [true, true]);
  throws(TypeError, () => new Event());
});
test("Event-constants: phases", () => same([Event.NONE, Event.CAPTURING_PHASE, Event.AT_TARGET, Event.BUBBLING_PHASE], [0, 1, 2, 3]));
test("Event-timestamp: a number", () => is(typeof new Event("a").timeStamp, "number"));
test("CustomEvent: detail", () => is(new CustomEvent("a", { detail: 5 }).detail, 5));
test("ErrorEvent: what it carries", () => {
  const error = new Error("x");
  const e = new ErrorEvent("error", { error, message: "m", lineno: 3 });
  same([e.error === error, e.message, e.lineno], [true, "m", 3]);
});
test("EventTarget-constructible: can be made and extended", () => {
  class Mine extends EventTarget {}
  let got = 0;
  const t = new Mine();
  t.addEventListener("a", () => got++);
  is(t.dispatchEvent(new Event("a")), true);
  is(got, 1);
});
test("EventTarget-addEventListener: the same twice is once; null is nothing", () => {
  const t = new EventTarget();
  let n = 0;
  const f = () => n++;
  t.addEventListener("a", f);
  t.addEventListener("a", f);
  t.addEventListener("a", null);
  t.dispatchEvent(new Event("a"));
  is(n, 1);
});
test("AddEventListenerOptions-once: called once", () => {
  const t = new EventTarget();
  let n = 0;
  t.addEventListener("a", () => n++, { once: true });
  t.dispatchEvent(new Event("a"));
  t.dispatchEvent(new Event("a"));
  is(n, 1);
});
test("AddEventListenerOptions-signal: removed on abort", () => {
  const t = new EventTarget();
  const c = new AbortController();
  let n = 0;
  t.addEventListener("a", () => n++, { signal: c.signal });
  c.abort();
  t.dispatchEvent(new Event("a"));
  is(n, 0);
});
test("AddEventListenerOptions-passive: preventDefault does nothing", () => {
  const t = new EventTarget();
  t.addEventListener("a", (e) => e.preventDefault(), { passive: true });
  is(t.dispatchEvent(new Event("a", { cancelable: true })), true);
});
test("EventTarget-dispatchEvent: false when prevented", () => {
  const t = new EventTarget();
  t.addEventListener("a", (e) => e.preventDefault());
  is(t.dispatchEvent(new Event("a", { cancelable: true })), false);
  is(t.dispatchEvent(new Event("a")), true);
});
test("EventTarget-dispatchEvent: again while dispatched throws", () => {
  const t = new EventTarget();
  const e = new Event("a");
  let error;
  t.addEventListener("a", () => { try { t.dispatchEvent(e); } catch (caught) { error = caught; } });
  t.dispatchEvent(e);
  is(error.name, "InvalidStateError");
});
test("EventTarget-dispatchEvent: what is no event throws", () => throws(TypeError, () => new EventTarget().dispatchEvent({})));
test("EventTarget-handleEvent: an object's method, looked up late", () => {
  const t = new EventTarget();
  const got = [];
  const listener = { handleEvent: 1 };
  t.addEventListener("a", listener);
  listener.handleEvent = function (e) { got.push(this === listener, e.target === t, e.currentTarget === t, e.eventPhase); };
  t.dispatchEvent(new Event("a"));
  same(got, [true, true, true, 2]);
});
test("EventTarget-removeEventListener: by capture too", () => {
  const t = new EventTarget();
  let n = 0;
  const f = () => n++;
  t.addEventListener("a", f, true);
  t.removeEventListener("a", f, false);
  t.dispatchEvent(new Event("a"));
  t.removeEventListener("a", f, true);
  t.dispatchEvent(new Event("a"));
  is(n, 1);
});
test("Event-stopImmediatePropagation: later listeners are not called", () => {
  const t = new EventTarget();
  let n = 0;
  t.addEventListener("a", (e) => e.stopImmediatePropagation());
  t.addEventListener("a", () => n++);
  t.dispatchEvent(new Event("a"));
  is(n, 0);
});
test("Event-composedPath: the target while dispatched, then empty", () => {
  const t = new EventTarget();
  let path;
  const e = new Event("a");
  t.addEventListener("a", () => { path = e.composedPath(); });
  t.dispatchEvent(e);
  same([path.length, path[0] === t, e.composedPath().length, e.currentTarget], [1, true, 0, null]);
});
test("AbortSignal: abort once, with its reason", () => {
  const c = new AbortController();
  let n = 0;
  c.signal.onabort = () => n++;
  c.signal.addEventListener("abort", () => n++);
  same([c.signal.aborted, c.signal.reason === undefined], [false, true]);
  c.abort("why");
  c.abort("again");
  same([n, c.signal.aborted, c.signal.reason], [2, true, "why"]);
});
test("AbortSignal: the reason is an AbortError unless given", () => {
  const c = new AbortController();
  c.abort();
  is(c.signal.reason.name, "AbortError");
  is(c.signal.reason instanceof DOMException, true);
});
test("AbortSignal: throwIfAborted", () => {
  const c = new AbortController();
  c.signal.throwIfAborted();
  c.abort("x");
  let got;
  try { c.signal.throwIfAborted(); } catch (error) { got = error; }
  is(got, "x");
});
test("abort-signal-static-abort: aborted at once", () => {
  same([AbortSignal.abort().aborted, AbortSignal.abort("r").reason], [true, "r"]);
});
test("abort-signal-timeout: a TimeoutError", async () => {
  const s = AbortSignal.timeout(1);
  is(s.aborted, false);
  await new Promise((resolve) => s.addEventListener("abort", resolve));
  is(s.reason.name, "TimeoutError");
});
test("abort-signal-any: the first that aborts", () => {
  const [a, b] = [new AbortController(), new AbortController()];
  const s = AbortSignal.any([a.signal, b.signal]);
  b.abort("b");
  a.abort("a");
  same([s.aborted, s.reason], [true, "b"]);
  same([AbortSignal.any([]).aborted, AbortSignal.any([AbortSignal.abort("c")]).reason], [false, "c"]);
});
test("AbortSignal: cannot be made", () => throws(TypeError, () => new AbortSignal()));
test("AbortController: tags", () => {
  is(Object.prototype.toString.call(new AbortController()), "[object AbortController]");
  is(Object.prototype.toString.call(new AbortController().signal), "[object AbortSignal]");
});
test("DOMException: name, message, code", () => {
  const e = new DOMException("m", "NotFoundError");
  same([e.name, e.message, e.code, e instanceof Error, String(e)], ["NotFoundError", "m", 8, true, "NotFoundError: m"]);
  same([new DOMException().name, new DOMException().message, new DOMException("", "x").code], ["Error", "", 0]);
});
for (const [name, code] of [["IndexSizeError", 1], ["InvalidCharacterError", 5], ["NotSupportedError", 9], ["InvalidStateError", 11], ["SyntaxError", 12], ["TypeMismatchError", 17], ["SecurityError", 18], ["NetworkError", 19], ["AbortError", 20], ["QuotaExceededError", 22], ["TimeoutError", 23], ["DataCloneError", 25]]) {
  test(`DOMException-constants: ${name} is ${code}`, () => is(new DOMException("", name).code, code));
}
test("DOMException: constants of class and prototype", () => same([DOMException.ABORT_ERR, DOMException.prototype.DATA_CLONE_ERR], [20, 25]));
test("timers: order by time, arguments passed", async () => {
  const seen = [];
  setTimeout((...rest) => seen.push(rest), 5, "a", 1);
  setTimeout(() => seen.push("first"), 1);
  await pause(10);
  same(seen, ["first", ["a", 1]]);
});
test("timers: cleared ones do not run", async () => {
  let n = 0;
  clearTimeout(setTimeout(() => n++, 1));
  clearInterval(setTimeout(() => n++, 1));
  clearTimeout(undefined);
  clearTimeout(-1);
  clearTimeout("x");
  await pause(5);
  is(n, 0);
});
test("timers: negative and missing delays are zero", async () => {
  await new Promise((resolve) => setTimeout(resolve, -10));
  await new Promise((resolve) => setTimeout(resolve));
  await new Promise((resolve) => setTimeout(resolve, NaN));
});
test("timers: an interval goes on until cleared, from inside too", async () => {
  let n = 0;
  await new Promise((resolve) => {
    const id = setInterval(() => { if (++n === 3) { clearInterval(id); resolve(); } }, 1);
  });
  await pause(5);
  is(n, 3);
});
test("timers: ids are positive numbers", () => {
  const id = setTimeout(() => {}, 0);
  is(Number.isInteger(id) && id > 0, true);
  clearTimeout(id);
});
test("timers: same delay keeps the order", async () => {
  const seen = [];
  for (let i = 0; i < 5; i++) setTimeout(() => seen.push(i), 1);
  await pause(10);
  same(seen, [0, 1, 2, 3, 4]);
});
test("timers: text is refused, never run", () => throws(TypeError, () => setTimeout("1", 0)));
test("queue-microtask: before any timer, in order", async () => {
  const seen = [];
  setTimeout(() => seen.push("t"), 0);
  queueMicrotask(() => seen.push("m"));
  Promise.resolve().then(() => seen.push("p"));
  await pause(5);
  same(seen, ["m", "p", "t"]);
});
test("queue-microtask: a function is needed", () => throws(TypeError, () => queueMicrotask({})));
test("self: is the global object", () => is(self, globalThis));
test("performance: now rises, timeOrigin is a number", async () => {
  const before = performance.now();
  await pause(3);
  is(performance.now() >= before + 2, true);
  is(typeof performance.timeOrigin, "number");
});
test("performance: now is whole milliseconds", () => is(Number.isInteger(performance.now()), true));
test("console: every method of the standard", () => {
  for (const name of ["assert", "clear", "count", "countReset", "debug", "dir", "dirxml", "error", "group", "groupCollapsed", "groupEnd", "info", "log", "table", "time", "timeEnd", "timeLog", "trace", "warn"]) {
    is(typeof console[name], "function", name);
  }
});
test("globals: not enumerable", () => same(Object.keys(globalThis).filter((name) => ["URL", "fetch", "Headers"].includes(name)), []));
