/** Differences that a card shows: what is there now, what a call puts there, line by line where that can be read. */

import { canonical } from "../../kernel/canonical.ts";
import { type DiffLine, diffLines } from "../../kernel/diff.ts";
import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import { readKeys, tryTemplatePath } from "../../kernel/paths.ts";
import { visibleWhole } from "../../kernel/visible.ts";
import { isAbsent } from "../manifest/absent.ts";
import type { Before, Manifest } from "../manifest/types.ts";
import { hasMask } from "../mask.ts";
import { editedText, pairLines, readEdits, type TextPair } from "./edits.ts";
import { jsonLines } from "./format.ts";
import { CARD_LIMITS } from "./limits.ts";
import { argumentPath } from "./names.ts";
import { namedPlace, soleTextPlace } from "./place.ts";
import type { CardChange } from "./types.ts";

export const NOT_COMPARED = "too long to compare line by line: both texts are shown in full";
export const MASKS_COMPARED = "masked parts are compared by their length only";

/** An answer that is one text and nothing else, as that text: its lines can be compared. */
export function plainText(value: Json): Json {
  const place = isJsonObject(value) && Object.keys(value).length === 1 ? soleTextPlace(value) : undefined;
  return place === undefined ? value : readKeys(value, place)!;
}

export function asText(value: Json | undefined): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : jsonLines(value);
}

export interface DrawnDiff {
  lines: DiffLine[];
  /** Whether unchanged lines were left out. */
  abridged: boolean;
}

/** Null where the two are too long for a diff that a person can read. */
export function diffOf(before: Json | undefined, after: Json | undefined): DrawnDiff | null {
  const sides = [asText(before), asText(after)] as const;
  const drawn = drawnDiff([sides], () => diffLines(...sides));
  const ends = sides.map((text) => text === "" || text.endsWith("\n"));
  if (drawn !== null && ends[0] !== ends[1]) drawn.lines.push({ kind: "gap", text: LAST_LINE[+ends[1]!]! });
  return drawn;
}

const LAST_LINE = [
  "the last line no longer ends with a line break",
  "the last line now ends with a line break",
];

/** The two sides of replacements that the arguments themselves spell out. */
export function editLines(pairs: readonly TextPair[]): DrawnDiff | null {
  return drawnDiff(pairs, () => pairLines(pairs));
}

function drawnDiff(sides: readonly TextPair[], draw: () => DiffLine[]): DrawnDiff | null {
  const [old, put] = [0, 1].map((side) => sides.reduce((sum, pair) => sum + lineCount(pair[side]!), 0));
  if (old! + put! > CARD_LIMITS.compared_lines) return null;
  const lines = draw();
  if (lines.length > CARD_LIMITS.diff_lines) return null;
  const kept = lines.filter(({ kind }) => kind === "same" || kind === "added").length;
  return {
    lines: lines.map(({ kind, text }) => ({ kind, text: visibleWhole(text) })),
    abridged: kept < put!,
  };
}

/** Counted as a diff counts them: a line break at the end begins no further line. */
function lineCount(text: string): number {
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < text.length - 1; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}

type Compared = Pick<Manifest, "before" | "compensation"> | null;

/** Every argument that differs from what was read in its place, and an edit whose result can be told from the call alone. */
export function changesOf(
  before: Json | undefined,
  args: Json | undefined,
  manifest: Compared,
  labelOf: (name: string) => string,
): CardChange[] {
  if (before === undefined || args === undefined || !isJsonObject(args)) return [];
  const nothing = manifest?.before !== undefined && isAbsent(manifest.before, before);
  const known = new Set(targetNames(manifest));
  const changes: CardChange[] = [];
  for (const name of Object.keys(args)) {
    const place = nothing ? undefined : namedPlace(before, manifest, [name]);
    const was = place === undefined ? undefined : readKeys(before, place);
    if (nothing ? !isPutBack(name, manifest) : was === undefined) continue;
    known.add(name);
    const now = nothing ? "" : was!;
    if (nothing || asText(now) !== asText(args[name]))
      changes.push({ ...change(labelOf(name), now, args[name]!), path: argumentPath([name]) });
  }
  const others = Object.keys(args).filter((name) => !known.has(name));
  if (nothing) return changes.map((one) => remarked(one, others.map(labelOf)));
  if (changes.length === 0 && others.length === 1 && known.size === targetNames(manifest).length)
    return others.flatMap((name) => editOf(before, args[name]!, argumentPath([name])));
  return changes.map((one) => remarked(one, others.map(labelOf)));
}

