// What a Cambium tool sees: its context and the globals of the sandbox. `Input`
// is generated from the tool's own inputSchema. Put this file beside a tool and
// an editor knows both; a module never imports it.

/** What a tool is called with, besides its input. */
interface Context {
  /**
   * Sends one request to the connection's vendor, through the proxy that adds
   * the credential. `path` starts with one slash; wrap each value in it in
   * encodeURIComponent.
   */
  fetch(path: string, init?: FetchInit): Promise<Response>;
  /** The connection the tool is bound to. */
  readonly connection: {
    readonly slug: string;
    readonly vendor: string;
    readonly displayName: string;
  };
  /** Origin of the connection's primary host, for an SDK. */
  readonly proxyBase: string;
  /** Stands for the credential where an SDK wants one; worth nothing itself. */
  readonly proxyKey: string;
}

/** How a request differs from a plain GET. */
interface FetchInit {
  /** Write it as a literal: the check reads the hints off it. Default GET. */
  method?: string;
  headers?: HeadersInit;
  /** Appended to the path, encoded. */
  query?: Record<string, QueryValue | QueryValue[]> | URLSearchParams;
  /** A plain object or an array is sent as JSON. */
  body?: BodyInit | object | null;
  /** Label of another host of the connection; write it as a literal. */
  host?: string;
  signal?: AbortSignal | null;
}

type QueryValue = string | number | boolean | null | undefined;
type HeadersInit = Headers | Record<string, string> | Iterable<readonly [string, string]>;
type BodyInit = string | ArrayBuffer | ArrayBufferView | URLSearchParams | FormData | Blob | ReadableStream<Uint8Array>;

declare class Headers {
  constructor(init?: HeadersInit);
  append(name: string, value: string): void;
  delete(name: string): void;
  get(name: string): string | null;
  getSetCookie(): string[];
  has(name: string): boolean;
  set(name: string, value: string): void;
  forEach(each: (value: string, name: string, headers: Headers) => void): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}

interface Body {
  readonly body: ReadableStream<Uint8Array> | null;
  readonly bodyUsed: boolean;
  arrayBuffer(): Promise<ArrayBuffer>;
  blob(): Promise<Blob>;
  bytes(): Promise<Uint8Array>;
  formData(): Promise<FormData>;
  json(): Promise<any>;
  text(): Promise<string>;
}

interface Response extends Body {
  readonly headers: Headers;
  readonly ok: boolean;
  readonly redirected: boolean;
  readonly status: number;
  readonly statusText: string;
  readonly type: string;
  readonly url: string;
  clone(): Response;
}
declare const Response: {
  new (body?: BodyInit | null, init?: { status?: number; statusText?: string; headers?: HeadersInit }): Response;
  error(): Response;
  json(data: unknown, init?: { status?: number; statusText?: string; headers?: HeadersInit }): Response;
  redirect(url: string | URL, status?: number): Response;
};

interface Request extends Body {
  readonly headers: Headers;
  readonly method: string;
  readonly signal: AbortSignal;
  readonly url: string;
  clone(): Request;
}
declare const Request: {
  new (input: string | URL | Request, init?: { method?: string; headers?: HeadersInit; body?: BodyInit | null; signal?: AbortSignal | null }): Request;
};

/** Reaches `ctx.proxyBase` only, and counts as a write of an SDK. */
declare function fetch(input: string | URL | Request, init?: { method?: string; headers?: HeadersInit; body?: BodyInit | null; signal?: AbortSignal | null }): Promise<Response>;

declare class URL {
  constructor(url: string | URL, base?: string | URL);
  static canParse(url: string | URL, base?: string | URL): boolean;
  static parse(url: string | URL, base?: string | URL): URL | null;
  hash: string;
  host: string;
  hostname: string;
  href: string;
  readonly origin: string;
  password: string;
  pathname: string;
  port: string;
  protocol: string;
  search: string;
  readonly searchParams: URLSearchParams;
  username: string;
  toString(): string;
  toJSON(): string;
}

