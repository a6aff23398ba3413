/**
 * Regular expressions written by policy authors. They run on re2js, whose work grows with the pattern
 * times the text and never faster; both are bounded here, because an auditor may submit any policy.
 */
import { RE2JS } from "re2js";
import { messageOf } from "../../kernel/errors.ts";

const MAX_PATTERN_CHARS = 1_000;
const MAX_PROGRAM = 2_000;
/** Instructions times characters that one test may cost at worst: about a quarter of a second. */
const MAX_WORK = 6_000_000;
/** A program this small has so few states that its automaton is built once and then only walked. */
const SMALL_PROGRAM = 16;
/** Compiling a Unicode class costs as much as about a hundred plain characters. */
const CLASS_WEIGHT = 100;
/** Of one: counts beyond this are refused by the engine as soon as it reads them. */
const MOST_WEIGHT = 50_000;
/** Of a whole policy. */
export const MAX_PATTERN_WEIGHT = 200_000;

interface Pattern {
  /** Undefined when the text is too long for a pattern of this size to be tested within bounds. */
  test(text: string): boolean | undefined;
}

/** What a pattern is made of: a Unicode class, an escape, a set, a group's ends, a count, a character. */
const TOKENS =
  /\\[pP](?:\{[^}]*\}|.)|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?[a-z]+)?|\)|\{(\d+)(?:,(\d*))?\}|./gs;

/** Unicode classes, in a set too, and a flag that ignores case. */
function weightOf(token: string): number {
  const classes = token.match(/\\[pP]|^\(\?[a-z]*i/g)?.length ?? 0;
  return classes === 0 ? 1 : classes * CLASS_WEIGHT;
}

/**
 * How much compiling the pattern costs, for the bound on a whole policy. It is told from the text in one walk, so
 * that nothing is compiled to find out: a count in braces repeats what stands before it, a group as a whole.
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
  return Math.max(source.length, Math.min(all, MOST_WEIGHT));
}

/** Why the text is not a pattern that can be used, or null. */
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

/** The engine's own program, so that what is proved about a pattern is about what runs. */
export function patternProgram(source: string): {
  inst: readonly PatternInst[];
  start: number;
  numLb: number;
} {
  return (RE2JS.compile(source).re2() as unknown as { prog: ReturnType<typeof patternProgram> }).prog;
}

export function compilePattern(source: string): Pattern {
  const compiled = RE2JS.compile(source);
  const size = compiled.programSize();
  const longest = size <= SMALL_PROGRAM ? Number.POSITIVE_INFINITY : Math.floor(MAX_WORK / size);
  return { test: (text) => (text.length > longest ? undefined : compiled.test(text)) };
}
