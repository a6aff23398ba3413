/**
 * Strict JSON parser. It rejects everything that JSON.parse silently changes: duplicate keys, `__proto__`, integers
 * beyond 2^53, overflowing numbers, lone surrogates. An approval covers exact arguments, so two different bodies must
 * never become the same value.
 */
import { invalidError } from "../errors.ts";
import { SERVICE_LIMITS } from "../limits.ts";
import { type PausableWork, UNITS_PER_PAUSE } from "../pausable-work.ts";
import { noteMembers } from "./known-large.ts";

/** A value that JSON can represent. */
export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };
export type JsonObject = { [key: string]: JsonValue };

/** Plain data as a JSON value. An interface has no index signature, so the compiler cannot see that it holds JSON. */
export const asJson = (data: object): JsonValue => data as JsonValue;

/** Plain data as a JSON object. */
export const asJsonObject = (data: object): JsonObject => data as JsonObject;

/** A stored JSON value as the type of the module that wrote it. */
export const fromJson = <T>(stored: unknown): T => stored as T;

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

export function parseJson(text: string, maxDepth: number = SERVICE_LIMITS.json_depth): JsonValue {
  const reader = new JsonReader(text, maxDepth);
  reader.read(Number.POSITIVE_INFINITY);
  return reader.document;
}

/** Decodes strict UTF-8, then parses strictly. Rejects a byte order mark. */
export function parseJsonBytes(bytes: Uint8Array, maxDepth: number = SERVICE_LIMITS.json_depth): JsonValue {
  return parseJson(decodeUtf8(bytes), maxDepth);
}

/** Pausable form of `parseJsonBytes`. */
export function* parseJsonBytesInSteps(bytes: Uint8Array): PausableWork<JsonValue> {
  const reader = new JsonReader(decodeUtf8(bytes), SERVICE_LIMITS.json_depth);
  while (!reader.read(UNITS_PER_PAUSE)) yield;
  return reader.document;
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    throw invalidError("body is not valid UTF-8", "not_json");
  }
}
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A list or object that is still open, and the name of its next value. */
interface OpenValue {
  list: JsonValue[] | null;
  object: JsonObject;
  key: string;
  members: number;
}

const NONE: JsonObject = {};

/** Parses without recursion, so that it can pause between any two values. */
class JsonReader {
  private readonly text: string;
  private readonly maxDepth: number;
  private readonly open: OpenValue[] = [];
  private at = 0;
  private found: JsonValue | undefined;

  constructor(text: string, maxDepth: number) {
    this.text = text;
    this.maxDepth = maxDepth;
    this.space();
    if (this.at >= this.text.length) throw invalidError("invalid JSON: the document is empty", "not_json");
  }

  get document(): JsonValue {
    return this.found!;
  }

  /** Parses up to `units` units. Returns whether the document is complete. */
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

  /** Parses the next value. Returns undefined for a list or object, whose first member comes next. */
  private value(): JsonValue | undefined {
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
    this.open.push({ list: null, object, key: this.key(object), members: 1 });
    return undefined;
  }

  private array(): JsonValue[] | undefined {
    this.deeper();
    const list: JsonValue[] = [];
    if (this.next() === 0x5d) {
      this.at++;
      return list;
    }
    this.open.push({ list, object: NONE, key: "", members: 0 });
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

  /**
   * Adds a value to its container and closes the containers that end here. Returns whether the document is complete.
   */
  private put(value: JsonValue): boolean {
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
        if (list === null) noteMembers(object, holder.members);
        done = list ?? object;
        continue;
      }
      if (c !== 0x2c) this.fail(list === null ? 'expected "," or "}"' : 'expected "," or "]"');
      this.next();
      if (list === null) {
        holder.key = this.key(object);
        holder.members++;
      }
      return false;
    }
  }

  private string(): string {
    const text = this.text;
    const start = this.at + 1;
    let i = start;
    let c = text.charCodeAt(i);
    // The common case: without escapes and surrogates, one slice is the string.
    while (c !== 0x22 && c !== 0x5c && c >= 0x20 && (c < 0xd800 || c > 0xdfff)) c = text.charCodeAt(++i);
    if (c === 0x22) {
      this.at = i + 1;
      return text.slice(start, i);
    }
    return this.longString(start) ?? this.stringWithEscapes(start);
  }

  /**
   * Parses a long string with escapes by JSON.parse, which has the same escapes. Falls back to this parser if that
   * fails.
   */
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
    // An integer past 2^53 may be the result of rounding, in any notation: two bodies, one value.
    if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
      this.fail("integer beyond 2^53 is not allowed; send it as a string");
    }
    this.at += source.length;
    // Canonical JSON does not distinguish -0 from 0, so neither does the parser.
    return value === 0 ? 0 : value;
  }

  private word<T extends JsonValue>(word: string, value: T): T {
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
    throw invalidError(`invalid JSON: ${problem} at position ${at}`, "not_json");
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
 * Checks a value from inside the program (YAML, a library caller) against the rules of parseJson, so that every entry
 * point produces the same kind of value.
 */
export function assertJson(value: unknown, what: string, depth = 0): asserts value is JsonValue {
  if (value === null || typeof value === "boolean") return;
  if (typeof value === "string") {
    if (!isWellFormed(value)) throw invalidError(`${what}: lone surrogate in a string`);
    return;
  }
  if (typeof value === "number") {
    const safe = Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
    if (!safe) throw invalidError(`${what}: ${value} is not a JSON number that can be kept exactly`);
    return;
  }
  if (depth >= SERVICE_LIMITS.json_depth)
    throw invalidError(`${what}: nesting is deeper than ${SERVICE_LIMITS.json_depth} levels`);
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) assertJson(value[i], what, depth + 1);
    return;
  }
  if (typeof value === "object") {
    const proto = Object.getPrototypeOf(value);
    if (proto !== Object.prototype && proto !== null)
      throw invalidError(`${what}: only plain objects are JSON`);
    for (const key of Object.keys(value)) {
      if (key === "__proto__") throw invalidError(`${what}: the key "__proto__" is not allowed`);
      assertJson(key, what, depth);
      assertJson((value as Record<string, unknown>)[key], what, depth + 1);
    }
    return;
  }
  throw invalidError(`${what}: ${typeof value} is not a JSON value`);
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
