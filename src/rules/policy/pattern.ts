/**
 * Regular expressions of policy authors. They run on re2js, whose work is bounded by pattern size times text size. Both
 * are limited here, because an auditor can submit any policy.
 */
import { RE2JS } from "re2js";
import { messageOf } from "../../kernel/errors.ts";

const MAX_PATTERN_CHARS = 1_000;
const MAX_PROGRAM = 2_000;
/** Maximum cost of one test, in instructions times characters: about a quarter of a second. */
const MAX_WORK = 6_000_000;
/** Up to this program size, the automaton has so few states that it is built once and then only walked. */
const SMALL_PROGRAM = 16;
/** Compiling a Unicode class costs about as much as a hundred plain characters. */
const CLASS_WEIGHT = 100;
/** Maximum weight of one pattern. The engine rejects larger counts while parsing. */
const MAX_SINGLE_WEIGHT = 50_000;
/** Maximum weight of all patterns in a policy. */
export const MAX_PATTERN_WEIGHT = 200_000;

interface Pattern {
  /** Undefined if the text is too long to test within the limits. */
  test(text: string): boolean | undefined;
}

/** Tokens of a pattern: Unicode class, escape, set, group boundary, count, character. */
const TOKENS =
  /\\[pP](?:\{[^}]*\}|.)|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?[a-z]+)?|\)|\{(\d+)(?:,(\d*))?\}|./gs;

/** Unicode classes weigh more, also inside sets, and so does the flag that ignores case. */
function weightOf(token: string): number {
  const classes = token.match(/\\[pP]|^\(\?[a-z]*i/g)?.length ?? 0;
  return classes === 0 ? 1 : classes * CLASS_WEIGHT;
}

/**
 * Estimates the cost of compiling a pattern, for the limit on a policy. It walks the text once and compiles nothing: a
 * count in braces multiplies the token or group before it.
 */
export function patternWeight(source: string): number {
  const open: number[] = [];
  let sum = 0;
  let last = 0;
  for (const [token, least, most] of source.matchAll(TOKENS)) {
    if (least !== undefined) {
      const times = Math.max(1, Number(most || least) + (most === "" ? 1 : 0));
      sum += last * (times - 1);
      last *= times;
    } else if (token === ")") {
      last = sum + 2;
      sum = (open.pop() ?? 0) + last;
    } else {
      last = weightOf(token);
      if (token.startsWith("(")) {
        open.push(sum + last);
        sum = 0;
      } else sum += last;
    }
  }
  const all = open.reduce((total, one) => total + one, sum);
  return Math.max(source.length, Math.min(all, MAX_SINGLE_WEIGHT));
}

/** Explains why a text is not a usable pattern, or returns null. */
export function patternProblem(source: string): string | null {
  if (source.length > MAX_PATTERN_CHARS)
    return `is longer than ${MAX_PATTERN_CHARS} characters; split the rule`;
  try {
    const size = RE2JS.compile(source).programSize();
    return size <= MAX_PROGRAM ? null : "repeats too much; lower the counts in braces";
  } catch (error) {
    const what = messageOf(error)
      .replace(/^error parsing regexp: /, "")
      .slice(0, 120);
    return `is outside the linear-time subset (RE2): ${what}; lookaround and backreferences are not supported`;
  }
}

/** One instruction of a compiled pattern, as the engine runs it. */
export interface PatternInst {
  readonly op: number;
  readonly out: number;
  readonly arg: number;
  readonly runes: ArrayLike<number>;
  matchRune(rune: number): boolean;
}

/** Returns the engine's own program, so that proofs cover the code that runs. */
export function patternProgram(source: string): {
  inst: readonly PatternInst[];
  start: number;
  numLb: number;
} {
  return (RE2JS.compile(source).re2() as { prog: ReturnType<typeof patternProgram> }).prog;
}

export function compilePattern(source: string): Pattern {
  const compiled = RE2JS.compile(source);
  const size = compiled.programSize();
  const longest = size <= SMALL_PROGRAM ? Number.POSITIVE_INFINITY : Math.floor(MAX_WORK / size);
  return { test: (text) => (text.length > longest ? undefined : compiled.test(text)) };
}
