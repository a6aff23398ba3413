/** Fields of a card: the values of a call, each in full and with its remarks. */
import { isJsonObject, type JsonObject, type JsonValue } from "../../kernel/json/json.ts";
import { readKeys, tryPath } from "../../kernel/paths.ts";
import { type PausableWork, UNITS_PER_PAUSE } from "../../kernel/pausable-work.ts";
import { visibleOneLine } from "../../kernel/text/escape-invisible.ts";
import { formatCountOf } from "../../kernel/text/phrases.ts";
import type { CardFormat } from "../../rules/manifest/card-template.ts";
import { titlePieces } from "../../rules/manifest/card-template.ts";
import { isAbsent } from "../../rules/manifest/is-absent.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import { hasMask, readMasked } from "../../rules/redact/mask.ts";
import type { CardFacts } from "./card-facts.ts";
import {
  asText,
  buildDiff,
  type DrawnDiff,
  editLines,
  MASKED_DIFF_REMARK,
  NO_DIFF_REMARK,
  plainText,
} from "./changes.ts";
import { declaredNames, listsInputs } from "./declared.ts";
import { readEdits } from "./text/edits.ts";
import {
  formattingCardValue,
  NOT_GIVEN_TEXT,
  NOT_STORED_TEXT,
  plainValue,
  shownSize,
} from "./text/format.ts";
import { CARD_LIMITS } from "./text/limits.ts";
import { locateText } from "./text/locate.ts";
import { valueRemarks } from "./text/lookalikes.ts";
import { argumentLabel, argumentPath, nameSkeleton, quotedName } from "./text/names.ts";
import { fitsPlaceholder } from "./text/sentence.ts";
import type { CardField } from "./types.ts";

const UNREAD = "(could not be read)";
const UNDECLARED = "not declared by the tool";
const NOT_IN_DIFF = "not part of the diff";
const UNCLEAR = "several old or new texts; shown without a diff";

/** Answers which arguments are declared and which names look alike. */
export interface DeclaredArguments {
  names: ReadonlySet<string>;
  isUndeclared(path: string, name?: string): boolean;
  /** Paths of the undeclared members below a path. */
  below(path: string): string[];
  /** Other names and labels that a reader could mistake for this one. */
  lookalikes(name: string): string[];
}

export function* declaringArguments({
  call,
  manifest,
  read_for,
  values,
}: CardFacts): PausableWork<DeclaredArguments> {
  const names = declaredNames(manifest);
  if (call.kind === "compensation") {
    const { args, when_absent } = read_for?.compensation ?? {};
    for (const name of Object.keys({ ...args, ...when_absent?.args })) names.add(name);
  }
  const paths = values?.undeclared;
  const listed = new Set(paths);
  const within = groupedBy(paths ?? [], (path) => String(tryPath(path)?.keys[0]));
  return {
    names,
    isUndeclared: (path, name) =>
      paths === undefined
        ? name !== undefined && listsInputs(manifest) && !names.has(name)
        : listed.has(path) && !(name !== undefined && names.has(name)),
    below: (source) => {
      const keys = tryPath(source)?.keys ?? [];
      const path = argumentPath(keys);
      const near = keys.length === 0 ? (paths ?? []) : (within.get(String(keys[0])) ?? []);
      return near.filter((one) => one.startsWith(`${path}.`) || one.startsWith(`${path}[`));
    },
    lookalikes: yield* findingLookalikes(names, givenNames(call, values), manifest),
  };
}

const givenNames = ({ arg_names }: CardFacts["call"], values: CardFacts["values"]): readonly string[] =>
  values !== undefined && isJsonObject(values.args) ? Object.keys(values.args) : arg_names;

function* findingLookalikes(
  declared: ReadonlySet<string>,
  given: readonly string[],
  manifest: ToolManifest | null,
): PausableWork<DeclaredArguments["lookalikes"]> {
  const names = new Map<string, string[]>();
  for (const [i, name] of [...declared, ...given.filter((one) => !declared.has(one))].entries()) {
    addToGroup(names, nameSkeleton(name), name);
    if (i % UNITS_PER_PAUSE === 0) yield;
  }
  const labels = (manifest?.card?.fields ?? []).map(({ label, path }) => ({
    label,
    skeleton: nameSkeleton(label),
    name: String(tryPath(path)?.keys[0] ?? ""),
  }));
  return (name) => {
    // The manifest's author chose this name.
    if (declared.has(name)) return [];
    const bare = nameSkeleton(name);
    const others = (names.get(bare) ?? []).filter((one) => one !== name).slice(0, CARD_LIMITS.named_members);
    const labelled = labels.filter((one) => one.skeleton === bare && one.name !== name);
    return [...others.map(quotedName), ...labelled.map(({ label }) => `the label ${label}`)];
  };
}

