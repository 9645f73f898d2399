// `console`: lines of text handed to the run's log, bounded here and capped on
// the other side of the op. Nothing of the value a module logs is kept.
(function () {
const { core, primordials } = __bootstrap;
const { StringPrototypeSlice } = primordials;
const { op_cambium_log } = core.ops;
const { show } = core.loadExtScript("ext:cambium/base.js");

// Longest line, characters; the rest is counted as dropped.
const LINE = 16384;

function line(level, values, from) {
  let text = level;
  for (let i = from; i < values.length && text.length <= LINE; i++) {
    text += i === from ? show(values[i]) : ` ${show(values[i])}`;
  }
  const over = text.length > LINE ? text.length - LINE : 0;
  op_cambium_log(StringPrototypeSlice(text, 0, LINE), over);
}

const console = {
  log: (...values) => line("", values, 0),
  info: (...values) => line("", values, 0),
  debug: (...values) => line("", values, 0),
  dir: (...values) => line("", values, 0),
  dirxml: (...values) => line("", values, 0),
  table: (...values) => line("", values, 0),
  group: (...values) => line("", values, 0),
  groupCollapsed: (...values) => line("", values, 0),
  warn: (...values) => line("warn: ", values, 0),
  error: (...values) => line("error: ", values, 0),
  trace: (...values) => line("trace: ", values, 0),
  assert: (condition, ...values) => {
    if (!condition) line("assertion failed: ", values, 0);
  },
  groupEnd() {},
  time() {},
  timeEnd() {},
  timeLog() {},
  count() {},
  countReset() {},
  clear() {},
};

return { __proto__: null, console };
})();
