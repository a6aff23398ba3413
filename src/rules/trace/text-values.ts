/** Turns the places that the scans find in a text into values with one spelling. */

import { domainToASCII } from "node:url";
import { findUrls } from "./find-urls.ts";
import type { TraceKind } from "./fingerprint-map.ts";
import { findDotted, findEmails, type TextPlaces, WordScan } from "./scan-text.ts";
import { classAt, codesOf, flagsOf, IS_LETTER, isLowSurrogate, skipWww } from "./text-codes.ts";
import { readingsOf, type TextReading } from "./text-readings.ts";
import { type TraceOptions, type TraceValues, ValueList } from "./value-list.ts";

/** Number of consecutive words that count as a value. */
export const WORDS_IN_SEQUENCE = 5;

const FILE_ENDINGS = new Set(
  "txt md pdf doc docx xls xlsx ppt pptx csv tsv json yml yaml toml xml htm html zip gz tar png jpg jpeg gif svg webp mp3 mp4 mov log ts js mjs py go rs java kt cs rb php c h cpp sh sql key pem eml ics vcf".split(
    " ",
  ),
);
const MAX_FILE_ENDING = 5;

/** Smallest number of a result that is a value without a currency. Smaller whole numbers occur everywhere. */
const LARGE_NUMBER = 1_000;

const [AT, PLUS, HYPHEN, DOT, SPACE] = [0x40, 0x2b, 0x2d, 0x2e, 0x20];

export class TextValues {
  readonly found: TraceValues = { values: new ValueList(), sequences: [], fingerprints: [] };
  private readonly options: TraceOptions;
  /** The text at hand. */
  private text = "";
  private codes: Uint16Array = new Uint16Array();
  private path = "";
  /** Number of hosts that were spelled in ASCII. */
  private conversions = 0;
  /** Positions of the path's sources. */
  private sources: Partial<Record<TraceKind, number>> = {};

  constructor(options: TraceOptions) {
    this.options = options;
  }

  addNumber(value: number, path: string): void {
    this.startPath(path);
    const { values } = this.found;
    const text = String(Math.abs(value));
    if (this.options.any_number || !Number.isInteger(value) || Math.abs(value) >= LARGE_NUMBER)
      values.addText(this.source("amount"), text);
    if (Math.abs(value) >= 1e5 && Number.isInteger(value)) values.addText(this.source("number"), text);
  }

  addText(source: string, path: string): void {
    this.startPath(path);
    for (const reading of readingsOf(source)) this.addReading(reading);
  }

  private addReading({ text, has_words }: TextReading): void {
    const codes = codesOf(text);
    [this.text, this.codes] = [text, codes];
    const emails = findEmails(text, codes);
    for (let i = 0; i < emails.length; i += 2) this.addAddress(emails[i]!, emails[i + 1]!);
    for (const url of findUrls(text, codes)) {
      this.add("url", url.from, url.to);
      this.addHost(url.from, url.host_end, this.asciiHost(url.from, url.host_end));
    }
    const dotted = findDotted(text, codes);
    for (let i = 0; i < dotted.length; i += 2) this.addDotted(dotted[i]!, dotted[i + 1]!);
    const scan = new WordScan(codes);
    this.addNumbers(scan);
    if (has_words && scan.word_count >= WORDS_IN_SEQUENCE)
      this.found.sequences.push({
        source: this.source("words"),
        text,
        bounds: scan.words.slice(0, 2 * scan.word_count),
      });
  }

  /**
   * Also without a tag such as `+news`, and for a result its domain. An address in the arguments does not count as its
   * domain, because colleagues share one.
   */
  private addAddress(from: number, end: number): void {
    const { codes } = this;
    let to = end;
    while (codes[to - 1] === HYPHEN || codes[to - 1] === DOT) to--;
    this.add("address", from, to);
    let at = from;
    let tag = -1;
    for (; codes[at] !== AT; at++) if (tag < 0 && codes[at] === PLUS) tag = at;
    if (tag >= 0) {
      const address = this.text.slice(from, tag) + this.text.slice(at, to);
      this.found.values.addText(this.source("address"), address);
    }
    const domain = this.asciiHost(at + 1, to);
    if (domain !== undefined)
      this.found.values.addText(this.source("address"), this.text.slice(from, at + 1) + domain);
    if (!this.options.any_number) this.addHost(at + 1, to, domain);
  }

