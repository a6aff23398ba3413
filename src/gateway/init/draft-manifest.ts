/**
 * Drafts a tool's manifest from its definition: from its annotations, from the verb in its name, and from another tool
 * that looks like its undo.
 */
import { isJsonObject, type JsonObject, type JsonValue } from "../../kernel/json/json.ts";
import type { ToolEffect } from "../../rules/manifest/types.ts";
import { type PackEntry, withTools } from "./packs/pack.ts";
import { packFor, testedEntry } from "./packs/packs.ts";
import {
  isUndoOf,
  namesSeveralActions,
  type ParsedToolName,
  parseToolName,
  toolNameParser,
} from "./verbs.ts";

/** How sure a guess is: `high` if every argument is declared, `low` if the tool's answer is unknown. */
type Confidence = "high" | "medium" | "low";

interface DraftArgument {
  name: string;
  value: string | readonly string[];
  why: string;
}

export interface ToolDraft {
  tool: string;
  effect: ToolEffect;
  effect_why: string;
  permission: string;
  external: boolean;
  compensation: DraftUndo | null;
  /** A tool that looks like the undo, but needs arguments that neither the call nor its declared result provides. */
  undo_without_arguments: string | null;
  /** The manifest that was tested with the server, which replaces every guess. Its tools have their shown names. */
  tried?: { by: string; entry: PackEntry };
}

export interface DraftUndo {
  tool: string;
  why: string;
  kind: "inverse" | "compensation";
  args: DraftArgument[];
  confidence: Confidence;
  /** The read whose answer the undo restores. */
  before?: { tool: string; args: DraftArgument[] };
}

interface Tool {
  /** The name that the gateway will show. */
  tool: string;
  definition: JsonObject;
  read: ParsedToolName;
}

export function draftManifests(
  definitions: readonly { tool: string; name: string; definition: JsonObject }[],
  prefix: string,
): ToolDraft[] {
  const parse = toolNameParser(definitions.map(({ name }) => name));
  const tools = definitions.map(
    ({ tool, name, definition }): Tool => ({ tool, definition, read: parse(name) }),
  );
  const pack = packFor(new Set(definitions.map(({ name }) => name)));
  if (pack === undefined) return tools.map((tool) => draft(tool, tools, prefix));
  const known = new Map(definitions.map(({ name, definition }) => [name, definition]));
  const shown = new Map(definitions.map(({ name, tool }) => [name, tool]));
  return tools.map((tool, i) => {
    const entry = testedEntry(pack, definitions[i]!.name, known);
    const guessed = draft(tool, tools, prefix);
    return entry === undefined ? guessed : triedDraft(guessed, entry, pack.tried, shown, prefix);
  });
}

/** The pack's entry replaces the guesses. */
function triedDraft(
  guessed: ToolDraft,
  entry: PackEntry,
  by: string,
  shown: ReadonlyMap<string, string>,
  prefix: string,
): ToolDraft {
  return {
    ...guessed,
    effect: entry.effect,
    permission: `${prefix}.${levelOf(entry.effect)}`,
    compensation: null,
    undo_without_arguments: null,
    tried: { by, entry: withTools(entry, (name) => shown.get(name) ?? name) },
  };
}

const levelOf = (effect: ToolEffect) =>
  effect === "read" ? "read" : effect === "irreversible" ? "destroy" : "write";

function draft(tool: Tool, all: readonly Tool[], prefix: string): ToolDraft {
  const compensation = isRead(tool) ? null : undoOf(tool, all);
  const { effect, why } = effectOf(tool, compensation);
  return {
    tool: tool.tool,
    effect,
    effect_why: why,
    permission: `${prefix}.${levelOf(effect)}`,
    external: hint(tool, "openWorldHint") === true,
    compensation: effect === "compensable" || effect === "reversible" ? compensation : null,
    undo_without_arguments:
      effect === "irreversible" && compensation === null ? (undoTool(tool, all)?.tool ?? null) : null,
  };
}

