// Strict JSON in, RFC 8785 JSON out. A verifier must read what every other reader reads, so repeated keys, floats
// and integers beyond 2^53 are refused; what is left needs no number formatting, and JSON.stringify of a string
// is already the RFC's.

import { Finding } from "./finding.js";

const LONE_SURROGATE = /\p{Surrogate}/u;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const MAX_DEPTH = 64;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text of the bytes; a byte-order mark is content here, and not JSON. */
export function decodeText(bytes) {
  let text;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw new Finding("not UTF-8");
  }
  if (text.startsWith("\ufeff")) throw new Finding("begins with a byte-order mark");
  return text;
}

/** Text from a file, short enough for a message. It is only ever shown through textContent. */
export function brief(text, limit = 60) {
  return text.length <= limit ? text : `${text.slice(0, limit - 1)}…`;
}

/** One JSON value and nothing after it. Objects have no prototype, so that no key is special. */
export function parseStrict(text) {
  const reader = new StrictReader(text);
  const value = reader.value(0);
  reader.space();
  if (reader.at < text.length) throw new Finding("there is more after the end of the JSON");
  return value;
}

class StrictReader {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  space() {
    while (" \t\n\r".includes(this.text[this.at] || "x")) this.at++;
  }

  take(character) {
    this.space();
    if (this.text[this.at] !== character) return false;
    this.at++;
    return true;
  }

  need(character) {
    if (!this.take(character)) this.fail(`${character} was due`);
  }

  fail(why) {
    throw new Finding(`not JSON (${why} at character ${this.at})`);
  }

  value(depth) {
    if (depth > MAX_DEPTH) throw new Finding("nested too deeply");
    this.space();
    const first = this.text[this.at];
    if (first === "{") return this.object(depth);
    if (first === "[") return this.array(depth);
    if (first === '"') return this.string();
    if (first === "-" || (first >= "0" && first <= "9")) return this.number();
    for (const [word, value] of [
      ["true", true],
      ["false", false],
      ["null", null],
    ]) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    }
    return this.fail("a value was due");
  }

  object(depth) {
    const result = Object.create(null);
    this.need("{");
    if (this.take("}")) return result;
    do {
      this.space();
      const key = this.string();
      // No record has such a field, and other readers may not see it.
      if (key === "__proto__") throw new Finding('the key "__proto__" is not allowed');
      if (key in result) throw new Finding(`the key ${JSON.stringify(brief(key))} appears twice`);
      this.need(":");
      result[key] = this.value(depth + 1);
    } while (this.take(","));
    this.need("}");
    return result;
  }

  array(depth) {
    const result = [];
    this.need("[");
    if (this.take("]")) return result;
    do result.push(this.value(depth + 1));
    while (this.take(","));
    this.need("]");
    return result;
  }

  string() {
    const end = this.text[this.at] === '"' ? endOfString(this.text, this.at) : -1;
    if (end < 0) this.fail("a string was due");
    try {
      // What a string may hold is the same here and there: JSON.parse refuses bad escapes and control characters.
      const string = JSON.parse(this.text.slice(this.at, end));
      this.at = end;
      return string;
    } catch {
      return this.fail("a string was due");
    }
  }

  number() {
    NUMBER.lastIndex = this.at;
    const found = NUMBER.exec(this.text);
    if (found === null) this.fail("a number was due");
    this.at = NUMBER.lastIndex;
    const number = Number(found[0]);
    if (/[.eE]/.test(found[0])) throw new Finding(`the number ${brief(found[0], 24)} is not a plain integer`);
    if (!Number.isSafeInteger(number)) throw new Finding(`the number ${brief(found[0], 24)} is beyond 2^53`);
    if (Object.is(number, -0)) throw new Finding("the number -0 has no place in evidence");
    return number;
  }
}

/** Walked by hand: a regular expression keeps a step of each character, and a long string exhausts its stack. */
function endOfString(text, open) {
  for (let i = open + 1; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === 0x5c) i++;
    else if (c === 0x22) return i + 1;
  }
  return -1;
}

/** RFC 8785 text of a string. JSON.stringify escapes half a pair, so only a text with such an escape is looked at. */
export function canonicalString(text) {
  const json = JSON.stringify(text);
  if (json.includes("\\ud") && LONE_SURROGATE.test(text)) {
    throw new Finding("holds half of a surrogate pair, which has no UTF-8 form");
  }
  return json;
}

/** RFC 8785 text of what parseStrict gives. JavaScript compares strings by UTF-16 units, as the RFC sorts keys. */
export function canonical(value) {
  if (typeof value === "string") return canonicalString(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value !== null && typeof value === "object") {
    const members = Object.keys(value).sort();
    return `{${members.map((key) => `${canonicalString(key)}:${canonical(value[key])}`).join(",")}}`;
  }
  return String(value);
}