  private addHost(from: number, to: number, ascii: string | undefined): void {
    this.add("host", from, to);
    // A number of the network has no subdomains.
    if ((classAt(this.codes, to - 1) & IS_LETTER) === 0) return;
    const text = this.text.slice(from, to);
    this.addSubdomains(text);
    if (ascii === undefined) return;
    this.found.values.addText(this.source("host"), ascii);
    if (ascii !== text) this.addSubdomains(ascii);
  }

  /** A host with its subdomains has a dot before it. */
  private addSubdomains(host: string): void {
    const { subdomains } = this.options;
    const { values } = this.found;
    if (subdomains !== "in") values.addText(this.source("host"), `.${host}`);
    if (subdomains === "of") return;
    let dot = host.lastIndexOf(".");
    for (let labels = 1; labels < MAX_PARENTS && dot > 0; labels++) {
      dot = host.lastIndexOf(".", dot - 1);
      if (dot > 0) values.addText(this.source("host"), host.slice(dot));
    }
  }

  /** How the name system spells a host in another alphabet. */
  private asciiHost(from: number, to: number): string | undefined {
    let at = from;
    while (at < to && this.codes[at]! < 128) at++;
    if (at === to || this.conversions >= MAX_CONVERSIONS) return undefined;
    this.conversions++;
    return domainToASCII(this.text.slice(from, to)) || undefined;
  }

  private addDotted(from: number, to: number): void {
    const last = this.codes.lastIndexOf(DOT, to - 1) + 1;
    if (to - last <= MAX_FILE_ENDING && FILE_ENDINGS.has(this.text.slice(last, to)))
      this.add("file", from, to);
    else if (isNameOfDomain(this.codes, last, to)) this.addHost(skipWww(this.codes, from, to), to, undefined);
  }

  private addNumbers({ found }: WordScan): void {
    const { codes, text } = this;
    const { values } = this.found;
    for (const places of [found.groups, found.phones])
      eachPlace(places, (from, to) => {
        if (!isDate(text, codes, from, to)) this.addDigits(from, to);
      });
    eachPlace(found.accounts, (from, to) => values.add(this.source("id"), codes, from, to, SPACE));
    eachPlace(found.checked_accounts, (from, to) =>
      values.addOnly(this.source("id"), codes, from, to, LATIN),
    );
    eachPlace(found.tokens, (from, to) => {
      if (isDate(text, codes, from, to)) return;
      const kind = endOfDigits(codes, from, to) === to ? "number" : "id";
      values.add(this.source(kind), codes, from, to, HYPHEN);
    });
    eachPlace(found.addresses, (from, to) => this.add("host", from, to));
    for (const amounts of [found.amounts_after, found.amounts_before])
      eachPlace(amounts, (from, to) => this.addAmount(from, to));
    if (/\d[ _]\d{3}(?!\d)/.test(text))
      for (const [number] of text.matchAll(SPACED_AMOUNT))
        values.addText(this.source("amount"), decimalOf(number.replace(/[ _]/g, "")));
    if (this.options.any_number && LONE_NUMBER.test(text))
      values.addText(this.source("amount"), decimalOf(text.replace(/[\s_-]/g, "")));
  }

  /** A number, also by its last digits, because the code of the country can be missing or written in several ways. */
  private addDigits(from: number, to: number): void {
    const { values } = this.found;
    values.addOnly(this.source("number"), this.codes, from, to, DIGITS);
    const digits = this.text.slice(from, to).replace(/\D/g, "");
    if (digits.length >= LOCAL_DIGITS)
      values.addText(this.source("number"), `~${digits.slice(-LOCAL_DIGITS)}`);
  }