declare class URLSearchParams {
  constructor(init?: string | URLSearchParams | Record<string, string> | Iterable<readonly [string, string]>);
  readonly size: number;
  append(name: string, value: string): void;
  delete(name: string, value?: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string, value?: string): boolean;
  set(name: string, value: string): void;
  sort(): void;
  forEach(each: (value: string, name: string, params: URLSearchParams) => void): void;
  entries(): IterableIterator<[string, string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<string>;
  [Symbol.iterator](): IterableIterator<[string, string]>;
  toString(): string;
}

declare class Blob {
  constructor(parts?: Iterable<ArrayBuffer | ArrayBufferView | Blob | string>, options?: { type?: string; endings?: "transparent" | "native" });
  readonly size: number;
  readonly type: string;
  arrayBuffer(): Promise<ArrayBuffer>;
  bytes(): Promise<Uint8Array>;
  slice(start?: number, end?: number, type?: string): Blob;
  stream(): ReadableStream<Uint8Array>;
  text(): Promise<string>;
}

declare class File extends Blob {
  constructor(parts: Iterable<ArrayBuffer | ArrayBufferView | Blob | string>, name: string, options?: { type?: string; lastModified?: number });
  readonly lastModified: number;
  readonly name: string;
}

declare class FormData {
  append(name: string, value: string | Blob, filename?: string): void;
  delete(name: string): void;
  get(name: string): File | string | null;
  getAll(name: string): (File | string)[];
  has(name: string): boolean;
  set(name: string, value: string | Blob, filename?: string): void;
  forEach(each: (value: File | string, name: string, form: FormData) => void): void;
  entries(): IterableIterator<[string, File | string]>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<File | string>;
  [Symbol.iterator](): IterableIterator<[string, File | string]>;
}

declare class TextEncoder {
  readonly encoding: string;
  encode(text?: string): Uint8Array<ArrayBuffer>;
  encodeInto(text: string, into: Uint8Array): { read: number; written: number };
}

declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: string;
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  decode(bytes?: ArrayBuffer | ArrayBufferView, options?: { stream?: boolean }): string;
}

declare class Event {
  constructor(type: string, init?: { bubbles?: boolean; cancelable?: boolean; composed?: boolean });
  readonly type: string;
  readonly target: EventTarget | null;
  readonly currentTarget: EventTarget | null;
  readonly bubbles: boolean;
  readonly cancelable: boolean;
  readonly defaultPrevented: boolean;
  readonly timeStamp: number;
  preventDefault(): void;
  stopImmediatePropagation(): void;
  stopPropagation(): void;
}

declare class CustomEvent<T = any> extends Event {
  constructor(type: string, init?: { detail?: T; bubbles?: boolean; cancelable?: boolean });
  readonly detail: T;
}

declare class ErrorEvent extends Event {
  readonly message: string;
  readonly error: any;
}

declare class EventTarget {
  addEventListener(type: string, listener: ((event: Event) => void) | { handleEvent(event: Event): void } | null, options?: boolean | { once?: boolean; capture?: boolean; signal?: AbortSignal }): void;
  dispatchEvent(event: Event): boolean;
  removeEventListener(type: string, listener: ((event: Event) => void) | { handleEvent(event: Event): void } | null, options?: boolean | { capture?: boolean }): void;
}

declare class AbortSignal extends EventTarget {
  static abort(reason?: any): AbortSignal;
  static any(signals: Iterable<AbortSignal>): AbortSignal;
  static timeout(milliseconds: number): AbortSignal;
  readonly aborted: boolean;
  readonly reason: any;
  onabort: ((event: Event) => void) | null;
  throwIfAborted(): void;
}

declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: any): void;
}

declare class DOMException extends Error {
  constructor(message?: string, name?: string);
  readonly code: number;
}

interface ReadableStreamReadResult<T> {
  done: boolean;
  value: T | undefined;
}

declare class ReadableStreamDefaultReader<T = any> {
  constructor(stream: ReadableStream<T>);
  readonly closed: Promise<void>;
  cancel(reason?: any): Promise<void>;
  read(): Promise<ReadableStreamReadResult<T>>;
  releaseLock(): void;
}

declare class ReadableStreamDefaultController<T = any> {
  readonly desiredSize: number | null;
  close(): void;
  enqueue(chunk: T): void;
  error(reason?: any): void;
}

