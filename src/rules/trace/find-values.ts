/**
 * Finds the values in JSON that can be followed from a result into a later call: addresses, URLs, hosts, account and
 * phone numbers, ids, file names, amounts, and sequences of five words. Pure, and linear in the length of the text.
 */
import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";
import { type PausableWork, runAtOnce, textUnits, UNITS_PER_PAUSE } from "../../kernel/pausable-work.ts";
import { findDotted, findEmails, findNumbers } from "./scan-text.ts";

export const TRACE_KINDS = ["address", "url", "host", "number", "id", "file", "amount", "words"] as const;
export type TraceKind = (typeof TRACE_KINDS)[number];

/** A value with its first position. Sequences of words are not among these. */
export interface TraceValue {
  kind: TraceKind;
  /** Folded text; equal for all spellings of one value. */
  text: string;
  path: string;
}

/** The words of one text, in order. Each five consecutive words are one value. */
export interface TracedWords {
  path: string;
  text: string;
  /** Start and end of each word, one after the other: a text for each word would cost more than all the rest. */
  bounds: Int32Array;
}

export interface TraceValues {
  values: TraceValue[];
  sequences: TracedWords[];
}

/** Number of consecutive words that count as a value. */
export const WORDS_IN_SEQUENCE = 5;

/** `any_number` also returns small numbers as amounts. Callers set it for arguments, not for results. */
export interface TraceOptions {
  any_number: boolean;
}

/** Folds Unicode form, letter case and invisible characters. */
function foldValue(text: string): string {
  const plain = /^[\x20-\x7e\s]*$/.test(text) ? text : text.normalize("NFKC").replace(/\p{Cf}/gu, "");
  return plain.toLowerCase();
}

export function findTraceValues(value: JsonValue, root: string, options: TraceOptions): TraceValues {
  return runAtOnce(findingTraceValues(value, root, options));
}

export function* findingTraceValues(
  value: JsonValue,
  root: string,
  options: TraceOptions,
): PausableWork<TraceValues> {
  const finder = new ValueFinder(options);
  const open: { here: JsonValue; path: string }[] = [{ here: value, path: root }];
  for (let units = 0; ; ) {
    const next = open.pop();
    if (next === undefined) return finder.found;
    const { here, path } = next;
    units += typeof here === "string" ? textUnits(here) : 1;
    if (units >= UNITS_PER_PAUSE) {
      units = 0;
      yield;
    }
    if (typeof here === "string") finder.addText(here, path);
    else if (typeof here === "number") finder.addNumber(here, path);
    else if (Array.isArray(here)) {
      for (let i = here.length - 1; i >= 0; i--) open.push({ here: here[i]!, path: `${path}[]` });
    } else if (here !== null && typeof here === "object") pushMembers(open, here, path, finder);
  }
}

/** Names of members are texts, too: an agent could put a value there. */
function pushMembers(
  open: { here: JsonValue; path: string }[],
  object: JsonObject,
  path: string,
  finder: ValueFinder,
): void {
  const names = Object.keys(object);
  for (let i = names.length - 1; i >= 0; i--) {
    const name = names[i]!;
    const plain = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/.test(name);
    if (!plain || /\d/.test(name)) finder.addText(name, path);
    open.push({ here: object[name]!, path: `${path}.${plain ? name : "*"}` });
  }
}