  /** The place can end with a currency. */
  private addAmount(from: number, end: number): void {
    const { codes } = this;
    const { values } = this.found;
    const source = this.source("amount");
    let to = from;
    while (to < end && isAmountChar(codes[to]!)) to++;
    const point = endOfDigits(codes, from, to);
    // The usual spelling, without a text. It has too few digits to be rounded.
    const isPlain = point === to || (codes[point] === DOT && endOfDigits(codes, point + 1, to) === to);
    if (!isPlain || to - from > 15 || to - point > 3 || to - point === 1) {
      values.addText(source, decimalOf(this.text.slice(from, to)));
      return;
    }
    let start = from;
    while (start < point - 1 && codes[start] === ZERO) start++;
    while (to > point && codes[to - 1] === ZERO) to--;
    values.add(source, codes, start, to === point + 1 ? point : to);
  }

  private add(kind: TraceKind, from: number, to: number): void {
    this.found.values.add(this.source(kind), this.codes, from, to);
  }

  private startPath(path: string): void {
    if (path !== this.path) this.sources = {};
    this.path = path;
  }

  private source(kind: TraceKind): number {
    const known = this.sources[kind];
    if (known !== undefined) return known;
    const source = this.found.values.addSource({ kind, path: this.path });
    this.sources[kind] = source;
    return source;
  }
}

/** Digits of a phone number that identify it within its country. */
const LOCAL_DIGITS = 9;
const SPACED = "(\\d{1,3}(?:[ _]\\d{3})+(?:[.,]\\d{1,2})?)(?!\\d)";
const MONEY =
  "(?:[$€£¥₹]|\\b(?:usd|eur|gbp|chf|jpy|cny|inr|cad|aud|sek|nok|dkk|pln|dollars?|euros?|pounds?)\\b)";
const SPACED_AMOUNT = new RegExp(`(?<=${MONEY} ?)${SPACED}|(?<!\\d)${SPACED}(?= ?${MONEY})`, "g");
const LONE_NUMBER = /^\s*-?(?:\d[\d.,']{0,20}|\d{1,3}(?:[ _]\d{3}){1,6}(?:[.,]\d{1,2})?)\s*$/;
const ZERO = 0x30;
const DIGITS = flagsOf("0123456789");
const LATIN = flagsOf("abcdefghijklmnopqrstuvwxyz0123456789");
/** Maximum hosts that a host is a subdomain of. */
const MAX_PARENTS = 8;
/** Maximum hosts of a document that are spelled in ASCII. */
const MAX_CONVERSIONS = 1_000;

function eachPlace(places: TextPlaces, use: (from: number, to: number) => void): void {
  for (let i = 0; i < places.length; i += 2) use(places[i]!, places[i + 1]!);
}

function endOfDigits(codes: Uint16Array, from: number, to: number): number {
  let at = from;
  while (at < to && isDigit(codes[at]!)) at++;
  return at;
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57;
const isAmountChar = (code: number): boolean =>
  isDigit(code) || code === DOT || code === 0x2c || code === 0x27;

/** 2 to 24 letters. */
function isNameOfDomain(codes: Uint16Array, from: number, to: number): boolean {
  let letters = 0;
  for (let i = from; i < to; i++) {
    if ((classAt(codes, i) & IS_LETTER) === 0) return false;
    if (!isLowSurrogate(codes[i]!)) letters++;
  }
  return letters >= 2;
}

const DATE =
  /^(?:\d{4}-\d{1,2}(?:-\d{1,2})?(?:t\d{1,6}z?)?|\d{1,2}[-/ ]\d{1,2}[-/ ]\d{4}(?!\d)|\d{4}[/ ]\d{1,2}[/ ]\d{1,2}(?!\d))/;
const MAX_DATE = 18;

/** Whether the place starts with a date. */
function isDate(text: string, codes: Uint16Array, from: number, to: number): boolean {
  if (!isDigit(codes[from]!) || to - from < 4) return false;
  const hasSeparator =
    isSeparator(codes, from + 1) || isSeparator(codes, from + 2) || isSeparator(codes, from + 4);
  return hasSeparator && DATE.test(text.slice(from, Math.min(to, from + MAX_DATE)));
}

const IN_DATE = flagsOf("-/ ");
const isSeparator = (codes: Uint16Array, at: number): boolean => IN_DATE[codes[at]!] === 1;

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
