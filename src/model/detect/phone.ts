/**
 * Phone numbers. Cheap patterns propose, libphonenumber disposes; it costs some forty microseconds a
 * candidate, so past a bound the patterns alone decide and a hostile text cannot stall the process.
 */
import { createRequire } from "node:module";
import { atEnd, collectHits, type Hit } from "./hit.ts";

type Library = typeof import("libphonenumber-js/min");
let library: Library | undefined;

/** Its tables take a tenth of a second to read in: paid by the first text that needs them, not by every start. */
function parsePhone(text: string): ReturnType<Library["parsePhoneNumberFromString"]> {
  library ??= createRequire(import.meta.url)("libphonenumber-js/min") as Library;
  return library.parsePhoneNumberFromString(text);
}

const INTERNATIONAL = /(?<![A-Za-z0-9_.+/=-])(?:\+|00)[1-9][\d ().\u00a0-]{6,20}\d(?![A-Za-z0-9_])/g;
const NORTH_AMERICAN =
  /(?<![A-Za-z0-9_.+/=-])(?:1[ .-])?(?:\([2-9]\d{2}\) ?|[2-9]\d{2}[.-])\d{3}[ .-]\d{4}(?![A-Za-z0-9_-])/g;
const NAMED =
  /(?<![A-Za-z])(?:tele)?(?:phone|tel|mobile|cell|fax|whatsapp|handy)(?![a-z])[^\d\n+]{0,15}(\+?\(?\d[\d ().\u00a0-]{5,20}\d)(?![A-Za-z0-9_])/gi;
const PHONE_KEY = /(?:phone|mobile|cell|fax|tel|msisdn|whatsapp)(?:_?(?:number|no|nr))?$/i;
const DATE = /^(?:19|20)\d{2}[-. ]?(?:0[1-9]|1[0-2])[-. ]?[0-3]\d/;

/** How many candidates of one text are parsed; each costs far more than finding it. */
const PARSED = 300;

export function findPhones(text: string, key?: string): Hit[] {
  const hits: Hit[] = [];
  const budget = { left: PARSED };
  if (text.includes("+") || text.includes("00")) {
    collectHits(text, INTERNATIONAL, hits, (match) => {
      const length = validLength(match[0], budget);
      return length > 0 ? { kind: "phone", start: match.index, end: match.index + length } : undefined;
    });
  }
  collectHits(text, NORTH_AMERICAN, hits, (match) => atEnd("phone", match));
  collectHits(text, NAMED, hits, (match) => (plausible(match[1]!) ? atEnd("phone", match) : undefined));
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

/** How much of the candidate is a number: a figure that follows it in the text is cut off again. */
function validLength(candidate: string, budget: { left: number }): number {
  let value = candidate;
  for (let tries = 0; tries < 3; tries++) {
    if (!plausible(value.replace(/^00/, "+"))) return 0;
    if (budget.left-- <= 0) return value.length;
    const number = parsePhone(value.replace(/^00/, "+"));
    if (number?.isValid()) return value.length;
    const cut = value.search(/[ ().\u00a0-]+\d+$/);
    if (cut <= 0) return 0;
    value = value.slice(0, cut);
  }
  return 0;
}
