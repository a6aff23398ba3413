/** Fields of a card: the values of a call, each in full, with what is remarkable about it. */
import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import { readKeys, tryPath } from "../../kernel/paths.ts";
import { visibleWholeLine } from "../../kernel/visible.ts";
import { plural } from "../../kernel/words.ts";
import { isAbsent } from "../manifest/absent.ts";
import type { Manifest } from "../manifest/types.ts";
import { hasMask, readShown } from "../mask.ts";
import {
  asText,
  type DrawnDiff,
  diffOf,
  editLines,
  MASKS_COMPARED,
  NOT_COMPARED,
  plainText,
} from "./changes.ts";
import { declaredNames, listsInputs } from "./declared.ts";
import { readEdits } from "./edits.ts";
import type { CardFacts } from "./facts.ts";
import { formatted, NOT_GIVEN, NOT_KEPT, plainValue, shownSize } from "./format.ts";
import { CARD_LIMITS } from "./limits.ts";
import { argumentLabel, argumentPath, nameSkeleton, quotedName } from "./names.ts";
import { textPlace } from "./place.ts";
import { fitsPlace, titlePieces } from "./sentence.ts";
import type { CardFormat } from "./template.ts";
import type { CardField } from "./types.ts";

const UNREAD = "(could not be read)";
const UNDECLARED = "not declared by the tool";
const NOT_IN_DIFF = "not part of the diff";
const UNCLEAR = "more than one old or new text: shown as given, without a diff";

/** Which of a call's arguments are declared, and which names can be mistaken for others. */
export interface DeclaredArguments {
  names: ReadonlySet<string>;
  isUndeclared(path: string, name?: string): boolean;
  /** Undeclared members below the path. */
  below(path: string): string[];
  /** Other names and labels that a reader can take for this one. */
  lookalikes(name: string): string[];
}

export function declaredArguments({ call, manifest, read_for, values }: CardFacts): DeclaredArguments {
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
    lookalikes: lookalikesIn(names, givenNames(call, values), manifest),
  };
}

const givenNames = ({ arg_names }: CardFacts["call"], values: CardFacts["values"]): readonly string[] =>
  values !== undefined && isJsonObject(values.args) ? Object.keys(values.args) : arg_names;

function lookalikesIn(
  declared: ReadonlySet<string>,
  given: readonly string[],
  manifest: Manifest | null,
): DeclaredArguments["lookalikes"] {
  const names = groupedBy(new Set([...declared, ...given]), nameSkeleton);
  const labels = (manifest?.card?.fields ?? []).map(({ label, path }) => ({
    label,
    skeleton: nameSkeleton(label),
    name: String(tryPath(path)?.keys[0] ?? ""),
  }));
  return (name) => {
    // The author of the manifest chose it.
    if (declared.has(name)) return [];
    const bare = nameSkeleton(name);
    const others = (names.get(bare) ?? []).filter((one) => one !== name).slice(0, CARD_LIMITS.named_members);
    const labelled = labels.filter((one) => one.skeleton === bare && one.name !== name);
    return [...others.map(quotedName), ...labelled.map(({ label }) => `the label ${label}`)];
  };
}

function groupedBy(texts: Iterable<string>, keyOf: (text: string) => string): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const text of texts) {
    const group = groups.get(keyOf(text));
    if (group === undefined) groups.set(keyOf(text), [text]);
    else group.push(text);
  }
  return groups;
}

/** Arguments past those listed one by one, together as one value, in full. */
function restField(names: readonly string[], args: JsonObject, declared: DeclaredArguments): CardField[] {
  if (names.length === 0) return [];
  const value = Object.fromEntries(names.map((name) => [name, args[name]!]));
  const label = plural(names.length, "more argument");
  return [valueField({ label, path: "$args", as: "code" }, value, declared)];
}

type FieldHead = Pick<CardField, "label" | "path" | "as">;

export function templateFields(facts: CardFacts, declared: DeclaredArguments): CardField[] {
  return (facts.manifest?.card?.fields ?? []).map(({ label, path, as }) => {
    if (facts.values === undefined) return { label, path, as, text: NOT_KEPT };
    const value = readShown(facts.values.args, tryPath(path)?.keys ?? []);
    if (value === undefined) return { label, path, as, text: NOT_GIVEN };
    if (as !== "diff") return valueField({ label, path, as }, value, declared);
    return diffField({ label, path, as }, value, declared, standingAt(facts, path));
  });
}

/** Arguments that neither the fields nor the sentence show in full; all of them where the manifest has no card. */
export function moreFields(facts: CardFacts, declared: DeclaredArguments, predicted: boolean): CardField[] {
  const { call, values } = facts;
  const shown = shownNames(facts);
  const named = (name: string) => ({
    label: argumentLabel(name, declared.names.has(name)),
    path: argumentPath([name]),
  });
  if (values === undefined)
    return call.arg_names
      .filter((name) => !shown.has(name))
      .map((name) => remarked({ ...named(name), as: "text", text: NOT_KEPT }, name, declared));
  if (shown.has("")) return [];
  if (!isJsonObject(values.args))
    return [valueField({ label: "arguments", path: "$args", as: "code" }, values.args)];
  const { args } = values;
  const names = Object.keys(args).filter((name) => !shown.has(name));
  const rest = names.slice(CARD_LIMITS.listed_arguments);
  return names
    .slice(0, CARD_LIMITS.listed_arguments)
    .map((name) => {
      const value = args[name]!;
      const head = { ...named(name), as: formatOf(value) };
      const edits = !predicted && readEdits(value) !== null;
      const field = edits
        ? diffField({ ...head, as: "diff" }, value, declared)
        : valueField(head, value, declared, name);
      return remarked(field, name, declared);
    })
    .concat(restField(rest, args, declared));
}

