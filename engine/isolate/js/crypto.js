// `crypto`: random bytes from the kernel, SHA-2 and HMAC. No other algorithm,
// and no key that a module did not bring itself.
(function () {
const { core, primordials } = __bootstrap;
const {
  ArrayBufferIsView,
  ArrayIsArray,
  ObjectDefineProperty,
  ObjectFreeze,
  StringPrototypeSlice,
  SymbolToStringTag,
  TypeError,
  TypedArrayPrototypeGetBuffer,
  TypedArrayPrototypeGetByteLength,
  TypedArrayPrototypeGetByteOffset,
  TypedArrayPrototypeGetSymbolToStringTag,
  TypedArrayPrototypeSlice,
  Uint8Array,
} = primordials;
const { op_cambium_digest, op_cambium_hmac, op_cambium_random, op_cambium_random_hex } = core.ops;
const { asciiUpper, ownData, plainObject } = core.loadExtScript("ext:cambium/base.js");
const { isBytes } = core.loadExtScript("ext:cambium/body.js");
const { DOMException } = core.loadExtScript("ext:deno_web/01_dom_exception.js");

// The standard's own limit of one call.
const QUOTA = 65536;

function getRandomValues(array) {
  const tag = ArrayBufferIsView(array) ? TypedArrayPrototypeGetSymbolToStringTag(array) : undefined;
  if (tag === undefined || tag === "Float16Array" || tag === "Float32Array" || tag === "Float64Array") {
    throw new DOMException("an integer typed array is needed", "TypeMismatchError");
  }
  const size = TypedArrayPrototypeGetByteLength(array);
  if (size > QUOTA) throw new DOMException(`at most ${QUOTA} bytes at once`, "QuotaExceededError");
  if (size > 0) {
    op_cambium_random(
      new Uint8Array(TypedArrayPrototypeGetBuffer(array), TypedArrayPrototypeGetByteOffset(array), size),
    );
  }
  return array;
}

function randomUUID() {
  const hex = op_cambium_random_hex();
  const variant = "89ab"[HEX[hex[16]] & 3];
  return `${StringPrototypeSlice(hex, 0, 8)}-${StringPrototypeSlice(hex, 8, 12)}-4${
    StringPrototypeSlice(hex, 13, 16)
  }-${variant}${StringPrototypeSlice(hex, 17, 20)}-${StringPrototypeSlice(hex, 20, 32)}`;
}

const HEX = {
  __proto__: null,
  0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7, 8: 8, 9: 9,
  a: 10, b: 11, c: 12, d: 13, e: 14, f: 15,
};

function algorithmName(algorithm) {
  const name = typeof algorithm === "string"
    ? algorithm
    : ownData(plainObject(algorithm, "algorithm"), "name", "algorithm");
  if (typeof name !== "string") throw new TypeError("the algorithm needs a name");
  return asciiUpper(name);
}

function hashName(algorithm) {
  const name = algorithmName(algorithm);
  if (name !== "SHA-256" && name !== "SHA-384" && name !== "SHA-512") {
    throw new DOMException("SHA-256, SHA-384 and SHA-512 are there", "NotSupportedError");
  }
  return name;
}

function bytesOf(value) {
  if (!isBytes(value)) throw new TypeError("bytes are needed");
  return core.isAnyArrayBuffer(value) ? new Uint8Array(value) : value;
}

// A prototype with the tag of the standard's interface and nothing to call.
function tagged(name) {
  return ObjectFreeze(ObjectDefineProperty({}, SymbolToStringTag, { __proto__: null, value: name }));
}

const bufferOf = (bytes) => TypedArrayPrototypeGetBuffer(TypedArrayPrototypeSlice(bytes));

let keyOf;
let makeKey;
const made = {};

class CryptoKey {
  #state;

  constructor(token, state) {
    if (token !== made) throw new TypeError("Illegal constructor");
    this.#state = state;
  }

  get type() {
    return "secret";
  }

  get extractable() {
    return this.#state.extractable;
  }

  get algorithm() {
    const length = 8 * TypedArrayPrototypeGetByteLength(this.#state.bytes);
    return { name: "HMAC", hash: { name: this.#state.hash }, length };
  }

  get usages() {
    const { sign, verify } = this.#state;
    return sign ? (verify ? ["sign", "verify"] : ["sign"]) : ["verify"];
  }

  get [SymbolToStringTag]() {
    return "CryptoKey";
  }

  static {
    keyOf = (key) => {
      if (key === null || typeof key !== "object" || !(#state in key)) {
        throw new TypeError("the key must be a CryptoKey");
      }
      return key.#state;
    };
    makeKey = (state) => new CryptoKey(made, state);
  }
}

function onlyHmac(algorithm) {
  if (algorithmName(algorithm) !== "HMAC") {
    throw new DOMException("HMAC is the one algorithm for keys", "NotSupportedError");
  }
}

function usagesOf(usages) {
  if (!ArrayIsArray(usages)) throw new TypeError("the usages of a key are a list");
  const found = { __proto__: null, sign: false, verify: false };
  for (let i = 0; i < usages.length; i++) {
    const usage = ownData(usages, i, "usages");
    if (usage !== "sign" && usage !== "verify") {
      throw new DOMException("an HMAC key signs and verifies", "SyntaxError");
    }
    found[usage] = true;
  }
  if (!found.sign && !found.verify) throw new DOMException("a key needs a usage", "SyntaxError");
  return found;
}

const subtle = {
  __proto__: tagged("SubtleCrypto"),
  async digest(algorithm, data) {
    return bufferOf(op_cambium_digest(hashName(algorithm), bytesOf(data)));
  },
  async importKey(format, data, algorithm, extractable, usages) {
    if (format !== "raw") throw new DOMException("the key format must be raw", "NotSupportedError");
    onlyHmac(algorithm);
    const hash = hashName(ownData(plainObject(algorithm, "algorithm"), "hash", "algorithm"));
    const bytes = new Uint8Array(bufferOf(bytesOf(data)));
    const { sign, verify } = usagesOf(usages);
    if (TypedArrayPrototypeGetByteLength(bytes) === 0) {
      throw new DOMException("a key needs bytes", "DataError");
    }
    return makeKey({ __proto__: null, hash, bytes, extractable: !!extractable, sign, verify });
  },
  async exportKey(format, key) {
    if (format !== "raw") throw new DOMException("the key format must be raw", "NotSupportedError");
    const { bytes, extractable } = keyOf(key);
    if (!extractable) throw new DOMException("the key is not extractable", "InvalidAccessError");
    return bufferOf(bytes);
  },
  async sign(algorithm, key, data) {
    onlyHmac(algorithm);
    const { hash, bytes, sign } = keyOf(key);
    if (!sign) throw new DOMException("the key is not for signing", "InvalidAccessError");
    return bufferOf(op_cambium_hmac(hash, bytes, bytesOf(data)));
  },
  async verify(algorithm, key, signature, data) {
    onlyHmac(algorithm);
    const { hash, bytes, verify } = keyOf(key);
    if (!verify) throw new DOMException("the key is not for verifying", "InvalidAccessError");
    const expected = op_cambium_hmac(hash, bytes, bytesOf(data));
    const given = bytesOf(signature);
    const size = TypedArrayPrototypeGetByteLength(expected);
    if (TypedArrayPrototypeGetByteLength(given) !== size) return false;
    let different = 0;
    for (let i = 0; i < size; i++) different |= expected[i] ^ given[i];
    return different === 0;
  },
};

const crypto = { __proto__: tagged("Crypto"), getRandomValues, randomUUID, subtle: ObjectFreeze(subtle) };

return { __proto__: null, crypto, CryptoKey };
})();
