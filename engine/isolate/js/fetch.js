// Request, Response, `ctx.fetch` and the global `fetch`. A request is turned
// into one plain message here and nothing else: where it may go, with which
// method and credential, is decided by the proxy on the other side of the
// socket.
(function () {
const { core, primordials } = __bootstrap;
const {
  encodeURIComponent,
  JSONStringify,
  ObjectPrototypeIsPrototypeOf,
  ReflectApply,
  RangeError,
  String,
  StringPrototypeCharCodeAt,
  StringPrototypeIndexOf,
  StringPrototypeSlice,
  StringPrototypeStartsWith,
  SymbolToStringTag,
  TypeError,
} = primordials;
const { op_cambium_cancel, op_cambium_fetch, op_cambium_head } = core.ops;
const { asciiLower, asciiUpper, isPrimitive, ownData, ownEntries, plainObject, primitiveText } =
  core.loadExtScript("ext:cambium/base.js");
const { define, headerPairs, Headers, isToken, toHeaders } = core.loadExtScript("ext:cambium/headers.js");
const { bodyUsed, consume, inner, mixBody, refused, takeBody, tee } = core.loadExtScript("ext:cambium/body.js");
const { AbortSignalPrototype, add, newSignal, remove } = core.loadExtScript(
  "ext:deno_web/03_abort_signal.js",
);
const { URL, URLPrototype, URLSearchParamsPrototype } = core.loadExtScript("ext:deno_web/00_url.js");
const urlHref = primordials.ReflectGetOwnPropertyDescriptor(URLPrototype, "href").get;
const urlUsername = primordials.ReflectGetOwnPropertyDescriptor(URLPrototype, "username").get;
const urlPassword = primordials.ReflectGetOwnPropertyDescriptor(URLPrototype, "password").get;
const searchParamsText = URLSearchParamsPrototype.toString;
const abortedOf = primordials.ReflectGetOwnPropertyDescriptor(AbortSignalPrototype, "aborted").get;
const reasonOf = primordials.ReflectGetOwnPropertyDescriptor(AbortSignalPrototype, "reason").get;

// Statuses whose replies have no body.
const NO_BODY = { __proto__: null, 101: true, 103: true, 204: true, 205: true, 304: true };

// The methods the Fetch standard upper-cases, and PATCH; all others stay as
// written and the proxy refuses what is not a method it sends.
const KNOWN = {
  __proto__: null,
  GET: true, HEAD: true, POST: true, PUT: true, PATCH: true, DELETE: true, OPTIONS: true,
};

function methodOf(value) {
  if (value === undefined) return "GET";
  if (typeof value !== "string") throw new TypeError("method must be a string");
  if (value.length > 16) return StringPrototypeSlice(value, 0, 17);
  const upper = asciiUpper(value);
  return KNOWN[upper] === true ? upper : value;
}

// A method of the Request class: the standard's set is upper-cased, PATCH is not,
// and what no fetch may send is refused here already.
function requestMethod(value) {
  const method = String(value);
  if (!isToken(method)) throw new TypeError("the method is not one");
  const upper = asciiUpper(method);
  if (upper === "CONNECT" || upper === "TRACE" || upper === "TRACK") {
    throw new TypeError(`the method ${upper} cannot be used`);
  }
  return upper !== "PATCH" && KNOWN[upper] === true ? upper : method;
}

function isSignal(value) {
  return value !== null && typeof value === "object" && !core.isProxy(value) &&
    ObjectPrototypeIsPrototypeOf(AbortSignalPrototype, value);
}

function signalOf(value) {
  if (value === undefined || value === null) return null;
  if (!isSignal(value)) throw new TypeError("signal must be an AbortSignal");
  return value;
}

function isSearchParams(value) {
  return value !== null && typeof value === "object" && !core.isProxy(value) &&
    ObjectPrototypeIsPrototypeOf(URLSearchParamsPrototype, value);
}

function withQuery(path, query) {
  if (query === undefined || query === null) return path;
  let text = "";
  if (typeof query === "string") text = query[0] === "?" ? StringPrototypeSlice(query, 1) : query;
  else if (isSearchParams(query)) text = ReflectApply(searchParamsText, query, []);
  else {
    const entries = ownEntries(query, "query");
    for (let i = 0; i < entries.length; i++) {
      const key = encodeURIComponent(entries[i][0]);
      const value = entries[i][1];
      if (value === undefined || value === null) continue;
      const many = primordials.ArrayIsArray(value) && !core.isProxy(value);
      const count = many ? value.length : 1;
      for (let j = 0; j < count; j++) {
        const one = many ? ownData(value, j, "query") : value;
        if (!isPrimitive(one)) {
          throw new TypeError(`query.${entries[i][0]} must be a string, number or boolean`);
        }
        text += `${text === "" ? "" : "&"}${key}=${encodeURIComponent(primitiveText(one))}`;
      }
    }
  }
  if (text === "") return path;
  return `${path}${StringPrototypeIndexOf(path, "?") < 0 ? "?" : "&"}${text}`;
}

let responseState;
let makeResponse;
let isResponse;

class Response {
  #state;

  constructor(body = undefined, init = undefined) {
    const given = init === undefined || init === null ? null : plainObject(init, "init");
    const status = given === null ? undefined : ownData(given, "status", "init");
    const statusText = given === null ? undefined : ownData(given, "statusText", "init");
    const headers = given === null ? undefined : ownData(given, "headers", "init");
    const number = status === undefined ? 200 : +status;
    if (!(number >= 200 && number <= 599)) throw new RangeError("status must be 200 to 599");
    const reason = statusText === undefined ? "" : String(statusText);
    for (let i = 0; i < reason.length; i++) {
      const code = StringPrototypeCharCodeAt(reason, i);
      if (code > 255 || code === 127 || (code < 32 && code !== 9)) {
        throw new TypeError("statusText has a character it may not have");
      }
    }
    const taken = takeBody(body, false);
    if (taken.inner !== null && NO_BODY[number] === true) {
      throw new TypeError(`a response with status ${number} has no body`);
    }
    const ours = toHeaders(headers ?? undefined);
    if (taken.type !== null && headersGet(ours, "content-type") === null) {
      headersSet(ours, "content-type", taken.type);
    }
    this.#state = state(number | 0, reason, ours, taken.inner, "");
  }

  get status() {
    return this.#state.status;
  }

  get ok() {
    return this.#state.status >= 200 && this.#state.status < 300;
  }

  get statusText() {
    return this.#state.statusText;
  }

  get headers() {
    return this.#state.headers;
  }

  get url() {
    return this.#state.url;
  }

  get type() {
    if (this.#state.status === 0) return "error";
    return this.#state.url === "" ? "default" : "basic";
  }

  get redirected() {
    return false;
  }

  clone() {
    const from = this.#state;
    const body = tee(from.body);
    return makeResponse(state(from.status, from.statusText, new Headers(from.headers), body, from.url));
  }

  static json(value, init = undefined) {
    const text = JSONStringify(value);
    if (text === undefined) throw new TypeError(`JSON cannot carry a ${typeof value}`);
    const response = new Response(text, init);
    const headers = response.#state.headers;
    // What the constructor added for a string is not what the caller chose.
    if (headersGet(headers, "content-type") === "text/plain;charset=UTF-8") {
      headersSet(headers, "content-type", "application/json");
    }
    return response;
  }

  static error() {
    return makeResponse(state(0, "", new Headers(), null, ""));
  }

  static redirect(url, status = 302) {
    const headers = new Headers();
    headersSet(headers, "location", ReflectApply(urlHref, new URL(url), []));
    const number = status | 0;
    if (number !== 301 && number !== 302 && number !== 303 && number !== 307 && number !== 308) {
      throw new RangeError("the status of a redirect is 301, 302, 303, 307 or 308");
    }
    return makeResponse(state(number, "", headers, null, ""));
  }

  get [SymbolToStringTag]() {
    return "Response";
  }

  static {
    responseState = (response) => response.#state;
    isResponse = (value) => value !== null && typeof value === "object" && #state in value;
    makeResponse = (made) => {
      const response = new Response();
      response.#state = made;
      return response;
    };
  }
}

function state(status, statusText, headers, body, url) {
  return { __proto__: null, status, statusText, headers, body, url };
}

mixBody(
  Response.prototype,
  (response) => responseState(response).body,
  (response) => headersGet(responseState(response).headers, "content-type") ?? "",
);
const headersGetMethod = Headers.prototype.get;
const headersSetMethod = Headers.prototype.set;
const headersAppendMethod = Headers.prototype.append;
function headersGet(headers, name) {
  return ReflectApply(headersGetMethod, headers, [name]);
}
function headersSet(headers, name, value) {
  ReflectApply(headersSetMethod, headers, [name, value]);
}

let requestState;
let isRequest;

class Request {
  #state;

  constructor(input, init = undefined) {
    this.#state = requestFrom(input, init);
  }

  get method() {
    return this.#state.method;
  }

  get url() {
    return this.#state.url;
  }

  get headers() {
    return this.#state.headers;
  }

  get signal() {
    return this.#state.signal ??= newSignal();
  }

  get redirect() {
    return "follow";
  }

  // What the standard lists and a request here cannot choose.
  get cache() {
    return "default";
  }

  get credentials() {
    return "same-origin";
  }

  get destination() {
    return "";
  }

  get duplex() {
    return "half";
  }

  get integrity() {
    return "";
  }

  get keepalive() {
    return false;
  }

  get mode() {
    return "cors";
  }

  get referrer() {
    return "about:client";
  }

  clone() {
    const from = this.#state;
    const copy = new Request(from.url);
    copy.#state = {
      __proto__: null,
      method: from.method,
      url: from.url,
      headers: new Headers(from.headers),
      body: tee(from.body),
      signal: from.signal,
    };
    return copy;
  }

  get [SymbolToStringTag]() {
    return "Request";
  }

  static {
    requestState = (request) => request.#state;
    isRequest = (value) => value !== null && typeof value === "object" && #state in value;
  }
}

mixBody(
  Request.prototype,
  (request) => requestState(request).body,
  (request) => headersGet(requestState(request).headers, "content-type") ?? "",
);

// An absolute URL as text, normalised by the URL standard.
function absolute(input) {
  const given = input !== null && typeof input === "object" &&
      ObjectPrototypeIsPrototypeOf(URLPrototype, input)
    ? ReflectApply(urlHref, input, [])
    : input;
  if (typeof given !== "string") {
    throw new TypeError("the first argument must be a URL or a Request");
  }
  const url = new URL(given);
  if (ReflectApply(urlUsername, url, []) !== "" || ReflectApply(urlPassword, url, []) !== "") {
    throw new TypeError("a URL with a user name or password cannot be requested");
  }
  return ReflectApply(urlHref, url, []);
}

// SDKs hand over inits of their own making, so getters are read once here.
function requestFrom(input, init) {
  const from = isRequest(input) ? requestState(input) : null;
  const given = init === undefined || init === null ? null : init;
  const part = (name) => given === null ? undefined : given[name];
  const method = part("method");
  const headers = part("headers");
  const body = part("body");
  const signal = signalOf(part("signal"));
  const url = from === null ? absolute(input) : from.url;
  const chosen = method === undefined ? (from === null ? "GET" : from.method) : requestMethod(method);
  if (body !== undefined && body !== null && (chosen === "GET" || chosen === "HEAD")) {
    throw new TypeError(`a ${chosen} request has no body`);
  }
  const taken = takeBody(body, false);
  if (taken.inner !== null && taken.inner.stream !== null && part("duplex") !== "half") {
    throw new TypeError("a body that is a stream needs `duplex: \"half\"`");
  }
  let moved = taken.inner;
  if (moved === null && from !== null && from.body !== null) {
    if (bodyUsed(from.body)) throw new TypeError("the body was already read");
    moved = inner(from.body.bytes, from.body.stream, from.body.reply);
    from.body.used = true;
  }
  const ours = new Headers(headers ?? (from === null ? undefined : from.headers));
  if (taken.type !== null && headersGet(ours, "content-type") === null) {
    headersSet(ours, "content-type", taken.type);
  }
  return {
    __proto__: null,
    method: chosen,
    url,
    headers: ours,
    body: moved,
    signal: signal ?? (from === null ? null : from.signal),
  };
}

// Sends one request and waits for the reply's head.
async function send(method, host, target, sdk, headers, body, signal) {
  if (signal !== null && ReflectApply(abortedOf, signal, [])) {
    throw ReflectApply(reasonOf, signal, []);
  }
  const pairs = headerPairs(headers);
  const names = [];
  for (let i = 0; i < pairs.length; i++) {
    define(names, i * 2, pairs[i][0]);
    define(names, i * 2 + 1, pairs[i][1]);
  }
  // Taken before the first await, so that what is sent is what was passed.
  const held = body === null ? null : consume(body);
  const bytes = held === null ? null : await held;
  if (signal !== null && ReflectApply(abortedOf, signal, [])) {
    throw ReflectApply(reasonOf, signal, []);
  }
  const stream = op_cambium_fetch(method, host, target, sdk, names, bytes);
  const abort = () => op_cambium_cancel(stream);
  if (signal !== null) signal[add](abort);
  const head = await op_cambium_head(stream);
  if (head.fault) {
    if (signal !== null && ReflectApply(abortedOf, signal, [])) {
      throw ReflectApply(reasonOf, signal, []);
    }
    throw refused(head.fault);
  }
  if (signal !== null && head.ended) signal[remove](abort);
  const made = new Headers();
  const flat = head.headers;
  for (let i = 0; i + 1 < flat.length; i += 2) append(made, flat[i], flat[i + 1]);
  const answered = NO_BODY[head.status] === true ? null : inner(null, null, stream);
  if (answered === null) op_cambium_cancel(stream);
  return makeResponse(state(head.status, "", made, answered, target));
}
function append(headers, name, value) {
  ReflectApply(headersAppendMethod, headers, [name, value]);
}

// `ctx.fetch`: a path of the run's own connection.
function contextFetch(path, init = undefined) {
  if (typeof path !== "string") throw new TypeError("the path must be a string");
  const given = init === undefined || init === null ? null : plainObject(init, "init");
  const part = (name) => given === null ? undefined : ownData(given, name, "init");
  const method = methodOf(part("method"));
  const headers = toHeaders(part("headers") ?? undefined);
  const host = part("host") ?? null;
  if (host !== null && typeof host !== "string") throw new TypeError("host must be a string");
  const target = withQuery(path, part("query"));
  const signal = signalOf(part("signal"));
  const body = takeBody(part("body"), true);
  if (body.type !== null && headersGet(headers, "content-type") === null) {
    headersSet(headers, "content-type", body.type);
  }
  return send(method, host, target, false, headers, body.inner, signal);
}

// The global `fetch` an SDK finds: the primary origin only, marked as such.
function sdkFetch(base, input, init) {
  const request = requestFrom(input, init);
  if (request.url !== base && !StringPrototypeStartsWith(request.url, `${base}/`)) {
    throw refused({
      __proto__: null,
      code: "host_not_in_connection",
      message: "the global fetch reaches ctx.proxyBase only",
    });
  }
  return send(request.method, null, request.url, true, request.headers, request.body, request.signal);
}

// The parts of a Response a module returned, body read: {status, type, bytes}.
async function passOn(response) {
  const passed = responseState(response);
  const bytes = await consume(passed.body);
  return {
    __proto__: null,
    status: passed.status,
    type: asciiLower(headersGet(passed.headers, "content-type") ?? ""),
    bytes,
  };
}

return {
  __proto__: null,
  // Awaited rather than returned: to resolve with a promise is to call its
  // `then`, which a module may have replaced.
  contextFetch: async (path, init) => await contextFetch(path, init),
  Headers,
  isResponse: (value) => isResponse(value),
  passOn,
  Request,
  Response,
  sdkFetch: async (base, input, init) => await sdkFetch(base, input, init),
};
})();
