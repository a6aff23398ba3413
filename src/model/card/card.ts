/**
 * The judged part of a card: one pure function from the call and the rules to what a person is shown, the same on
 * every surface, and the hash that stands for it. History and times are outside: the hash changes only when what is
 * judged does.
 */
import { hashingKeyed } from "../../kernel/hash.ts";
import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import { readKeys, tryPath } from "../../kernel/paths.ts";
import type { Paced } from "../../kernel/turns.ts";
import { visibleLine, visibleText } from "../../kernel/visible.ts";
import { plural } from "../../kernel/words.ts";
import { isAbsent } from "../manifest/absent.ts";
import type { Manifest } from "../manifest/types.ts";
import { readShown } from "../mask.ts";
import type { Policy } from "../policy/compile.ts";
import { changesOf, diffOf, hasLines, MOST_ARGUMENTS, replacements, restoredBy } from "./changes.ts";
import { formatted, NOT_GIVEN, NOT_KEPT } from "./format.ts";
import { textPlace } from "./place.ts";
import { riskOf } from "./risk-words.ts";
import { sentenceOf, titlePieces } from "./sentence.ts";
import type { CardFormat } from "./template.ts";
import type { ApprovalValues, AskedCall, CardField, JudgedCard } from "./types.ts";
import { wayBackOf } from "./way-back.ts";

export interface CardFacts {
  call: AskedCall;
  run: { reason: string | null; salt: string; environment: string | null };
  manifest: Manifest | null;
  /** Whose `before` is shown: the manifest itself; of an undo that of the call which it takes back. */
  read_for: Manifest | null;
  policy: Pick<Policy, "doc" | "risk">;
  /** Undefined where they are not kept, or no longer. */
  values: Pick<ApprovalValues, "args" | "before" | "restored" | "unread"> | undefined;
}

/** Why a person is asked about any undo. */
export const UNDO_ASKS = "the manifest says that this undo needs a person";
const NAME_CHARS = 200;
const UNREAD = "(could not be read)";

export function judgedCard(facts: CardFacts): JudgedCard {
  const { call, run, manifest, policy, values } = facts;
  const template = manifest?.card;
  const parts = sentenceOf(titleOf(call, template?.title ?? null), values?.args);
  const fields = (template?.fields ?? []).map(({ label, path, as }) => field(label, path, as, facts));
  const changes =
    call.kind === "compensation"
      ? restoredBy(values?.before, values?.restored, facts.read_for)
      : changesOf(values?.before, values?.args, manifest);
  const rule = ruleOf(call, policy);
  return {
    sentence: parts.map(({ text }) => text).join(""),
    parts,
    fields,
    more: [...moreFields(facts), ...thereNow(values, changes.length > 0 || fields.some(isCompared))],
    changes,
    note: template?.note ?? null,
    reason: visibleText(call.reason, 4_000),
    run_reason: run.reason === null ? null : visibleText(run.reason, 4_000),
    rule,
    causes: causesOf(call, rule),
    risk: riskOf(call.because?.risk ?? null, manifest, run.environment),
    irreversible: call.kind === "call" && manifest?.effect === "irreversible",
    way_back: wayBackOf(call, manifest),
  };
}

/** Keyed with the run's salt, like the hashes of arguments. */
export function* hashingCard(facts: CardFacts, card: JudgedCard): Paced<string> {
  const { sentence, fields, more, changes, reason, run_reason, causes, rule, risk, way_back } = card;
  const judged = {
    tool: facts.call.tool,
    args_hash: facts.call.args_hash,
    sentence,
    fields: [...fields, ...more].map(({ label, path, as, text, lines }) => ({
      label,
      path,
      as,
      text,
      lines: lines ?? null,
    })),
    before: facts.values?.before ?? null,
    after: changes.map(({ label, after }) => ({ label, after })),
    reasons: [reason, run_reason, ...causes],
    rule,
    risk: risk === null ? null : { score: risk.score, factors: risk.factors },
    undo_tool: way_back.tool,
    residue: way_back.residue,
  };
  return yield* hashingKeyed(facts.run.salt, judged as unknown as Json);
}

/** An undo is never read as a call of its tool. */
function titleOf({ kind, step, tool }: AskedCall, title: string | null): string {
  // Braces of a name would be taken for places.
  const name = visibleLine(tool, NAME_CHARS).replaceAll("{", "(").replaceAll("}", ")");
  if (kind === "call") return title ?? `Call ${name}`;
  const undo = `Undo step ${step ?? "?"}`;
  return title === null ? `${undo} with ${name}` : `${undo}: ${title}`;
}

