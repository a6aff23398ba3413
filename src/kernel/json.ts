/**
 * One strict reading of JSON. What JSON.parse quietly changes (duplicate keys, `__proto__`, integers
 * beyond 2^53, numbers that overflow, lone surrogates) is refused here, because two different bodies
 * must never become the same value: an approval is for exactly what was sent.
 */
import { invalid } from "./errors.ts";
import { LIMITS } from "./limits.ts";
import { type Paced, UNITS_A_PAUSE } from "./turns.ts";

/** A value that JSON can hold. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

const CHARS_A_UNIT = 64;
const LONG_STRING = 1_024;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const ESCAPES: Record<string, string> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};

export function parseJson(text: string, maxDepth: number = LIMITS.json_depth): Json {
  const reader = new JsonReader(text, maxDepth);
  reader.read(Number.POSITIVE_INFINITY);
  return reader.document;
}

/** Strict UTF-8 decoding followed by the strict reading. A byte order mark is refused with the rest. */
export function parseJsonBytes(bytes: Uint8Array, maxDepth: number = LIMITS.json_depth): Json {
  return parseJson(decodeUtf8(bytes), maxDepth);
}

/** The same in turns. */
export function* parsingJsonBytes(bytes: Uint8Array): Paced<Json> {
  const reader = new JsonReader(decodeUtf8(bytes), LIMITS.json_depth);
  while (!reader.read(UNITS_A_PAUSE)) yield;
  return reader.document;
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    throw invalid("body is not valid UTF-8", "not_json");
  }
}
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A list or an object that is being read, and the name whose value comes next. */
interface OpenValue {
  list: Json[] | null;
  object: JsonObject;
  key: string;
}

const NONE: JsonObject = {};

/** Reads without recursion, so that it can pause between any two values. */
class JsonReader {
  private readonly text: string;
  private readonly maxDepth: number;
  private readonly open: OpenValue[] = [];
  private at = 0;
  private found: Json | undefined;

  constructor(text: string, maxDepth: number) {
    this.text = text;
    this.maxDepth = maxDepth;
    this.space();
    if (this.at >= this.text.length) throw invalid("invalid JSON: the document is empty", "not_json");
  }

  get document(): Json {
    return this.found!;
  }

  /** Reads so many units, or to the end; answers whether that is reached. */
  read(units: number): boolean {
    for (let left = units; left > 0; left--) {
      const from = this.at;
      const value = this.value();
      left -= Math.floor((this.at - from) / CHARS_A_UNIT);
      if (value === undefined || !this.put(value)) continue;
      this.space();
      if (this.at < this.text.length) this.fail("unexpected text after the value");
      return true;
    }
    return false;
  }

  /** The value that begins here; undefined where it is a list or an object whose first member comes next. */
  private value(): Json | undefined {
    const c = this.text.charCodeAt(this.at);
    if (c === 0x22) return this.string();
    if (c === 0x7b) return this.object();
    if (c === 0x5b) return this.array();
    if (c === 0x74) return this.word("true", true);
    if (c === 0x66) return this.word("false", false);
    if (c === 0x6e) return this.word("null", null);
    return this.number();
  }

  private object(): JsonObject | undefined {
    this.deeper();
    const object: JsonObject = {};
    if (this.next() === 0x7d) {
      this.at++;
      return object;
    }
    this.open.push({ list: null, object, key: this.key(object) });
    return undefined;
  }

  private array(): Json[] | undefined {
    this.deeper();
    const list: Json[] = [];
    if (this.next() === 0x5d) {
      this.at++;
      return list;
    }
    this.open.push({ list, object: NONE, key: "" });
    return undefined;
  }

  private key(object: JsonObject): string {
    if (this.text.charCodeAt(this.at) !== 0x22) this.fail("expected a key in double quotes");
    const key = this.string();
    if (key === "__proto__") this.fail('the key "__proto__" is not allowed');
    if (Object.hasOwn(object, key)) this.fail(`duplicate key ${JSON.stringify(key)}`);
    this.space();
    if (this.text.charCodeAt(this.at) !== 0x3a) this.fail('expected ":"');
    this.next();
    return key;
  }

  /** Puts a value where it belongs, and closes what ends with it; answers whether that was the whole document. */
  private put(value: Json): boolean {
    for (let done = value; ; ) {
      const holder = this.open[this.open.length - 1];
      if (holder === undefined) {
        this.found = done;
        return true;
      }
      const { list, object } = holder;
      if (list !== null) list.push(done);
      else object[holder.key] = done;
      this.space();
      const c = this.text.charCodeAt(this.at);
      if (c === (list === null ? 0x7d : 0x5d)) {
        this.at++;
        this.open.pop();
        done = list ?? object;
        continue;
      }
      if (c !== 0x2c) this.fail(list === null ? 'expected "," or "}"' : 'expected "," or "]"');
      this.next();
      if (list === null) holder.key = this.key(object);
      return false;
    }
  }