function effectOf(tool: Tool, undo: DraftUndo | null): { effect: ToolEffect; why: string } {
  const { act, verb } = tool.read;
  if (hint(tool, "readOnlyHint") === true && !doesSeveralThings(tool))
    return { effect: "read", why: "it says it is read-only" };
  if (runsAnything(tool))
    return { effect: "irreversible", why: "it runs text from its caller, which can do anything" };
  if (undo?.before !== undefined)
    return { effect: "reversible", why: "a read before it tells what it changes" };
  if (undo !== null) return { effect: "compensable", why: "another call looks like its undo" };
  if (isRead(tool)) return { effect: "read", why: `its name says "${verb}"` };
  if (hint(tool, "destructiveHint") === true)
    return { effect: "irreversible", why: "it says it is destructive" };
  if (doesSeveralThings(tool))
    return { effect: "irreversible", why: "its description names several actions" };
  if (act === "send")
    return { effect: "irreversible", why: `its name says "${verb}", and no undo was found` };
  if (act === "remove") return { effect: "irreversible", why: `its name says "${verb}"` };
  if (hint(tool, "idempotentHint") === true)
    return { effect: "idempotent", why: "it says that repeating it changes nothing" };
  return { effect: "irreversible", why: "no sign of an undo, so this is the safe guess" };
}

/** Whether the tool only reads. A name counts only if the annotations do not contradict it. */
function isRead(tool: Tool): boolean {
  if (doesSeveralThings(tool)) return false;
  if (hint(tool, "readOnlyHint") === true) return true;
  return (
    tool.read.act === "read" &&
    !runsAnything(tool) &&
    hint(tool, "readOnlyHint") !== false &&
    hint(tool, "destructiveHint") !== true
  );
}

/** Whether one call can do one of several things, and not all are reads. */
function doesSeveralThings({ definition }: Tool): boolean {
  const { description } = definition;
  if (typeof description === "string" && namesSeveralActions(description)) return true;
  return Object.entries(properties(definition, "inputSchema")).some(([name, schema]) => {
    const choices = isJsonObject(schema) ? schema["enum"] : undefined;
    if (!/^(?:action|operation|op|mode|method|verb)$/i.test(name) || !Array.isArray(choices)) return false;
    return choices.length > 1 && choices.some((one) => parseToolName(String(one)).act !== "read");
  });
}

/** Whether the tool takes statements or commands as text. A tool called `query` may drop a table. */
function runsAnything({ definition }: Tool): boolean {
  const given = properties(definition, "inputSchema");
  const says = (value: JsonValue | undefined) => typeof value === "string" && /\bSQL\b/i.test(value);
  return Object.entries(given).some(([name, schema]) => {
    if (/^(?:sql|statements?|command|cmd|script|code)$/i.test(name)) return true;
    const described = isJsonObject(schema) ? schema["description"] : undefined;
    return /^(?:query|text)$/i.test(name) && (says(described) || says(definition["description"]));
  });
}

function undoOf(tool: Tool, all: readonly Tool[]): DraftUndo | null {
  const back = wayBack(tool);
  if (back !== null) return back;
  const undo = undoTool(tool, all);
  if (undo === undefined) return restoredUpdate(tool, all);
  const args = argumentsFor(undo, tool);
  if (args === null) return null;
  return {
    tool: undo.tool,
    kind: "compensation",
    why: `${undo.tool} looks like the undo of ${tool.tool}`,
    args,
    confidence: args.some(({ why }) => why === UNDECLARED || why === MAYBE_GIVEN) ? "medium" : "high",
  };
}

/** Verbs whose arguments are the new values. An edit or a patch describes a difference instead. */
const UPDATES = /^(?:update|set|change|configure|put)$/;
const READS = /^(?:get|read|fetch|retrieve|show|view|describe)$/;

/** Undo of an update: the same tool with the values that a read returned before. */
function restoredUpdate(tool: Tool, all: readonly Tool[]): DraftUndo | null {
  const { verb, object } = tool.read;
  if (verb === null || !UPDATES.test(verb) || object === "") return null;
  const reader = all.find(
    ({ read, ...other }) =>
      READS.test(read.verb ?? "") && read.object === object && isRead({ read, ...other }),
  );
  const asked = reader === undefined ? null : requiredOf(reader);
  const given = Object.keys(properties(tool.definition, "inputSchema"));
  if (reader === undefined || asked === null || asked.length === 0) return null;
  if (!asked.every((name) => given.includes(name))) return null;
  const answered = properties(reader.definition, "outputSchema");
  const changed = given.filter((name) => !asked.includes(name));
  if (changed.length === 0) return null;
  const isDeclared = changed.every((name) => Object.hasOwn(answered, name));
  const same = (name: string) => ({ name, value: `$args${step(name)}`, why: "the call has it" });
  const earlier = (name: string) => ({
    name,
    value: `$before${step(name)}`,
    why: Object.hasOwn(answered, name) ? `${reader.tool} returns it` : UNDECLARED,
  });
  return {
    tool: tool.tool,
    kind: "inverse",
    why: `${reader.tool} looks like the read of what ${tool.tool} changes`,
    args: [...asked.map(same), ...changed.map(earlier)],
    confidence: isDeclared ? "medium" : "low",
    before: { tool: reader.tool, args: asked.map(same) },
  };
}