/** What was read and is not shown as a change, as it is; also that it could not be read. */
export function currentState(values: CardFacts["values"], compared: boolean): CardField[] {
  const there = { label: "what is there now", path: "$before" };
  if (values?.unread === true) return [{ ...there, as: "text", text: UNREAD }];
  if (values?.before === undefined || compared) return [];
  return [valueField({ ...there, as: "code" }, plainText(values.before))];
}

const formatOf = (value: Json): CardFormat => (asText(value).includes("\n") ? "code" : "text");

/** Names of the arguments that are shown whole; the empty name stands for all of them. */
function shownNames({ manifest, values }: CardFacts): Set<string> {
  const shown = new Set<string>();
  const see = (source: string, whole: (value: Json) => boolean): void => {
    const keys = tryPath(source)?.keys;
    // A part of an argument leaves the rest of it out of sight.
    if (keys === undefined || keys.length > 1) return;
    const value = readKeys(values?.args, keys);
    if (value === undefined || whole(value)) shown.add(keys.length === 0 ? "" : String(keys[0]));
  };
  for (const { path } of manifest?.card?.fields ?? []) see(path, () => true);
  for (const piece of titlePieces(manifest?.card?.title ?? ""))
    if ("path" in piece) see(piece.path?.source ?? "", fitsPlace);
  return shown;
}

function valueField(
  head: FieldHead,
  value: Json,
  declared?: DeclaredArguments,
  name = head.label,
): CardField {
  const size = shownSize(value, name);
  const field: CardField = {
    ...head,
    text: formatted(value, head.as),
    ...(size === undefined ? {} : { size }),
  };
  return withRemarks(field, [...roundedTime(head.as, value), ...innerRemarks(head.path, declared)]);
}

/** A time is written to the second, and a number can mean seconds or milliseconds: the value itself is shown, too. */
function roundedTime(as: CardFormat, value: Json): string[] {
  const given = plainValue(value);
  const exact = as !== "time" || (typeof value === "string" && !given.includes("."));
  return exact ? [] : [`given as ${visibleWholeLine(given)}`];
}

function innerRemarks(path: string, declared: DeclaredArguments | undefined): string[] {
  const below = declared?.below(path) ?? [];
  if (below.length === 0) return [];
  const named = below.slice(0, CARD_LIMITS.named_members).map((one) => quotedName(one.slice(path.length)));
  const rest = below.length - named.length;
  const more = rest > 0 ? ` and ${plural(rest, "other")}` : "";
  return [`holds members that the tool does not declare: ${named.join(", ")}${more}`];
}

/** A diff of the replacements in the value, else of the value with what is there now. */
function diffField(
  head: FieldHead,
  value: Json,
  declared: DeclaredArguments,
  was?: Json | undefined,
): CardField {
  const field = valueField(head, value, declared);
  const edits = readEdits(value);
  if (edits === "unclear") return withRemarks(field, [UNCLEAR]);
  if (edits === null) {
    if (was === undefined) return field;
    const masks = hasMask(asText(was)) || hasMask(asText(value));
    const drawn = diffOf(was, value);
    const before = valueField({ label: "what is there now", path: "$before", as: "code" }, was);
    if (drawn === null) return { ...withRemarks(field, [NOT_COMPARED]), uncovered: [before] };
    return withRemarks(withLines(field, drawn), masks ? [MASKS_COMPARED] : []);
  }
  const drawn = editLines(edits.pairs);
  const uncovered = edits.uncovered.map((one) => {
    const keys = tryPath(head.path)?.keys ?? [];
    return uncoveredField([...keys, ...one.keys], one.value, declared);
  });
  return {
    ...(drawn === null ? withRemarks(field, [NOT_COMPARED]) : withLines(field, drawn)),
    ...(drawn === null || uncovered.length === 0 ? {} : { uncovered }),
  };
}

const withLines = (field: CardField, { lines, abridged }: DrawnDiff): CardField =>
  abridged ? { ...field, lines, abridged } : { ...field, lines };

/** A member next to the diff. */
function uncoveredField(
  keys: readonly (string | number)[],
  value: Json,
  declared: DeclaredArguments,
): CardField {
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
  const field = withRemarks(valueField(head, value), undeclared ? [NOT_IN_DIFF, UNDECLARED] : [NOT_IN_DIFF]);
  return undeclared ? { ...field, undeclared } : field;
}

/** An argument by its name: whether it is declared, and whether its name can be taken for another one. */
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

function standingAt({ values, manifest }: CardFacts, path: string): Json | undefined {
  const before = values?.before;
  if (before === undefined) return undefined;
  if (manifest?.before !== undefined && isAbsent(manifest.before, before)) return "";
  const place = textPlace(before, manifest as Manifest | null, tryPath(path)?.keys ?? []);
  return place === undefined ? undefined : readKeys(before, place);
}
