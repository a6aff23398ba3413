/** A policy's pattern as a machine: simulates the engine's program for all texts at once. */
import { type PatternInst, patternProgram } from "../../pattern.ts";
import { StateNumbers, type TextMachine, UndecidableError, withNeighbours } from "./machine.ts";

/** Opcodes of the engine. */
const OP = {
  alt: 1,
  altMatch: 2,
  capture: 3,
  empty: 4,
  fail: 5,
  match: 6,
  nop: 7,
  rune: 8,
  any: 10,
  notNewline: 11,
};
const EMPTY = { beginLine: 1, endLine: 2, beginText: 4, endText: 8, boundary: 16, noBoundary: 32 };
const NEWLINE = 10;
/** Marks the start and the end of the text. */
const EDGE = -1;

interface State {
  /** Possible program counters; null after a match, which no further character can change. */
  pcs: readonly number[] | null;
  before: number;
}

export function regexMachine(source: string): TextMachine {
  const { inst, start, numLb } = patternProgram(source);
  if (numLb > 0) throw new UndecidableError(`the pattern ${source} uses lookbehind`);
  const states = new StateNumbers<State>();
  const intern = (pcs: readonly number[] | null, before: number) =>
    pcs === null
      ? states.of("matched", () => ({ pcs, before }))
      : states.of(`${kindOf(before)} ${pcs.join(",")}`, () => ({ pcs, before }));
  const runes = inst.filter(({ op }) => op >= OP.rune && op <= OP.notNewline);
  return {
    start: intern([], EDGE),
    step(state, char) {
      const { pcs, before } = states.get(state);
      if (pcs === null) return state;
      const here = closure(inst, [...pcs, start], contextOf(before, char));
      if (here === null) return intern(null, EDGE);
      const next = new Set<number>();
      for (const pc of here) if (takes(inst[pc]!, char)) next.add(inst[pc]!.out);
      return intern(
        [...next].sort((a, b) => a - b),
        char,
      );
    },
    shows(state) {
      const { pcs, before } = states.get(state);
      const matched = pcs === null || closure(inst, [...pcs, start], contextOf(before, EDGE)) === null;
      return matched ? "1" : "0";
    },
    edges: runes.flatMap(({ runes: ranges }) => Array.from(ranges).flatMap(variants)),
    sign: (char) => kindOf(char) + runes.map((one) => (takes(one, char) ? "1" : "0")).join(""),
  };
}

function takes(one: PatternInst, char: number): boolean {
  if (one.op === OP.any) return true;
  if (one.op === OP.notNewline) return char !== NEWLINE;
  return one.op >= OP.rune && one.op < OP.any && one.matchRune(char);
}

/** Program counters reachable without reading a character; null if the program matches on the way. */
function closure(inst: readonly PatternInst[], from: readonly number[], context: number): Set<number> | null {
  const seen = new Set<number>();
  const left = [...from];
  for (let pc = left.pop(); pc !== undefined; pc = left.pop()) {
    if (seen.has(pc)) continue;
    seen.add(pc);
    const { op, out, arg } = inst[pc]!;
    if (op === OP.match) return null;
    if (op === OP.alt || op === OP.altMatch) left.push(out, arg);
    else if (op === OP.capture || op === OP.nop) left.push(out);
    else if (op === OP.empty && (arg & ~context) === 0) left.push(out);
  }
  return seen;
}

function contextOf(before: number, after: number): number {
  let flags = 0;
  if (before < 0) flags |= EMPTY.beginText | EMPTY.beginLine;
  if (before === NEWLINE) flags |= EMPTY.beginLine;
  if (after < 0) flags |= EMPTY.endText | EMPTY.endLine;
  if (after === NEWLINE) flags |= EMPTY.endLine;
  return flags | (isWord(before) === isWord(after) ? EMPTY.noBoundary : EMPTY.boundary);
}

function isWord(char: number): boolean {
  return char >= 0 && char < 128 && /\w/.test(String.fromCharCode(char));
}

/** The class of the preceding character, as far as the next step depends on it. */
function kindOf(char: number): string {
  if (char < 0) return "^";
  return char === NEWLINE ? "n" : isWord(char) ? "w" : "o";
}

/** A character of the program, its case variants, and their neighbours. */
function variants(char: number): number[] {
  const text = String.fromCodePoint(Math.min(char, 0x10ffff));
  const cases = [text.toLowerCase(), text.toUpperCase()].map((one) => one.codePointAt(0)!);
  return [...withNeighbours(char), ...cases.flatMap(withNeighbours), ...foldedLike(text)];
}

/** Characters equal under case folding. There can be more than two cases, such as ſ for s. */
function foldedLike(char: string): readonly number[] {
  alike ??= charactersAlike();
  return alike.get(foldOf(char)) ?? [];
}

let alike: ReadonlyMap<string, readonly number[]> | undefined;

/** Past it no character has case variants. */
const LAST_WITH_CASES = 0x1e943;
const BLOCK = 1_024;
const SURROGATES = { first: 0xd800, last: 0xdfff };
const WITH_CASES = /[\p{Changes_When_Lowercased}\p{Changes_When_Uppercased}]/gu;

function charactersAlike(): Map<string, number[]> {
  const found = new Map<string, number[]>();
  // The engine's own search finds the 2,800 of them sooner than a loop that folds all 125,000 characters.
  for (const [char] of allCharacters().matchAll(WITH_CASES)) {
    const fold = foldOf(char);
    if (fold === char) continue;
    const list = found.get(fold);
    if (list === undefined) found.set(fold, [fold.codePointAt(0)!, char.codePointAt(0)!]);
    else list.push(char.codePointAt(0)!);
  }
  return found;
}

function allCharacters(): string {
  let text = "";
  for (let start = 0; start <= LAST_WITH_CASES; start += BLOCK)
    if (start < SURROGATES.first || start > SURROGATES.last)
      text += String.fromCodePoint(...Array.from({ length: BLOCK }, (_, at) => start + at));
  return text;
}

/**
 * Folded form, equal for characters that differ only in case. A pattern ignores case mappings to several characters.
 */
function foldOf(char: string): string {
  const single = (text: string, otherwise: string) =>
    text.length <= String.fromCodePoint(text.codePointAt(0)!).length ? text : otherwise;
  const lower = single(char.toLowerCase(), char);
  const upper = single(lower.toUpperCase(), lower);
  return single(upper.toLowerCase(), upper);
}
