/**
 * What a text says once it is decoded: folded in Unicode form, letter case and invisible characters, and without the
 * escapes of URLs, HTML and JSON.
 */

export interface TextReading {
  text: string;
  /** False if another reading has the same words. */
  has_words: boolean;
}

/** A text in plain ASCII has one reading. */
export function readingsOf(source: string): TextReading[] {
  const isPlain = /^[\x20-\x7e\s]*$/.test(source);
  const plain = { text: isPlain ? source.toLowerCase() : foldValue(source), has_words: true };
  const isEncoded = source.includes("%") || source.includes("&") || source.includes("\\");
  if (isPlain && !isEncoded) return [plain];
  const decoded = isEncoded ? decodeText(source) : source;
  const text = foldFurther(decoded);
  return text === plain.text ? [plain] : [plain, { text, has_words: decoded !== source }];
}

function foldValue(text: string): string {
  return text
    .normalize("NFKC")
    .replace(/\p{Cf}/gu, "")
    .toLowerCase();
}

/** Also without accents, and with one form of each digit, dash and dot. Stored fingerprints have the other folding. */
function foldFurther(text: string): string {
  if (/^[\x20-\x7e\s]*$/.test(text)) return text.toLowerCase();
  return text
    .replace(INVISIBLE, "")
    .normalize("NFKD")
    .replace(/\p{Mn}/gu, "")
    .normalize("NFKC")
    .replace(INVISIBLE, "")
    .replace(/\p{Nd}/gu, asciiDigit)
    .replace(/(?<=\d)[\p{Pd}\u2212](?=\d)/gu, "-")
    .replace(/(?<=[a-z0-9])\u3002(?=[a-z0-9])/gi, ".")
    .toUpperCase()
    .toLowerCase();
}

const INVISIBLE = /[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu;

/** Digits of each alphabet follow one another, beginning with its zero. */
function asciiDigit(char: string): string {
  const code = char.codePointAt(0)!;
  let zero = code;
  while (code - zero < 9 && /\p{Nd}/u.test(String.fromCodePoint(zero - 1))) zero--;
  return String(code - zero);
}

/** A value can be encoded twice. */
const MAX_DECODINGS = 3;

function decodeText(text: string): string {
  let decoded = text;
  for (let i = 0; i < MAX_DECODINGS; i++) {
    const next = decodeOnce(decoded);
    if (next === decoded) break;
    decoded = next;
  }
  return decoded;
}

const decodeOnce = (text: string): string =>
  text
    .replace(/\\(?:u([0-9a-fA-F]{4})|([nrtbfv])|([^a-zA-Z0-9]))/g, (_, code, space, char) =>
      code === undefined
        ? space === undefined
          ? char
          : " "
        : String.fromCharCode(Number.parseInt(code, 16)),
    )
    .replace(/(?:%[0-9a-fA-F]{2})+/g, decodePercent)
    .replace(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z]{2,8})(?=;));?/g, (all, decimal, hex, name) => {
      if (name !== undefined) return ENTITIES[name.toLowerCase() as keyof typeof ENTITIES] ?? all;
      const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
      return code <= 0x10ffff ? String.fromCodePoint(code) : all;
    });

/** Also where other bytes are not UTF-8. */
function decodePercent(run: string): string {
  try {
    return decodeURIComponent(run);
  } catch {
    return run.replace(/%([0-7][0-9a-fA-F])/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
}

/** The characters that values are made of, and those that every page escapes. */
const ENTITIES = {
  ...{ amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: " ", shy: "" },
  ...{ commat: "@", period: ".", colon: ":", sol: "/", num: "#", quest: "?", equals: "=" },
  ...{ lowbar: "_", hyphen: "-", dash: "-", plus: "+", percnt: "%", comma: "," },
} as const;
