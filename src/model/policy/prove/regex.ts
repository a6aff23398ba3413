/** A policy's pattern as a machine: the program that the engine runs, followed for all texts at once. */
import { type PatternInst, patternProgram } from "../pattern.ts";
import { around, type Machine, StateNumbers, Undecidable } from "./machine.ts";

/** The engine's instructions by their numbers. */
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
/** Before the first character and after the last. */
const EDGE = -1;

interface State {
  /** Where the program may stand; null once it has matched, whatever follows. */
  pcs: readonly number[] | null;
  before: number;
}

export function regexMachine(source: string): Machine {
  const { inst, start, numLb } = patternProgram(source);
  if (numLb > 0) throw new Undecidable(`the pattern ${source} looks behind itself`);
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

/** Where the program may go without reading; null when it matches on the way. */
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

/** All that the next step needs to know of the character before it. */
function kindOf(char: number): string {
  if (char < 0) return "^";
  return char === NEWLINE ? "n" : isWord(char) ? "w" : "o";
}

/** A character of the program with its other cases, and its neighbours. */
function variants(char: number): number[] {
  const text = String.fromCodePoint(Math.min(char, 0x10ffff));
  const cases = [text.toLowerCase(), text.toUpperCase()].map((one) => one.codePointAt(0)!);
  return [...around(char), ...cases.flatMap(around), ...foldedLike(text)];
}

/** All characters that folding makes alike to one: beside its own two cases there may be others, as ſ is to s. */
function foldedLike(char: string): readonly number[] {
  alike ??= charactersAlike();
  return alike.get(foldOf(char)) ?? [];
}

let alike: ReadonlyMap<string, readonly number[]> | undefined;

/** Behind it no character has cases. */
const LAST_WITH_CASES = 0x1e943;

function charactersAlike(): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (let code = 0; code <= LAST_WITH_CASES; code++) {
    const char = String.fromCodePoint(code);
    const fold = foldOf(char);
    if (fold === char) continue;
    const list = found.get(fold);
    if (list === undefined) found.set(fold, [fold.codePointAt(0)!, code]);
    else list.push(code);
  }
  return found;
}

/** One text for all that differ in case alone. Cases that are several characters are none to a pattern. */
function foldOf(char: string): string {
  const single = (text: string, otherwise: string) =>
    text.length <= String.fromCodePoint(text.codePointAt(0)!).length ? text : otherwise;
  const lower = single(char.toLowerCase(), char);
  const upper = single(lower.toUpperCase(), lower);
  return single(upper.toLowerCase(), upper);
}
