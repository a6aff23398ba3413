/**
 * Finds phone numbers. Patterns propose candidates and libphonenumber confirms them. A confirmation takes about 40
 * microseconds, so above a limit the patterns alone decide and hostile text cannot stall the process.
 */
import { createRequire } from "node:module";
import { collectHits, type DetectorHit, trailingHit } from "./hits.ts";

type Library = typeof import("libphonenumber-js/min");
let library: Library | undefined;

/**
 * Loads the phone number tables, which takes about 100 ms. Servers load them at startup, other processes at first use.
 */
export function loadPhoneTables(): Library {
  library ??= createRequire(import.meta.url)("libphonenumber-js/min") as Library;
  return library;
}

function parsePhone(text: string): ReturnType<Library["parsePhoneNumberFromString"]> {
  return loadPhoneTables().parsePhoneNumberFromString(text);
}

const INTERNATIONAL = /(?<![A-Za-z0-9_.+/=-])(?:\+|00)[1-9][\d ().\u00a0-]{6,20}\d(?![A-Za-z0-9_])/g;
const NORTH_AMERICAN =
  /(?<![A-Za-z0-9_.+/=-])(?:1[ .-])?(?:\([2-9]\d{2}\) ?|[2-9]\d{2}[.-])\d{3}[ .-]\d{4}(?![A-Za-z0-9_-])/g;
const NAMED =
  /(?<![A-Za-z])(?:tele)?(?:phone|tel|mobile|cell|fax|whatsapp|handy)(?![a-z])[^\d\n+]{0,15}(\+?\(?\d[\d ().\u00a0-]{5,20}\d)(?![A-Za-z0-9_])/gi;
const PHONE_KEY = /(?:phone|mobile|cell|fax|tel|msisdn|whatsapp)(?:_?(?:number|no|nr))?$/i;
const DATE = /^(?:19|20)\d{2}[-. ]?(?:0[1-9]|1[0-2])[-. ]?[0-3]\d/;

/** Maximum candidates per text that the library parses. */
const PARSED = 300;

export function findPhones(text: string, key?: string): DetectorHit[] {
  const hits: DetectorHit[] = [];
  const budget = { left: PARSED };
  if (text.includes("+") || text.includes("00")) {
    collectHits(text, INTERNATIONAL, hits, (match) => {
      const length = validLength(match[0], budget);
      return length > 0 ? { kind: "phone", start: match.index, end: match.index + length } : undefined;
    });
  }
  collectHits(text, NORTH_AMERICAN, hits, (match) => trailingHit("phone", match));
  collectHits(text, NAMED, hits, (match) => (plausible(match[1]!) ? trailingHit("phone", match) : undefined));
  if (
    key !== undefined &&
    PHONE_KEY.test(key) &&
    /^\+?[\d ().\u00a0-]{7,24}$/.test(text) &&
    plausible(text)
  ) {
    hits.push({ kind: "phone", start: 0, end: text.length });
  }
  return hits;
}

function plausible(value: string): boolean {
  const digits = value.replace(/\D/g, "").length;
  return digits >= 7 && digits <= 15 && !DATE.test(value);
}

/** Length of the valid number at the start of a candidate, without digits that merely follow it. */
function validLength(candidate: string, budget: { left: number }): number {
  let value = candidate;
  for (let tries = 0; tries < 3; tries++) {
    if (!plausible(value.replace(/^00/, "+"))) return 0;
    if (budget.left-- <= 0) return value.length;
    const number = parsePhone(value.replace(/^00/, "+"));
    if (number?.isValid()) return value.length;
    const cut = value.search(/(?<![ ().\u00a0-])[ ().\u00a0-]+\d+$/);
    if (cut <= 0) return 0;
    value = value.slice(0, cut);
  }
  return 0;
}