  private string(): string {
    const text = this.text;
    const start = this.at + 1;
    let i = start;
    let c = text.charCodeAt(i);
    // The common case: no escape and no surrogate, taken as one slice.
    while (c !== 0x22 && c !== 0x5c && c >= 0x20 && (c < 0xd800 || c > 0xdfff)) c = text.charCodeAt(++i);
    if (c === 0x22) {
      this.at = i + 1;
      return text.slice(start, i);
    }
    return this.longString(start) ?? this.stringWithEscapes(start);
  }

  /** A long string with escapes, by the platform's reader, which spells them alike; what that refuses is read here. */
  private longString(start: number): string | undefined {
    const { text } = this;
    let end = start;
    for (let c = text.charCodeAt(end); c !== 0x22; c = text.charCodeAt(end)) {
      if (end >= text.length) return undefined;
      end += c === 0x5c ? 2 : 1;
    }
    if (end - start < LONG_STRING) return undefined;
    try {
      const out = JSON.parse(text.slice(start - 1, end + 1)) as string;
      if (!out.isWellFormed()) return undefined;
      this.at = end + 1;
      return out;
    } catch {
      return undefined;
    }
  }

  private stringWithEscapes(start: number): string {
    const text = this.text;
    let out = "";
    let from = start;
    let i = start;
    for (;;) {
      if (i >= text.length) this.fail("unterminated string", i);
      const c = text.charCodeAt(i);
      if (c === 0x22) break;
      if (c < 0x20) this.fail("control character in a string", i);
      if (c !== 0x5c) {
        i++;
        continue;
      }
      out += text.slice(from, i);
      const e = text[i + 1] ?? "";
      if (e === "u") {
        const hex = text.slice(i + 2, i + 6);
        if (!/^[0-9a-fA-F]{4}$/.test(hex)) this.fail("bad \\u escape", i);
        out += String.fromCharCode(Number.parseInt(hex, 16));
        i += 6;
      } else {
        const plain = Object.hasOwn(ESCAPES, e) ? ESCAPES[e] : undefined;
        if (plain === undefined) this.fail("bad escape in a string", i);
        out += plain;
        i += 2;
      }
      from = i;
    }
    out += text.slice(from, i);
    if (!isWellFormed(out)) this.fail("lone surrogate in a string", start);
    this.at = i + 1;
    return out;
  }

  private number(): number {
    NUMBER.lastIndex = this.at;
    const match = NUMBER.exec(this.text);
    if (match === null) this.fail(this.at >= this.text.length ? "unexpected end" : "unexpected character");
    const source = match[0];
    const value = Number(source);
    if (!Number.isFinite(value)) this.fail("number is too large");
    // Any spelling whose value is an integer past 2^53 may have been rounded: two bodies, one value.
    if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
      this.fail("integer beyond 2^53 is not allowed; send it as a string");
    }
    this.at += source.length;
    // -0 and 0 are one value in canonical JSON, so they are one value from here on.
    return value === 0 ? 0 : value;
  }

  private word<T extends Json>(word: string, value: T): T {
    if (!this.text.startsWith(word, this.at)) this.fail("unexpected character");
    this.at += word.length;
    return value;
  }

  private deeper(): void {
    if (this.open.length >= this.maxDepth) this.fail(`nesting is deeper than ${this.maxDepth} levels`);
  }

  private next(): number {
    this.at++;
    this.space();
    return this.text.charCodeAt(this.at);
  }

  private space(): void {
    const text = this.text;
    let c = text.charCodeAt(this.at);
    while (c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09) c = text.charCodeAt(++this.at);
  }

  private fail(problem: string, at = this.at): never {
    throw invalid(`invalid JSON: ${problem} at position ${at}`, "not_json");
  }
}

function isWellFormed(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c < 0xd800 || c > 0xdfff) continue;
    const next = text.charCodeAt(i + 1);
    if (c > 0xdbff || !(next >= 0xdc00 && next <= 0xdfff)) return false;
    i++;
  }
  return true;
}

/**
 * Holds a value from inside the program (YAML, a library caller) to what parseJson would accept, so
 * that every door leads to the same kind of value.
 */
export function assertJson(value: unknown, what: string, depth = 0): asserts value is Json {
  if (value === null || typeof value === "boolean") return;
  if (typeof value === "string") {
    if (!isWellFormed(value)) throw invalid(`${what}: lone surrogate in a string`);
    return;
  }
  if (typeof value === "number") {
    const safe = Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
    if (!safe) throw invalid(`${what}: ${value} is not a JSON number that can be kept exactly`);
    return;
  }
  if (depth >= LIMITS.json_depth)
    throw invalid(`${what}: nesting is deeper than ${LIMITS.json_depth} levels`);
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) assertJson(value[i], what, depth + 1);
    return;
  }
  if (typeof value === "object") {
    const proto = Object.getPrototypeOf(value);
    if (proto !== Object.prototype && proto !== null) throw invalid(`${what}: only plain objects are JSON`);
    for (const key of Object.keys(value)) {
      if (key === "__proto__") throw invalid(`${what}: the key "__proto__" is not allowed`);
      assertJson(key, what, depth);
      assertJson((value as Record<string, unknown>)[key], what, depth + 1);
    }
    return;
  }
  throw invalid(`${what}: ${typeof value} is not a JSON value`);
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
