// Puts the globals together, takes away what a module must not find and leaves
// four functions for the worker. Runs once, while the snapshot is made; what
// only a live process has (its clock, its randomness) is read when it is used.
(function () {
const { core, primordials } = __bootstrap;
const {
  FunctionPrototype,
  globalThis,
  JSONParse,
  JSONStringify,
  ObjectDefineProperty,
  ObjectFreeze,
  PromisePrototype,
  ReflectApply,
  ReflectDeleteProperty,
  ReflectOwnKeys,
  SymbolFor,
  TypeError,
} = primordials;
const {
  op_cambium_failed,
  op_cambium_now,
  op_cambium_random_unit,
} = core.ops;
const base = core.loadExtScript("ext:cambium/base.js");
const url = core.loadExtScript("ext:deno_web/00_url.js");
const domException = core.loadExtScript("ext:deno_web/01_dom_exception.js");
const event = core.loadExtScript("ext:deno_web/02_event.js");
// Called without `this`, which they refuse to have.
const { clearInterval, clearTimeout, setInterval, setTimeout } = core.loadExtScript(
  "ext:deno_web/02_timers.js",
);
const abort = core.loadExtScript("ext:deno_web/03_abort_signal.js");
const base64 = core.loadExtScript("ext:deno_web/05_base64.js");
const streams = core.loadExtScript("ext:deno_web/06_streams.js");
const encoding = core.loadExtScript("ext:deno_web/08_text_encoding.js");
const file = core.loadExtScript("ext:deno_web/09_file.js");
const port = core.loadExtScript("ext:deno_web/13_message_port.js");
const body = core.loadExtScript("ext:cambium/body.js");
const fetching = core.loadExtScript("ext:cambium/fetch.js");
const { console } = core.loadExtScript("ext:cambium/console.js");
const { crypto, CryptoKey } = core.loadExtScript("ext:cambium/crypto.js");

const { DOMException } = domException;
for (const name of ["InvalidCharacterError", "DataCloneError", "NotSupportedError", "AbortError"]) {
  core.registerErrorBuilder(
    `DOMException${name}`,
    (message) => new DOMException(message, name),
  );
}

// A failure outside the tool's own promise ends the run: a rejection nobody
// handles, or an error in a timer, a microtask or an event listener.
function failed(error) {
  const { message, stack } = base.describe(error);
  op_cambium_failed(message, stack);
}
core.setUnhandledPromiseRejectionHandler((_promise, reason) => {
  failed(reason);
  return true;
});
core.setReportExceptionCallback(failed);
event.saveGlobalThisReference({
  __proto__: null,
  dispatchEvent(report) {
    failed(report.error);
    return false;
  },
});

function callback(given, rest) {
  if (typeof given !== "function") throw new TypeError("a function is needed, not a string");
  return () => {
    try {
      ReflectApply(given, undefined, rest);
    } catch (error) {
      failed(error);
    }
  };
}
const nativeQueueMicrotask = globalThis.queueMicrotask;
const delay = (value) => {
  const number = +value;
  return number > 0 ? (number < 2147483647 ? number : 2147483647) : 0;
};

const functions = {
  atob: base64.atob,
  btoa: base64.btoa,
  clearInterval: (id) => clearInterval(+id || 0),
  clearTimeout: (id) => clearTimeout(+id || 0),
  queueMicrotask: (given) => nativeQueueMicrotask(callback(given, [])),
  reportError: (error) => failed(error),
  setInterval: (given, wait, ...rest) => setInterval(callback(given, rest), delay(wait)),
  setTimeout: (given, wait, ...rest) => setTimeout(callback(given, rest), delay(wait)),
  // Nothing can be moved: it would take the machinery of message ports.
  structuredClone(value, options = undefined) {
    if (arguments.length < 1) throw new TypeError("structuredClone needs 1 argument");
    const transfer = options === undefined || options === null ? undefined : options.transfer;
    if (transfer !== undefined && transfer.length !== 0) {
      throw new DOMException("nothing can be transferred here", "DataCloneError");
    }
    return port.structuredClone(value);
  },
};

const classes = {
  AbortController: abort.AbortController,
  AbortSignal: abort.AbortSignal,
  Blob: file.Blob,
  ByteLengthQueuingStrategy: streams.ByteLengthQueuingStrategy,
  CountQueuingStrategy: streams.CountQueuingStrategy,
  CryptoKey,
  CustomEvent: event.CustomEvent,
  DOMException,
  ErrorEvent: event.ErrorEvent,
  Event: event.Event,
  EventTarget: event.EventTarget,
  File: file.File,
  FormData: body.FormData,
  Headers: fetching.Headers,
  ReadableByteStreamController: streams.ReadableByteStreamController,
  ReadableStream: streams.ReadableStream,
  ReadableStreamBYOBReader: streams.ReadableStreamBYOBReader,
  ReadableStreamBYOBRequest: streams.ReadableStreamBYOBRequest,
  ReadableStreamDefaultController: streams.ReadableStreamDefaultController,
  ReadableStreamDefaultReader: streams.ReadableStreamDefaultReader,
  Request: fetching.Request,
  Response: fetching.Response,
  TextDecoder: encoding.TextDecoder,
  TextDecoderStream: encoding.TextDecoderStream,
  TextEncoder: encoding.TextEncoder,
  TextEncoderStream: encoding.TextEncoderStream,
  TransformStream: streams.TransformStream,
  TransformStreamDefaultController: streams.TransformStreamDefaultController,
  URL: url.URL,
  URLSearchParams: url.URLSearchParams,
  WritableStream: streams.WritableStream,
  WritableStreamDefaultController: streams.WritableStreamDefaultController,
  WritableStreamDefaultWriter: streams.WritableStreamDefaultWriter,
};

// Without the mark a clone of one of ours would be an empty object.
for (const name of ["CryptoKey", "FormData", "Headers", "Request", "Response"]) {
  port.markNotSerializable(classes[name].prototype);
}

// The blob store is one process's, and a process is one run's; without a
// scheme to load it an object URL is of no use.
ReflectDeleteProperty(url.URL, "createObjectURL");
ReflectDeleteProperty(url.URL, "revokeObjectURL");

function define(name, value) {
  ObjectDefineProperty(globalThis, name, {
    __proto__: null,
    value,
    writable: true,
    enumerable: false,
    configurable: true,
  });
}

// Inspection hooks of another runtime's console.
const hidden = ["Deno.privateCustomInspect", "Deno.customInspect", "nodejs.util.inspect.custom"];
function unhook(target) {
  for (const key of hidden) ReflectDeleteProperty(target, SymbolFor(key));
}

for (const name of ReflectOwnKeys(functions)) define(name, functions[name]);
for (const name of ReflectOwnKeys(classes)) {
  define(name, classes[name]);
  unhook(classes[name]);
  if (classes[name].prototype) unhook(classes[name].prototype);
}
define("console", console);
define("crypto", crypto);
define("performance", { now: () => op_cambium_now(), timeOrigin: 0 });
define("self", globalThis);

// Every random number a module sees is drawn in its own process.
ObjectDefineProperty(globalThis.Math, "random", {
  __proto__: null,
  value: function random() {
    return op_cambium_random_unit();
  },
  writable: true,
  enumerable: false,
  configurable: true,
});

// What the glue and deno_core's own scripts look up while a module runs, where
// a module must not stand in between: `await` reads a promise's constructor,
// and an asynchronous operation is called by its `call`, which would hand the
// operation itself to whoever replaced that.
for (const [holder, name] of [[PromisePrototype, "constructor"], [FunctionPrototype, "call"]]) {
  ObjectDefineProperty(holder, name, {
    __proto__: null,
    value: holder[name],
    writable: false,
    enumerable: false,
    configurable: false,
  });
}

// Calls the tool: its own promise comes back, untouched.
function call(tool, input, slug, vendor, displayName, proxyBase) {
  const ctx = ObjectFreeze({
    connection: ObjectFreeze({ slug, vendor, displayName }),
    fetch: ObjectFreeze((path, init = undefined) => fetching.contextFetch(path, init)),
    proxyBase,
    // What the proxy replaces by the credential; worth nothing anywhere else.
    proxyKey: "cambium-proxy-key",
  });
  define("fetch", (input, init = undefined) => fetching.sdkFetch(proxyBase, input, init));
  return ReflectApply(tool, undefined, [ctx, JSONParse(input)]);
}

// A returned value as JSON text, or, for a Response, the promise of its parts.
// Undefined when its text is sure to be longer than `most`.
function settle(value, most) {
  if (fetching.isResponse(value)) return fetching.passOn(value);
  if (value === undefined) return "null";
  if (base.textAtLeast(value, most) > most) return undefined;
  const text = JSONStringify(value);
  if (text === undefined) throw new TypeError(`the result is a ${typeof value}, which JSON cannot carry`);
  return text;
}

function describe(error) {
  const { message, stack } = base.describe(error);
  return [message, stack];
}

globalThis.__cambium = { __proto__: null, call, describe, settle };
})();
