/**
 * Globs for names: `*` any run of characters, `?` one character, `{a,b}` alternatives. Matching walks
 * the text once per star, so no pattern from a policy can stall the process, as a regular expression
 * made from it could.
 */
import { invalid } from "./errors.ts";

const MAX_ALTERNATIVES = 1_000;

export interface Glob {
  readonly source: string;
  test(text: string): boolean;
  /** The literal start that every match has; `exact` when the pattern is a plain name. */
  readonly prefixes: readonly { prefix: string; exact: boolean }[];
}

export function compileGlob(source: string): Glob {
  const alternatives = expandBraces(source);
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

export function globMatches(source: string, text: string): boolean {
  return compileGlob(source).test(text);
}

export function isGlob(text: string): boolean {
  return /[*?{}]/.test(text);
}

function expandBraces(source: string): string[] {
  const open = source.indexOf("{");
  if (open < 0) {
    if (source.includes("}")) throw invalid(`glob ${JSON.stringify(source)}: "}" without "{"`);
    return [source];
  }
  let depth = 0;
  const cuts: number[] = [];
  for (let i = open; i < source.length; i++) {
    const c = source[i];
    if (c === "{") depth++;
    else if (c === "}") depth--;
    else if (c === "," && depth === 1) cuts.push(i);
    if (depth === 0) {
      const edges = [open, ...cuts, i];
      const out: string[] = [];
      const tails = expandBraces(source.slice(i + 1));
      for (let k = 0; k + 1 < edges.length; k++) {
        for (const middle of expandBraces(source.slice(edges[k]! + 1, edges[k + 1]!))) {
          for (const tail of tails) {
            out.push(source.slice(0, open) + middle + tail);
            if (out.length > MAX_ALTERNATIVES)
              throw invalid(`glob ${JSON.stringify(source)}: too many alternatives`);
          }
        }
      }
      return out;
    }
  }
  throw invalid(`glob ${JSON.stringify(source)}: "{" without "}"`);
}

/** Greedy matching of the pieces between stars: the first and last are anchored, the rest found in order. */
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