/** Arguments by which the read before the call finds its target. */
function targetNames(manifest: Compared): string[] {
  const names: string[] = [];
  const walk = (value: Json): void => {
    const path = typeof value === "string" ? tryTemplatePath(value) : undefined;
    if (path?.root === "args" && path.keys.length === 1) names.push(String(path.keys[0]));
    else if (value !== null && typeof value === "object") for (const one of Object.values(value)) walk(one);
  };
  walk(manifest?.before?.args ?? {});
  return [...new Set(names)];
}

/** A comparison says nothing about the arguments that are not part of it. */
function remarked(one: CardChange, others: readonly string[]): CardChange {
  if (others.length === 0) return one;
  const named = others.slice(0, CARD_LIMITS.named_members);
  const rest = others.length - named.length;
  const remark = `does not take into account: ${named.join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
  return { ...one, remarks: [...(one.remarks ?? []), remark] };
}

/** The change that an undo makes: of the one text in the answer, where nothing else differs. */
export function restoredBy(
  is: Json | undefined,
  was: Json | undefined,
  manifest: Pick<Manifest, "before"> | null,
): CardChange[] {
  if (is === undefined || was === undefined) return [];
  const before = manifest?.before;
  const gone = (read: Json): boolean => before !== undefined && isAbsent(before, read);
  const alike = gone(is) || gone(was) || otherMembers(is, before) === otherMembers(was, before);
  const shown = (read: Json): Json => {
    if (gone(read)) return "";
    const place = alike ? soleTextPlace(read) : undefined;
    return place === undefined ? read : readKeys(read, place)!;
  };
  return [change("what is there", shown(is), shown(was))];
}

/** The members of an answer without its one text and without those that change by themselves. */
function otherMembers(read: Json, before: Before | undefined): string {
  const [text] = soleTextPlace(read) ?? [];
  if (!isJsonObject(read)) return "";
  const names = Object.keys(read).filter(
    (name) => name !== text && !before?.ignore?.includes(`$before.${name}`),
  );
  return canonical(names.sort().map((name) => [name, read[name]!]));
}

/** Only an edit that leaves the tool no choice is worked out: one text, each old part there once, nothing else asked for. */
function editOf(before: Json, value: Json, path: string): CardChange[] {
  const place = soleTextPlace(before);
  const text = place === undefined ? undefined : readKeys(before, place);
  const edits = readEdits(value);
  if (place === undefined || typeof text !== "string" || edits === null || edits === "unclear") return [];
  const after = edits.uncovered.length > 0 ? null : editedText(text, edits.pairs);
  return after === null ? [] : [{ ...change(String(place.at(-1) ?? "text"), text, after), path }];
}

/** Whether the undo gives this argument what was read: then it is what the call puts where nothing is. */
function isPutBack(name: string, manifest: Pick<Manifest, "compensation"> | null): boolean {
  const template: JsonObject = manifest?.compensation?.args ?? {};
  const put = Object.hasOwn(template, name) ? template[name] : undefined;
  return typeof put === "string" && tryTemplatePath(put)?.root === "before";
}

function change(label: string, before: Json, after: Json): CardChange {
  const [was, put] = [asText(before), asText(after)];
  const drawn = diffOf(was, put);
  const remarks = [
    ...(drawn === null ? [NOT_COMPARED] : []),
    ...(hasMask(was) || hasMask(put) ? [MASKS_COMPARED] : []),
  ];
  return {
    label: visibleWhole(label),
    before: visibleWhole(was),
    after: visibleWhole(put),
    lines: drawn?.lines ?? [],
    ...(remarks.length === 0 ? {} : { remarks }),
  };
}