function field(label: string, path: string, as: CardFormat, { values, manifest }: CardFacts): CardField {
  if (values === undefined) return { label, path, as, text: NOT_KEPT };
  const value = readShown(values.args, tryPath(path)?.keys ?? []);
  if (value === undefined) return { label, path, as, text: NOT_GIVEN };
  if (as !== "diff") return { label, path, as, text: formatted(value, as) };
  const was = values.before === undefined ? undefined : standingAt(values.before, manifest, path);
  const lines = replacements(value) ?? (was === undefined ? null : diffOf(was, value));
  return { label, path, as, text: formatted(value, as), ...(lines === null ? {} : { lines }) };
}

function standingAt(before: Json, manifest: Manifest | null, path: string): Json | undefined {
  if (manifest?.before !== undefined && isAbsent(manifest.before, before)) return "";
  const place = textPlace(before, manifest, tryPath(path)?.keys ?? []);
  return place === undefined ? undefined : readKeys(before, place);
}

const isCompared = ({ lines }: CardField): boolean => lines !== undefined;

/** What was read and is not told as a change, as it is; that it could not be read is said, too. */
function thereNow(values: CardFacts["values"], told: boolean): CardField[] {
  const there = { label: "what is there now", path: "$before" };
  if (values?.unread === true) return [{ ...there, as: "text", text: UNREAD }];
  if (values?.before === undefined || told) return [];
  return [{ ...there, as: "code", text: formatted(values.before, "code") }];
}

/** Arguments that the manifest's card leaves out; all of them where it has none. */
function moreFields({ call, manifest, values }: CardFacts): CardField[] {
  const shown = new Set<string>();
  const template = manifest?.card;
  for (const { path } of template?.fields ?? []) see(path, shown);
  for (const piece of titlePieces(template?.title ?? ""))
    if ("path" in piece) see(piece.path?.source ?? "", shown);
  if (values === undefined)
    return call.arg_names.filter((name) => !shown.has(name)).map((name) => more(name, undefined));
  if (!isJsonObject(values.args))
    return shown.has("")
      ? []
      : [{ label: "arguments", path: "$args", as: "code", text: formatted(values.args, "code") }];
  const args = values.args;
  const names = Object.keys(args).filter((name) => !shown.has(name) && !shown.has(""));
  return [...names.slice(0, MOST_ARGUMENTS).map((name) => more(name, args[name])), ...restOf(names, args)];
}

/** Behind as many arguments as are shown one by one, all others as one value, in full. */
function restOf(names: readonly string[], args: JsonObject): CardField[] {
  const rest = names.slice(MOST_ARGUMENTS);
  if (rest.length === 0) return [];
  const members = rest.map((name) => `  ${JSON.stringify(name)}: ${JSON.stringify(args[name])}`);
  const label = plural(rest.length, "more argument");
  return [{ label, path: "$args", as: "code", text: formatted(`{\n${members.join(",\n")}\n}`, "code") }];
}

/** An argument is shown when it is shown whole: a part of it leaves the rest out of sight. */
function see(path: string, shown: Set<string>): void {
  const parsed = tryPath(path);
  if (parsed === undefined || parsed.keys.length > 1) return;
  shown.add(parsed.keys.length === 0 ? "" : String(parsed.keys[0]));
}

function more(name: string, value: Json | undefined): CardField {
  const label = visibleLine(name, NAME_CHARS);
  const path = /^[^.[\]"$\s]+$/.test(name) ? `$args.${name}` : `$args[${JSON.stringify(name)}]`;
  const as: CardFormat = value !== undefined && hasLines(value) ? "code" : "text";
  return { label, path, as, text: value === undefined ? NOT_KEPT : formatted(value, as) };
}

const SECTIONS = ["rules", "limits", "budgets", "windows", "freezes"] as const;

function ruleOf({ rule, because }: AskedCall, policy: CardFacts["policy"]): JudgedCard["rule"] {
  if (rule === null) return null;
  const said = because?.causes.find((cause) => cause.rule === rule)?.reason;
  if (said !== undefined) return { id: rule, reason: said };
  const entries: { id: string; reason?: string | undefined }[] = SECTIONS.flatMap((name) => [
    ...(policy.doc[name] ?? []),
  ]);
  return { id: rule, reason: entries.find(({ id }) => id === rule)?.reason ?? null };
}

function causesOf({ kind, because }: AskedCall, rule: JudgedCard["rule"]): string[] {
  const said = (because?.causes ?? []).map(({ reason }) => visibleText(reason, 2_000));
  if (said.length > 0) return [...new Set(said)];
  if (kind === "compensation") return [UNDO_ASKS];
  return rule?.reason == null ? [] : [rule.reason];
}