declare class ReadableStream<T = any> {
  constructor(source?: {
    start?(controller: ReadableStreamDefaultController<T>): any;
    pull?(controller: ReadableStreamDefaultController<T>): any;
    cancel?(reason?: any): any;
    type?: "bytes";
  }, strategy?: { highWaterMark?: number; size?(chunk: T): number });
  static from<T>(iterable: Iterable<T> | AsyncIterable<T>): ReadableStream<T>;
  readonly locked: boolean;
  cancel(reason?: any): Promise<void>;
  getReader(): ReadableStreamDefaultReader<T>;
  pipeThrough<R>(through: { writable: WritableStream<T>; readable: ReadableStream<R> }): ReadableStream<R>;
  pipeTo(into: WritableStream<T>): Promise<void>;
  tee(): [ReadableStream<T>, ReadableStream<T>];
  values(): AsyncIterableIterator<T>;
  [Symbol.asyncIterator](): AsyncIterableIterator<T>;
}

declare class WritableStreamDefaultWriter<T = any> {
  constructor(stream: WritableStream<T>);
  readonly closed: Promise<void>;
  readonly desiredSize: number | null;
  readonly ready: Promise<void>;
  abort(reason?: any): Promise<void>;
  close(): Promise<void>;
  releaseLock(): void;
  write(chunk: T): Promise<void>;
}

declare class WritableStream<T = any> {
  constructor(sink?: {
    start?(controller: any): any;
    write?(chunk: T, controller: any): any;
    close?(): any;
    abort?(reason?: any): any;
  }, strategy?: { highWaterMark?: number; size?(chunk: T): number });
  readonly locked: boolean;
  abort(reason?: any): Promise<void>;
  close(): Promise<void>;
  getWriter(): WritableStreamDefaultWriter<T>;
}

declare class TransformStreamDefaultController<O = any> {
  readonly desiredSize: number | null;
  enqueue(chunk: O): void;
  error(reason?: any): void;
  terminate(): void;
}

declare class TransformStream<I = any, O = any> {
  constructor(transformer?: {
    start?(controller: TransformStreamDefaultController<O>): any;
    transform?(chunk: I, controller: TransformStreamDefaultController<O>): any;
    flush?(controller: TransformStreamDefaultController<O>): any;
  });
  readonly readable: ReadableStream<O>;
  readonly writable: WritableStream<I>;
}

declare class TextEncoderStream extends TransformStream<string, Uint8Array> {}
declare class TextDecoderStream extends TransformStream<Uint8Array, string> {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
}

declare class CryptoKey {
  private constructor();
  readonly algorithm: any;
  readonly extractable: boolean;
  readonly type: string;
  readonly usages: string[];
}

type HashName = "SHA-1" | "SHA-256" | "SHA-384" | "SHA-512";
type Bytes = ArrayBuffer | ArrayBufferView;

/** Digests and HMAC; randomness of the run's own process. */
declare const crypto: {
  getRandomValues<T extends ArrayBufferView>(into: T): T;
  randomUUID(): `${string}-${string}-${string}-${string}-${string}`;
  readonly subtle: {
    digest(algorithm: HashName | { name: HashName }, data: Bytes): Promise<ArrayBuffer>;
    importKey(format: "raw", key: Bytes, algorithm: { name: "HMAC"; hash: HashName | { name: HashName } }, extractable: boolean, usages: ("sign" | "verify")[]): Promise<CryptoKey>;
    sign(algorithm: "HMAC" | { name: "HMAC" }, key: CryptoKey, data: Bytes): Promise<ArrayBuffer>;
    verify(algorithm: "HMAC" | { name: "HMAC" }, key: CryptoKey, signature: Bytes, data: Bytes): Promise<boolean>;
  };
};

/** Kept with the run, up to a cap; nothing else sees it. */
declare const console: Record<"log" | "info" | "warn" | "error" | "debug", (...values: any[]) => void>;

/** Coarse on purpose. */
declare const performance: { now(): number; readonly timeOrigin: number };

declare function atob(text: string): string;
declare function btoa(text: string): string;
declare function clearInterval(timer?: number): void;
declare function clearTimeout(timer?: number): void;
declare function queueMicrotask(callback: () => void): void;
declare function reportError(error: any): void;
declare function setInterval(callback: (...rest: any[]) => void, milliseconds?: number, ...rest: any[]): number;
declare function setTimeout(callback: (...rest: any[]) => void, milliseconds?: number, ...rest: any[]): number;
declare function structuredClone<T>(value: T, options?: { transfer?: any[] }): T;