function groupedBy(texts: Iterable<string>, keyOf: (text: string) => string): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const text of texts) addToGroup(groups, keyOf(text), text);
  return groups;
}

function addToGroup(groups: Map<string, string[]>, key: string, text: string): void {
  const group = groups.get(key);
  if (group === undefined) groups.set(key, [text]);
  else group.push(text);
}

/** Shows the arguments beyond the listing limit as one value, in full. */
function* restField(
  names: readonly string[],
  args: JsonObject,
  declared: DeclaredArguments,
): PausableWork<CardField[]> {
  if (names.length === 0) return [];
  const value = Object.fromEntries(names.map((name) => [name, args[name]!]));
  yield;
  const label = formatCountOf(names.length, "more argument");
  return [yield* valueField({ label, path: "$args", as: "code" }, value, declared)];
}

type FieldHead = Pick<CardField, "label" | "path" | "as">;

export function* templateFields(facts: CardFacts, declared: DeclaredArguments): PausableWork<CardField[]> {
  const fields: CardField[] = [];
  for (const { label, path, as } of facts.manifest?.card?.fields ?? [])
    fields.push(yield* templateField(facts, declared, { label, path, as }));
  return fields;
}

function* templateField(
  facts: CardFacts,
  declared: DeclaredArguments,
  { label, path, as }: FieldHead,
): PausableWork<CardField> {
  if (facts.values === undefined) return { label, path, as, text: NOT_STORED_TEXT };
  const value = readMasked(facts.values.args, tryPath(path)?.keys ?? []);
  if (value === undefined) return { label, path, as, text: NOT_GIVEN_TEXT };
  if (as !== "diff") return yield* valueField({ label, path, as }, value, declared);
  return yield* diffField({ label, path, as }, value, declared, currentValueAt(facts, path));
}

/**
 * Arguments that neither the fields nor the sentence show in full. Without a card in the manifest, these are all
 * arguments.
 */
export function* moreFields(
  facts: CardFacts,
  declared: DeclaredArguments,
  predicted: boolean,
): PausableWork<CardField[]> {
  const { call, values } = facts;
  const shown = shownNames(facts);
  const named = (name: string) => ({
    label: argumentLabel(name, declared.names.has(name)),
    path: argumentPath([name]),
  });
  if (values === undefined)
    return call.arg_names
      .filter((name) => !shown.has(name))
      .map((name) => remarked({ ...named(name), as: "text", text: NOT_STORED_TEXT }, name, declared));
  if (shown.has("")) return [];
  if (!isJsonObject(values.args))
    return [yield* valueField({ label: "arguments", path: "$args", as: "code" }, values.args)];
  const { args } = values;
  const names = Object.keys(args).filter((name) => !shown.has(name));
  const fields: CardField[] = [];
  for (const name of names.slice(0, CARD_LIMITS.listed_arguments)) {
    const value = args[name]!;
    const head = { ...named(name), as: formatOf(value) };
    const edits = !predicted && readEdits(value) !== null;
    const field = edits
      ? yield* diffField({ ...head, as: "diff" }, value, declared)
      : yield* valueField(head, value, declared, name);
    fields.push(remarked(field, name, declared));
  }
  fields.push(...(yield* restField(names.slice(CARD_LIMITS.listed_arguments), args, declared)));
  return fields;
}

/** The result of the `before` read if no change shows it, or a note that the read failed. */
export function* currentState(values: CardFacts["values"], compared: boolean): PausableWork<CardField[]> {
  const there = { label: "what is there now", path: "$before" };
  if (values?.unread === true) return [{ ...there, as: "text", text: UNREAD }];
  if (values?.before === undefined || compared) return [];
  return [yield* valueField({ ...there, as: "code" }, plainText(values.before))];
}

/** A value with members is written on several lines. */
function formatOf(value: JsonValue): CardFormat {
  if (value === null || typeof value !== "object")
    return typeof value === "string" && value.includes("\n") ? "code" : "text";
  return asText(value).includes("\n") ? "code" : "text";
}

/** Names of the arguments that the card shows in full. The empty name means all arguments. */
function shownNames({ manifest, values }: CardFacts): Set<string> {
  const shown = new Set<string>();
  const see = (source: string, whole: (value: JsonValue) => boolean): void => {
    const keys = tryPath(source)?.keys;
    // Showing part of an argument hides the rest of it.
    if (keys === undefined || keys.length > 1) return;
    const value = readKeys(values?.args, keys);
    if (value === undefined || whole(value)) shown.add(keys.length === 0 ? "" : String(keys[0]));
  };
  for (const { path } of manifest?.card?.fields ?? []) see(path, () => true);
  for (const piece of titlePieces(manifest?.card?.title ?? ""))
    if ("path" in piece) see(piece.path?.source ?? "", fitsPlaceholder);
  return shown;
}

