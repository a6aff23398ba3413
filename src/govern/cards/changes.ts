/**
 * Differences that a card shows: the current value against the value that a call would write, as a line diff if
 * possible.
 */
import { toCanonicalJson } from "../../kernel/json/canonical.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../kernel/json/json.ts";
import { readKeys, tryTemplatePath } from "../../kernel/paths.ts";
import { type DiffLine, diffLines } from "../../kernel/text/diff.ts";
import { visibleText } from "../../kernel/text/escape-invisible.ts";
import { isAbsent } from "../../rules/manifest/is-absent.ts";
import type { BeforeSpec, ToolManifest } from "../../rules/manifest/types.ts";
import { hasMask } from "../../rules/redact/mask.ts";
import { changedEnd, editedText, pairLines, readEdits, type TextPair } from "./text/edits.ts";
import { jsonLines } from "./text/format.ts";
import { CARD_LIMITS } from "./text/limits.ts";
import { locateByName, locateSoleText } from "./text/locate.ts";
import { argumentPath } from "./text/names.ts";
import type { CardChange } from "./types.ts";

export const NO_DIFF_REMARK = "too long for a line diff; both texts are shown in full";
export const MASKED_DIFF_REMARK = "masked parts are compared by their length only";

/** Unwraps an answer that is a single text, so that its lines can be compared. */
export function plainText(value: JsonValue): JsonValue {
  const place = isJsonObject(value) && Object.keys(value).length === 1 ? locateSoleText(value) : undefined;
  return place === undefined ? value : readKeys(value, place)!;
}

export function asText(value: JsonValue | undefined): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : jsonLines(value);
}

export interface DrawnDiff {
  lines: DiffLine[];
  /** True if the diff leaves out unchanged lines. */
  abridged: boolean;
}

/** Line diff of two values. Null if the diff would be too long to read. */
export function buildDiff(before: JsonValue | undefined, after: JsonValue | undefined): DrawnDiff | null {
  const sides = [asText(before), asText(after)] as const;
  const drawn = drawnDiff([sides], () => diffLines(...sides));
  const end = changedEnd(...sides);
  if (drawn !== null && end !== null) drawn.lines.push({ kind: "gap", text: end });
  return drawn;
}

/** Line diff of replacements that the arguments spell out. */
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
    lines: lines.map(({ kind, text }) => ({ kind, text: visibleText(text) })),
    abridged: kept < put!,
  };
}

/** Counts lines as the diff does: a trailing line break does not start another line. */
function lineCount(text: string): number {
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < text.length - 1; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}

type Compared = Pick<ToolManifest, "before" | "compensation"> | null;

/**
 * Lists every argument that differs from the current value it replaces, and an edit if the call alone determines its
 * result.
 */
export function listChanges(
  before: JsonValue | undefined,
  args: JsonValue | undefined,
  manifest: Compared,
  labelOf: (name: string) => string,
): CardChange[] {
  if (before === undefined || args === undefined || !isJsonObject(args)) return [];
  const nothing = manifest?.before !== undefined && isAbsent(manifest.before, before);
  const known = new Set(targetNames(manifest));
  const changes: CardChange[] = [];
  for (const name of Object.keys(args)) {
    const place = nothing ? undefined : locateByName(before, manifest, [name]);
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

/** Arguments that select the target of the `before` read. */
function targetNames(manifest: Compared): string[] {
  const names: string[] = [];
  const walk = (value: JsonValue): void => {
    const path = typeof value === "string" ? tryTemplatePath(value) : undefined;
    if (path?.root === "args" && path.keys.length === 1) names.push(String(path.keys[0]));
    else if (value !== null && typeof value === "object") for (const one of Object.values(value)) walk(one);
  };
  walk(manifest?.before?.args ?? {});
  return [...new Set(names)];
}

/** Adds a remark that names the arguments outside the comparison. */
function remarked(one: CardChange, others: readonly string[]): CardChange {
  if (others.length === 0) return one;
  const named = others.slice(0, CARD_LIMITS.named_members);
  const rest = others.length - named.length;
  const remark = `does not consider: ${named.join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
  return { ...one, remarks: [...(one.remarks ?? []), remark] };
}

/**
 * Change that an undo makes. Compares the single text of both answers if all other fields are equal, else the entire
 * answers.
 */
export function undoChanges(
  is: JsonValue | undefined,
  was: JsonValue | undefined,
  manifest: Pick<ToolManifest, "before"> | null,
): CardChange[] {
  if (is === undefined || was === undefined) return [];
  const before = manifest?.before;
  const gone = (read: JsonValue): boolean => before !== undefined && isAbsent(before, read);
  const alike = gone(is) || gone(was) || otherMembers(is, before) === otherMembers(was, before);
  const shown = (read: JsonValue): JsonValue => {
    if (gone(read)) return "";
    const place = alike ? locateSoleText(read) : undefined;
    return place === undefined ? read : readKeys(read, place)!;
  };
  return [change("what is there", shown(is), shown(was))];
}

/** Serializes an answer without its single text and without the fields that `before.ignore` lists. */
function otherMembers(read: JsonValue, before: BeforeSpec | undefined): string {
  const [text] = locateSoleText(read) ?? [];
  if (!isJsonObject(read)) return "";
  const names = Object.keys(read).filter(
    (name) => name !== text && !before?.ignore?.includes(`$before.${name}`),
  );
  return toCanonicalJson(names.sort().map((name) => [name, read[name]!]));
}

/**
 * Computes the result of an edit. Only if it is unambiguous: one text that contains each old part exactly once, and no
 * other members.
 */
function editOf(before: JsonValue, value: JsonValue, path: string): CardChange[] {
  const place = locateSoleText(before);
  const text = place === undefined ? undefined : readKeys(before, place);
  const edits = readEdits(value);
  if (place === undefined || typeof text !== "string" || edits === null || edits === "unclear") return [];
  const after = edits.uncovered.length > 0 ? null : editedText(text, edits.pairs);
  return after === null ? [] : [{ ...change(String(place.at(-1) ?? "text"), text, after), path }];
}

/** True if the undo fills this argument from the `before` read. If nothing exists yet, the call creates this value. */
function isPutBack(name: string, manifest: Pick<ToolManifest, "compensation"> | null): boolean {
  const template: JsonObject = manifest?.compensation?.args ?? {};
  const put = Object.hasOwn(template, name) ? template[name] : undefined;
  return typeof put === "string" && tryTemplatePath(put)?.root === "before";
}

function change(label: string, before: JsonValue, after: JsonValue): CardChange {
  const [was, put] = [asText(before), asText(after)];
  const drawn = buildDiff(was, put);
  const remarks = [
    ...(drawn === null ? [NO_DIFF_REMARK] : []),
    ...(hasMask(was) || hasMask(put) ? [MASKED_DIFF_REMARK] : []),
  ];
  return {
    label: visibleText(label),
    before: visibleText(was),
    after: visibleText(put),
    lines: drawn?.lines ?? [],
    ...(remarks.length === 0 ? {} : { remarks }),
  };
}