const URL_TEXT = /[a-z][a-z0-9+-]{1,9}:\/\/(?:\[[0-9a-f:.]{2,45}\])?[^\s"'<>`{}|\\^[\]]{0,2000}/g;
const DATE =
  /^(?:\d{4}-\d{1,2}(?:-\d{1,2})?(?:t\d{1,6}z?)?|\d{1,2}[-/ ]\d{1,2}[-/ ]\d{4}|\d{4}[/ ]\d{1,2}[/ ]\d{1,2})/;
const WORD = /[\p{L}\p{N}]+/gu;

const FILE_ENDINGS =
  /\.(?:txt|md|pdf|docx?|xlsx?|pptx?|csv|tsv|json|ya?ml|toml|xml|html?|zip|gz|tar|png|jpe?g|gif|svg|webp|mp[34]|mov|log|ts|js|mjs|py|go|rs|java|kt|cs|rb|php|c|h|cpp|sh|sql|key|pem|eml|ics|vcf)$/;

/** Smallest number of a result that is a value without a currency. Smaller whole numbers occur everywhere. */
const LARGE_NUMBER = 1_000;

class ValueFinder {
  readonly found: TraceValues = { values: [], sequences: [] };
  private readonly known = new Set<string>();
  private readonly options: TraceOptions;

  constructor(options: TraceOptions) {
    this.options = options;
  }

  addNumber(value: number, path: string): void {
    if (this.options.any_number || !Number.isInteger(value) || Math.abs(value) >= LARGE_NUMBER)
      this.add("amount", String(Math.abs(value)), path);
    if (Math.abs(value) >= 1e5 && Number.isInteger(value)) this.add("number", String(Math.abs(value)), path);
  }

  addText(source: string, path: string): void {
    const text = foldValue(decoded(source));
    if (text.includes("@")) for (const match of findEmails(text)) this.addAddress(trimmed(match), path);
    if (text.includes("://")) this.addUrls(text, path);
    if (text.includes(".")) this.addDotted(text, path);
    if (/\d/.test(text)) this.addNumbers(text, path);
    const bounds = wordBounds(text);
    if (bounds.length >= 2 * WORDS_IN_SEQUENCE) this.found.sequences.push({ path, text, bounds });
  }

  /**
   * Also without a tag such as `+news`, and for a result its domain. An address in the arguments does not count as its
   * domain, because colleagues share one.
   */
  private addAddress(address: string, path: string): void {
    this.add("address", address, path);
    const [name, domain] = address.split("@") as [string, string];
    if (name.includes("+")) this.add("address", `${name.split("+", 1)[0]}@${domain}`, path);
    if (!this.options.any_number) this.add("host", domain, path);
  }

  private addUrls(text: string, path: string): void {
    for (const match of matchesOf(text, URL_TEXT)) {
      const rest = trimmed(match).replace(/^[a-z0-9+-]+:\/\/(?:[^/@]{0,200}@)?(?:www\.)?/, "");
      this.add("url", rest.replace(/(?<![/?#])[/?#]+$/, ""), path);
      this.add("host", /^(?:\[[0-9a-f:.]{2,45}\]|[^/?#:]*)/.exec(rest)![0], path);
    }
  }

  private addDotted(text: string, path: string): void {
    for (const match of findDotted(text)) {
      if (FILE_ENDINGS.test(match)) this.add("file", match, path);
      else if (/\.\p{L}{2,24}$/u.test(match)) this.add("host", match.replace(/^www\./, ""), path);
    }
  }

  private addNumbers(text: string, path: string): void {
    const { groups, accounts, tokens, addresses, amounts_after, amounts_before } = findNumbers(text);
    for (const match of groups) if (!DATE.test(match)) this.add("number", match.replace(/\D/g, ""), path);
    for (const match of accounts) this.add("id", match.replaceAll(" ", ""), path);
    for (const match of tokens) {
      if (DATE.test(match)) continue;
      if (countDigits(match) === match.length) this.add("number", match, path);
      else this.add("id", match.replaceAll("-", ""), path);
    }
    for (const match of addresses) this.add("host", match, path);
    for (const match of [...amounts_after, ...amounts_before])
      this.add("amount", decimalOf(/[\d.,']+/.exec(match)![0]), path);
    if (this.options.any_number && /^\s*\d[\d.,']{0,20}\s*$/.test(text))
      this.add("amount", decimalOf(text), path);
  }

  private add(kind: TraceKind, text: string, path: string): void {
    if (text === "" || this.known.has(text)) return;
    this.known.add(text);
    this.found.values.push({ kind, text, path });
  }
}

/** Much faster than `matchAll`, which makes an object for each match. */
const matchesOf = (text: string, pattern: RegExp): readonly string[] => text.match(pattern) ?? [];

const PUNCTUATION = ".,;:!?)]}'\"*_-";

function trimmed(match: string): string {
  let end = match.length;
  while (end > 0 && PUNCTUATION.includes(match[end - 1]!)) end--;
  return end === match.length ? match : match.slice(0, end);
}

/** By code; whether an ASCII character belongs to a word. */
const IN_WORD = Uint8Array.from({ length: 128 }, (_, code) =>
  /[a-z0-9]/i.test(String.fromCharCode(code)) ? 1 : 0,
);

function wordBounds(text: string): Int32Array {
  // A word and what separates it take two characters or more, except for the last one.
  const bounds = new Int32Array(text.length + 2);
  let count = 0;
  let start = -1;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > 127) return wordBoundsIn(text);
    if (IN_WORD[code] === 1) {
      if (start < 0) start = i;
    } else if (start >= 0) {
      bounds[count++] = start;
      bounds[count++] = i;
      start = -1;
    }
  }
  if (start >= 0) {
    bounds[count++] = start;
    bounds[count++] = text.length;
  }
  return bounds.slice(0, count);
}

/** For a text of any alphabet. */
function wordBoundsIn(text: string): Int32Array {
  const bounds: number[] = [];
  for (const { 0: word, index } of text.matchAll(WORD)) bounds.push(index, index + word.length);
  return Int32Array.from(bounds);
}

function countDigits(text: string): number {
  let count = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 48 && unit <= 57) count++;
  }
  return count;
}

/** Resolves percent-encoding, the usual form of a value inside a URL. */
function decoded(text: string): string {
  if (!/%[0-9A-Fa-f]{2}/.test(text)) return text;
  try {
    return `${text} ${decodeURIComponent(text)}`;
  } catch {
    return text;
  }
}

/** One spelling for `1,840.00`, `1.840,00`, `1'840` and `1840`. */
function decimalOf(digits: string): string {
  if (/^\d+(?:\.\d{1,2})?$/.test(digits)) return String(Number(digits));
  const text = digits
    .trim()
    .replace(/(?<![.,'])[.,']+$/, "")
    .replaceAll("'", "");
  const last = Math.max(text.lastIndexOf("."), text.lastIndexOf(","));
  const both = text.includes(".") && text.includes(",");
  const grouped = !both && (text.split(text[last] ?? " ").length > 2 || text.length - last - 1 === 3);
  if (last < 0 || grouped) return String(Number(text.replace(/[.,]/g, "")));
  const whole = text.slice(0, last).replace(/[.,]/g, "");
  return String(Number(`${whole}.${text.slice(last + 1)}`));
}
