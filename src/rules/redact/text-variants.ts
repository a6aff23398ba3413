/**
 * Variants of a text that reveal differently encoded values: the original, with escapes resolved, and without number
 * separators. Each variant is folded (case, white space) and maps its characters to their original positions.
 */

export interface TextVariant {
  text: string;
  /** Original position of each character, and of the end. */
  at: readonly number[];
}

/** Folds case and white space. Values are folded the same way for comparison. */
export function foldText(text: string): string {
  const folded = foldCase(text);
  return /\s/.test(folded) ? foldSpace(folded).trim() : folded;
}

/** Makes each run of white space one space. A text can have half a million of them, too many for `replace`. */
function foldSpace(text: string): string {
  const units = new Uint16Array(text.length);
  let length = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    const space = isSpaceUnit(unit);
    if (space && length > 0 && units[length - 1] === SPACE) continue;
    units[length++] = space ? SPACE : unit;
  }
  return Buffer.from(units.buffer).toString("utf16le", 0, 2 * length);
}

const SPACE = 0x20;
const isSpaceUnit = (unit: number): boolean =>
  unit <= SPACE
    ? unit === SPACE || (unit >= 0x09 && unit <= 0x0d)
    : unit >= 0x80 && /\s/.test(String.fromCharCode(unit));

function foldCase(text: string): string {
  return text.toLowerCase().replaceAll("ς", "σ");
}

/** Distinct variants of the text. */
export function textVariants(text: string): TextVariant[] {
  const plain = plainly(text);
  const once = unescaped(plain);
  const twice = unescaped(once);
  const spaced = rewrite(once, /\+/g, () => " ");
  const ungrouped = rewrite(plain, /(?<=\d)[,.'’_ ](?=\d{3}(?!\d))/g, () => "");
  return [...new Set([plain, once, twice, spaced, ungrouped])];
}

function plainly(text: string): TextVariant {
  const writer = new Writer();
  for (let i = 0; i < text.length; i++) writer.put(foldCase(text[i]!), i);
  return writer.end(text.length);
}

const ESCAPE =
  /\\(?:u([0-9a-f]{4})|x([0-9a-f]{2})|(["'\\/bfnrt]))|((?:%[0-9a-f]{2}){1,4})|&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(quot|apos|amp|lt|gt|nbsp));/g;
const LETTERS: Readonly<Record<string, string>> = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };
const ENTITIES: Readonly<Record<string, string>> = {
  quot: '"',
  apos: "'",
  amp: "&",
  lt: "<",
  gt: ">",
  nbsp: " ",
};

/** Resolves backslash escapes as in JSON, percent-encoding and HTML entities. */
function unescaped(reading: TextVariant): TextVariant {
  return rewrite(reading, ESCAPE, ([whole, unicode, hex, letter, bytes, decimal, code, entity]) => {
    if (bytes !== undefined) return percentDecoded(bytes);
    if (letter !== undefined) return LETTERS[letter] ?? letter;
    if (entity !== undefined) return ENTITIES[entity]!;
    const point = decimal !== undefined ? Number(decimal) : Number.parseInt(unicode ?? hex ?? code!, 16);
    return point <= 0x10ffff ? String.fromCodePoint(point) : whole!;
  });
}

/** Decodes the first character of up to four bytes. Invalid bytes stay literal. */
function percentDecoded(bytes: string): Rewritten {
  const raw = Buffer.from(bytes.replaceAll("%", ""), "hex");
  const lead = raw[0]!;
  const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  const text = raw.subarray(0, length).toString("utf8");
  return text.includes("\ufffd") ? { text: "%", used: 1 } : { text, used: 3 * length };
}

/** Replacement for a match, or for its first `used` characters. */
type Rewritten = string | { text: string; used: number };

/** Replaces matches and keeps track of original positions. Returns the same variant if nothing matches. */
function rewrite(
  reading: TextVariant,
  pattern: RegExp,
  replacement: (match: RegExpExecArray) => Rewritten,
): TextVariant {
  const { text, at } = reading;
  if (text.search(pattern) < 0) return reading;
  const search = new RegExp(pattern.source, pattern.flags);
  const writer = new Writer();
  let done = 0;
  for (let match = search.exec(text); match !== null; match = search.exec(text)) {
    for (; done < match.index; done++) writer.put(text[done]!, at[done]!);
    const replaced = replacement(match);
    const { text: part, used } =
      typeof replaced === "string" ? { text: replaced, used: match[0].length } : replaced;
    writer.put(foldCase(part), at[done]!);
    done += used;
    search.lastIndex = done;
  }
  for (; done < text.length; done++) writer.put(text[done]!, at[done]!);
  return writer.end(at[text.length]!);
}

class Writer {
  private readonly out: string[] = [];
  private readonly at: number[] = [];

  /** Appends folded text; repeated white space becomes one character. */
  put(folded: string, origin: number): void {
    for (let i = 0; i < folded.length; i++) {
      const unit = isSpace(folded[i]!) ? " " : folded[i]!;
      if (unit === " " && this.out.at(-1) === " ") continue;
      this.out.push(unit);
      this.at.push(origin);
    }
  }

  end(origin: number): TextVariant {
    this.at.push(origin);
    return { text: this.out.join(""), at: this.at };
  }
}

function isSpace(unit: string): boolean {
  return unit <= " " ? /\s/.test(unit) : unit >= "\u0080" && /\s/.test(unit);
}