function* valueField(
  head: FieldHead,
  value: JsonValue,
  declared?: DeclaredArguments,
  name = head.label,
): PausableWork<CardField> {
  const size = shownSize(value, name);
  yield;
  const text = yield* formattingCardValue(value, head.as);
  yield;
  const field: CardField = { ...head, text, ...(size === undefined ? {} : { size }) };
  return withRemarks(field, [
    ...(yield* valueRemarks(value)),
    ...roundedTime(head.as, value),
    ...innerRemarks(head.path, declared),
  ]);
}

/** Adds the raw value to a formatted time, which drops milliseconds and can misread the unit of a number. */
function roundedTime(as: CardFormat, value: JsonValue): string[] {
  if (as !== "time") return [];
  const given = plainValue(value);
  const exact = typeof value === "string" && !given.includes(".");
  return exact ? [] : [`given as ${visibleOneLine(given)}`];
}

function innerRemarks(path: string, declared: DeclaredArguments | undefined): string[] {
  const below = declared?.below(path) ?? [];
  if (below.length === 0) return [];
  const named = below.slice(0, CARD_LIMITS.named_members).map((one) => quotedName(one.slice(path.length)));
  const rest = below.length - named.length;
  const more = rest > 0 ? ` and ${formatCountOf(rest, "other")}` : "";
  return [`contains members that the tool does not declare: ${named.join(", ")}${more}`];
}

/** Diff of the replacements in the value, or else of the current value and the new one. */
function* diffField(
  head: FieldHead,
  value: JsonValue,
  declared: DeclaredArguments,
  was?: JsonValue | undefined,
): PausableWork<CardField> {
  const field = yield* valueField(head, value, declared);
  const edits = readEdits(value);
  if (edits === "unclear") return withRemarks(field, [UNCLEAR]);
  if (edits === null) {
    if (was === undefined) return field;
    const masks = hasMask(asText(was)) || hasMask(asText(value));
    const drawn = buildDiff(was, value);
    const before = yield* valueField({ label: "what is there now", path: "$before", as: "code" }, was);
    if (drawn === null) return { ...withRemarks(field, [NO_DIFF_REMARK]), uncovered: [before] };
    return withRemarks(withLines(field, drawn), masks ? [MASKED_DIFF_REMARK] : []);
  }
  const drawn = editLines(edits.pairs);
  const uncovered: CardField[] = [];
  const keys = tryPath(head.path)?.keys ?? [];
  for (const one of edits.uncovered)
    uncovered.push(yield* uncoveredField([...keys, ...one.keys], one.value, declared));
  return {
    ...(drawn === null ? withRemarks(field, [NO_DIFF_REMARK]) : withLines(field, drawn)),
    ...(drawn === null || uncovered.length === 0 ? {} : { uncovered }),
  };
}

const withLines = (field: CardField, { lines, abridged }: DrawnDiff): CardField =>
  abridged ? { ...field, lines, abridged } : { ...field, lines };

/** Field for a member that the diff does not cover. */
function* uncoveredField(
  keys: readonly (string | number)[],
  value: JsonValue,
  declared: DeclaredArguments,
): PausableWork<CardField> {
  const name = String(keys.at(-1));
  const path = argumentPath(keys);
  const own = keys.length === 1;
  const at = keys.findLast((key) => typeof key === "number");
  const label = argumentLabel(name, own && declared.names.has(name));
  const head = {
    label: at === undefined ? label : `${label} of entry ${Number(at) + 1}`,
    path,
    as: formatOf(value),
  };
  const undeclared = declared.isUndeclared(path, own ? name : undefined);
  const remarks = undeclared ? [NOT_IN_DIFF, UNDECLARED] : [NOT_IN_DIFF];
  const field = withRemarks(yield* valueField(head, value), remarks);
  return undeclared ? { ...field, undeclared } : field;
}

/** Adds remarks on the name: whether it is declared, and which names look like it. */
function remarked(field: CardField, name: string, declared: DeclaredArguments): CardField {
  const undeclared = declared.isUndeclared(field.path, name);
  const remarks = undeclared ? [UNDECLARED] : [];
  const alike = declared.lookalikes(name);
  if (alike.length > 0) remarks.push(`the name looks like ${alike.join(", ")}`);
  const done = withRemarks(field, remarks);
  return undeclared ? { ...done, undeclared } : done;
}

const withRemarks = (field: CardField, remarks: readonly string[]): CardField =>
  remarks.length === 0 ? field : { ...field, remarks: [...(field.remarks ?? []), ...remarks] };

function currentValueAt({ values, manifest }: CardFacts, path: string): JsonValue | undefined {
  const before = values?.before;
  if (before === undefined) return undefined;
  if (manifest?.before !== undefined && isAbsent(manifest.before, before)) return "";
  const place = locateText(before, manifest as ToolManifest | null, tryPath(path)?.keys ?? []);
  return place === undefined ? undefined : readKeys(before, place);
}
