/**
 * Globs for names: `*` matches any run of characters, `?` one character, `{a,b}` alternatives. Matching walks the text
 * once per star, so a policy cannot stall the process as it could with a regular expression. One walk counts the brace
 * alternatives before anything expands them.
 */
import { invalidError } from "../errors.ts";
import { LruMap } from "../lru.ts";

export const MAX_GLOB_CHARS = 2_000;
const MAX_ALTERNATIVES = 1_000;
/** Limit for all alternatives together: bounds the cost to build and store a glob. */
const MAX_EXPANDED_CHARS = 20_000;
const MAX_NESTING = 10;

export interface CompiledGlob {
  readonly source: string;
  test(text: string): boolean;
  /** The literal prefix of every match. `exact` if the pattern is a plain name. */
  readonly prefixes: readonly { prefix: string; exact: boolean }[];
}

/** Expands the braces of a glob into plain patterns of `*`, `?` and characters. */
export function globAlternatives(source: string): string[] {
  const problem = globProblem(source);
  if (problem !== null) throw invalidError(`glob ${shown(source)}: ${problem}`);
  return expandBraces(source);
}

export function compileGlob(source: string): CompiledGlob {
  const alternatives = globAlternatives(source);
  const patterns = alternatives.map((pattern) => pattern.split("*"));
  const anything = alternatives.includes("*");
  return {
    source,
    test: (text) => anything || patterns.some((parts) => matchParts(parts, text)),
    prefixes: alternatives.map((pattern) => {
      const cut = pattern.search(/[*?]/);
      return cut < 0 ? { prefix: pattern, exact: true } : { prefix: pattern.slice(0, cut), exact: false };
    }),
  };
}

const KEPT_GLOBS = 500;
const kept = new LruMap<string, CompiledGlob>(KEPT_GLOBS);

/** Matches with a cache, because halts, keys, delegations and retention rules use the same globs repeatedly. */
export function globMatches(source: string, text: string): boolean {
  let glob = kept.get(source);
  if (glob === undefined) {
    glob = compileGlob(source);
    kept.set(source, glob);
  }
  return glob.test(text);
}

export function isGlob(text: string): boolean {
  return /[*?{}]/.test(text);
}

/** Shortens a long glob for a message. */
function shown(source: string): string {
  return JSON.stringify(source.length > 100 ? `${source.slice(0, 100)}...` : source);
}

/** The number of texts that a piece expands to, and their total length. */
interface Size {
  count: number;
  chars: number;
}

const behind = (a: Size, b: Size): Size => ({
  count: a.count * b.count,
  chars: a.chars * b.count + b.chars * a.count,
});
const sumOf = (a: Size, b: Size): Size => ({ count: a.count + b.count, chars: a.chars + b.chars });
const NOTHING: Size = { count: 1, chars: 0 };
const ONE_CHAR: Size = { count: 1, chars: 1 };

/** Returns why the text is not a usable glob, or null. Needs one walk and expands nothing. */
function globProblem(source: string): string | null {
  if (source.length > MAX_GLOB_CHARS) return `longer than ${MAX_GLOB_CHARS} characters`;
  /** The open braces: the size before each, and of its alternatives so far. */
  const open: { before: Size; sides: Size | null }[] = [];
  let here = NOTHING;
  for (const c of source) {
    const top = open.at(-1);
    if (c === "{") {
      if (open.length === MAX_NESTING) return `braces nested more than ${MAX_NESTING} deep`;
      open.push({ before: here, sides: null });
      here = NOTHING;
    } else if (c === "," && top !== undefined) {
      top.sides = top.sides === null ? here : sumOf(top.sides, here);
      here = NOTHING;
    } else if (c === "}") {
      if (top === undefined) return '"}" without "{"';
      here = behind(top.before, top.sides === null ? here : sumOf(top.sides, here));
      open.pop();
    } else here = behind(here, ONE_CHAR);
    if (here.count > MAX_ALTERNATIVES || here.chars > MAX_EXPANDED_CHARS) return "too many alternatives";
  }
  return open.length > 0 ? '"{" without "}"' : null;
}

/** Expands the alternatives of a text in which `globProblem` finds no problem. */
function expandBraces(source: string): string[] {
  const open: { before: string[]; sides: string[] }[] = [];
  let here = [""];
  const append = (tails: readonly string[]) => {
    // Empty braces cost nothing, even after many alternatives.
    if (tails.length === 1 && tails[0] === "") return;
    here = here.flatMap((head) => tails.map((tail) => head + tail));
  };
  for (const piece of source.match(/[{},]|[^{},]+/g) ?? []) {
    const top = open.at(-1);
    if (piece === "{") {
      open.push({ before: here, sides: [] });
      here = [""];
    } else if (piece === "," && top !== undefined) {
      top.sides.push(...here);
      here = [""];
    } else if (piece === "}") {
      const sides = [...top!.sides, ...here];
      here = top!.before;
      append(sides);
      open.pop();
    } else append([piece]);
  }
  return here;
}

/** Greedily matches the pieces between stars: anchors the first and last, and searches for the rest in order. */
function matchParts(parts: readonly string[], text: string): boolean {
  const first = parts[0]!;
  if (parts.length === 1) return first.length === text.length && pieceAt(first, text, 0);
  const last = parts[parts.length - 1]!;
  if (first.length + last.length > text.length) return false;
  if (!pieceAt(first, text, 0) || !pieceAt(last, text, text.length - last.length)) return false;
  let from = first.length;
  const end = text.length - last.length;
  for (let i = 1; i < parts.length - 1; i++) {
    const piece = parts[i]!;
    let at = from;
    while (at + piece.length <= end && !pieceAt(piece, text, at)) at++;
    if (at + piece.length > end) return false;
    from = at + piece.length;
  }
  return true;
}

function pieceAt(piece: string, text: string, at: number): boolean {
  for (let i = 0; i < piece.length; i++) {
    const c = piece[i];
    if (c !== "?" && c !== text[at + i]) return false;
  }
  return true;
}
