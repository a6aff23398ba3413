/**
 * Inputs within every limit that cost much to read: texts that are compiled, parsed, compared or drawn. Each has
 * about the size that is asked for.
 */
import type { JsonValue } from "../../src/kernel/json/json.ts";

export interface Bomb {
  name: string;
  value: JsonValue;
}

const lines = (size: number, line: (i: number) => string): string => {
  const out: string[] = [];
  for (let i = 0, chars = 0; chars < size; i++) {
    const text = line(i);
    out.push(text);
    chars += text.length;
  }
  return out.join("");
};
const rules = (size: number, rest: (i: number) => string): string =>
  `version: 1\nrules:\n${lines(size, (i) => `  - {id: r${i}, action: deny, ${rest(i)}}\n`)}`;
const pattern = (source: string): string => `when: [{path: $args.t, op: matches, value: "${source}"}]`;
const glob = (source: string): string => `match: {tool: "${source}"}`;
const NESTED = `${"{".repeat(950)}${"}".repeat(950)}`;
const PRODUCT = `${"x".repeat(1_900)}${"{a,b}".repeat(9)}`;
const WIDE = `{${"a,".repeat(900)}}`;

/** Policies first; every place that takes text gets them. */
const TEXTS: Readonly<Record<string, (size: number) => string>> = {
  "plain rules": (size) => rules(size, (i) => `${glob(`t${i}.*`)}, reason: no`),
  "nested braces": (size) => rules(size, () => glob(NESTED)),
  "one glob of nested braces": (size) => rules(1, () => glob("{".repeat(size / 2) + "}".repeat(size / 2))),
  "braces that multiply": (size) => rules(size, () => glob(PRODUCT)),
  "braces that are wide": (size) => rules(size, () => glob(WIDE)),
  "effects of nested braces": (size) => rules(size, () => `match: {effect: "${NESTED}"}`),
  "patterns that repeat": (size) => rules(size, () => pattern("(a{99}){10}")),
  "patterns of classes": (size) => rules(size, () => pattern("\\\\pL")),
  "patterns that are refused": (size) => rules(size, () => pattern("(?:a{30}b{30}){30}c{900}")),
  "tests that repeat": (size) =>
    `version: 1\nlimits: [{id: l, max: 1, per: run, window: 1h}]\ntests:\n${lines(
      size / 20,
      (i) => `  - {name: t${i}, input: {tool: t, repeat: 50}, expect: deny}\n`,
    )}`,
  "tests of rules that are not there": (size) =>
    `${rules(size / 2, () => "reason: no")}tests:\n${lines(
      size / 2,
      (i) => `  - {name: t, input: {tool: t}, expect: deny, rule: s${i}x}\n`,
    )}`,
  "very many keys": (size) => `version: 1\n${lines(size, (i) => `k${i}: 1\n`)}`,
  "very many aliases": (size) => `version: 1\nx: [${lines(size, (i) => `&a${i} 1, *a${i}, `)}1]\n`,
  "an alias of an alias": (size) =>
    `version: 1\nx: &a [${"1,".repeat(5_000)}1]\ny: [${"*a,".repeat(size / 3)}1]\n`,
  "one manifest, very long": (size) =>
    `- tool: long.tool\n  effect: compensable\n  permission: p\n  compensation:\n    tool: u\n    residue:\n${lines(size, (i) => `      - left ${i}\n`)}`,
  "very many manifests": (size) =>
    lines(size, (i) => `- {tool: m${i}, effect: read, permission: p, requires: [m${i + 1}]}\n`),
  "open brackets": (size) => "[".repeat(size),
  stars: (size) => "*a".repeat(size / 2),
  letters: (size) => "a".repeat(size),
};

/** By size: fields by the hundred get the same. */
const made = new Map<number, Bomb[]>();

export function textBombs(size: number): Bomb[] {
  const chars = Math.floor(size);
  const bombs =
    made.get(chars) ?? Object.entries(TEXTS).map(([name, make]) => ({ name, value: make(chars) }));
  made.set(chars, bombs);
  return bombs;
}

/** Values other than text: wide and deep ones, for fields that take any. */
export function valueBombs(size: number): Bomb[] {
  const many = Math.floor(size / 12);
  const wide = Object.fromEntries(Array.from({ length: many }, (_, i) => [`k${i}`, i]));
  let deep: JsonValue = Array.from({ length: Math.floor(many / 4) }, () => 1);
  for (let i = 0; i < 58; i++) deep = { a: deep };
  return [
    { name: "a wide object", value: wide },
    { name: "a long list", value: Array.from({ length: many }, (_, i) => i) },
    { name: "a long list of texts", value: Array.from({ length: many }, (_, i) => `t${i}`) },
    { name: "a long list of objects", value: Array.from({ length: many }, () => ({ odd: 1 })) },
    { name: "a deep value", value: deep },
  ];
}