/** Names of the required arguments; null if the schema is unreadable. */
function requiredOf({ definition }: Pick<Tool, "definition">): string[] | null {
  const schema = definition["inputSchema"];
  const names = isJsonObject(schema) && Array.isArray(schema["required"]) ? schema["required"] : [];
  return names.every((name) => typeof name === "string") ? (names as string[]) : null;
}

const UNDECLARED = "not declared: check a real result";
const MAYBE_GIVEN = "the call can have it";

/** A member of a path. */
const step = (name: string): string =>
  /^[A-Za-z_][A-Za-z0-9_-]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;

function undoTool(tool: Tool, all: readonly Tool[]): Tool | undefined {
  return all.find((other) => other !== tool && isUndoOf(tool.read, other.read));
}

/** Undo of a move: the same tool with source and destination exchanged. */
function wayBack(tool: Tool): DraftUndo | null {
  const { verb } = tool.read;
  if (verb !== "move" && verb !== "rename") return null;
  const names = Object.keys(properties(tool.definition, "inputSchema"));
  for (const [from, to] of WAYS) {
    if (!names.includes(from) || !names.includes(to)) continue;
    const why = "swapped, to move it back";
    const args = [
      { name: from, value: `$args.${to}`, why },
      { name: to, value: `$args.${from}`, why },
    ];
    const moved = "moving back undoes a move";
    return { tool: tool.tool, kind: "inverse", why: moved, args, confidence: "high" };
  }
  return null;
}
const WAYS = [
  ["source", "destination"],
  ["src", "dst"],
  ["from", "to"],
  ["old_path", "new_path"],
  ["oldPath", "newPath"],
  ["old_name", "new_name"],
] as const;

/** The undo's required arguments, each from the call or its result. Null if one cannot be found. */
function argumentsFor(undo: Tool, done: Tool): DraftArgument[] | null {
  const names = requiredOf(undo);
  if (names === null) return null;
  const given = properties(done.definition, "inputSchema");
  const answered = properties(done.definition, "outputSchema");
  const always = new Set(requiredOf(done) ?? []);
  const found: DraftArgument[] = [];
  for (const name of names) {
    const at = step(name);
    if (Object.hasOwn(answered, name)) found.push({ name, value: `$result${at}`, why: "the result has it" });
    else if (Object.hasOwn(given, name) && (always.has(name) || !isOwnId(name, done)))
      found.push({ name, value: `$args${at}`, why: always.has(name) ? "the call has it" : MAYBE_GIVEN });
    else if (/(?:^|_|[a-z])(?:id|ids|Id|Ids|key|name|uuid)$/.test(name)) {
      found.push({ name, value: resultId(name, done, answered), why: UNDECLARED });
    } else return null;
  }
  return found;
}

/** Where a result probably has the id. What a call created is mostly `id` there, and `note_id` in its undo. */
function resultId(
  name: string,
  { read }: Tool,
  answered: { [name: string]: JsonValue },
): string | readonly string[] {
  if (!isOwnId(name, { read })) return `$result${step(name)}`;
  const path = Object.hasOwn(answered, name) ? `$result${step(name)}` : "$result.id";
  return name.endsWith("s") ? [path] : path;
}

/** Whether a name is that of an id of what the tool works on, such as `note_id` for `create_note`. */
function isOwnId(name: string, { read }: Pick<Tool, "read">): boolean {
  const [, kind = ""] = /^(.*?)_?[iI]ds?$/.exec(name) ?? [];
  return kind !== "" && parseToolName(kind).whole === read.object;
}

function properties(definition: JsonObject, schema: string): { [name: string]: JsonValue } {
  const found = definition[schema];
  return isJsonObject(found) && isJsonObject(found["properties"]) ? found["properties"] : {};
}

function hint({ definition }: Tool, name: string): JsonValue | undefined {
  const { annotations } = definition;
  return isJsonObject(annotations) ? annotations[name] : undefined;
}
