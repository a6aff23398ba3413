/**
 * Reads the state of a tool server before a call, after it and after its undo, with the reading tools that it offers. A
 * call is undone if each answer is as before. An answer that differs between two reads in a row proves nothing.
 */
import { ToolAnsweredError } from "../../govern/decide/effect-check.ts";
import { toCanonicalJson } from "../../kernel/json/canonical.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../kernel/json/json.ts";
import { type CallValues, fillTemplate } from "../../kernel/paths.ts";
import type { ReaderFn } from "../../rollback/ports.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";

/** A reading tool with the arguments that a manifest would have. */
export interface StateRead {
  tool: string;
  args: { [name: string]: JsonValue };
}

/** Answers by the read's tool and arguments. */
export type ServerState = ReadonlyMap<string, StateAnswer>;
interface StateAnswer {
  read: StateRead;
  answer: JsonValue;
}

/** Reading tools whose required arguments the call, or the undo's arguments, provide. */
export function readsFor(
  { compensation, before }: ToolManifest,
  args: JsonObject,
  readers: readonly { tool: string; definition: JsonObject }[],
): StateRead[] {
  const known = new Map<string, JsonValue>(Object.keys(args).map((name) => [name, memberPath(name)]));
  for (const named of [compensation?.args, before?.args])
    if (isJsonObject(named ?? null))
      for (const [name, template] of Object.entries(named as JsonObject))
        if (typeof template === "string" && template.startsWith("$")) known.set(name, template);
  return readers.flatMap(({ tool, definition }) => {
    const required = requiredOf(definition);
    const filled = required.flatMap((name) => {
      const template = known.get(name);
      return template === undefined || String(template).startsWith("$before")
        ? []
        : [[name, template] as const];
    });
    return filled.length < required.length ? [] : [{ tool, args: Object.fromEntries(filled) }];
  });
}

/** Names of a tool's required arguments. */
export function requiredOf({ inputSchema: schema }: JsonObject): string[] {
  const names = isJsonObject(schema ?? null) ? (schema as JsonObject)["required"] : undefined;
  return Array.isArray(names) ? names.map(String) : [];
}

const memberPath = (name: string): string =>
  /^[A-Za-z_][A-Za-z0-9_-]*$/.test(name) ? `$args.${name}` : `$args[${JSON.stringify(name)}]`;

/** Makes the reads whose arguments are known by now. One that cannot be made is left out. */
export async function readState(
  reads: readonly StateRead[],
  values: CallValues,
  reader: ReaderFn,
  run_id?: string,
): Promise<ServerState> {
  const state = new Map<string, StateAnswer>();
  const { signal } = new AbortController();
  for (const read of reads) {
    const args = fillTemplate(read.args, values);
    if (args === undefined) continue;
    const answer = await reader({ tool: read.tool, arguments: args }, signal, run_id).catch(
      (error: unknown): JsonValue | undefined =>
        error instanceof ToolAnsweredError ? { is_error: true } : undefined,
    );
    if (answer !== undefined) state.set(toCanonicalJson([read.tool, args]), { read, answer });
  }
  return state;
}

/** What the answers before, after the call and after its undo show. */
export type UndoFinding =
  | { found: "held"; shown_by: StateRead[] }
  | { found: "left"; at: string[]; nothing_changed: boolean }
  | { found: "not shown" };

/** `again` is a second reading before the call. */
export function judgeUndo(
  before: ServerState,
  again: ServerState,
  after: ServerState,
  undone: ServerState,
): UndoFinding {
  const shown: StateRead[] = [];
  const left: string[] = [];
  let nothing_changed = true;
  for (const [key, { read, answer }] of after) {
    const [first, second, last] = [before.get(key), again.get(key), undone.get(key)];
    if (last === undefined || (first !== undefined && !isSame(first.answer, second?.answer))) continue;
    // A read of what the call returned has no answer before the call. After the undo it must find nothing.
    const isShown = first === undefined ? !isGone(answer) : !isSame(first.answer, answer);
    const isBack = first === undefined ? isGone(last.answer) : isSame(first.answer, last.answer);
    if (isShown) shown.push(read);
    if (isShown && !isSame(answer, last.answer)) nothing_changed = false;
    if (!isBack)
      left.push(`${read.tool}${first === undefined ? "" : differenceOf(first.answer, last.answer)}`);
  }
  if (shown.length === 0) return { found: "not shown" };
  if (left.length === 0) return { found: "held", shown_by: shown };
  return { found: "left", at: [...new Set(left)], nothing_changed };
}

const NOT_FOUND = /not[ _-]?found|no such|does(?: not|n't) exist|unknown|\b404\b/i;

/** Whether an answer says that there is nothing. */
function isGone(answer: JsonValue): boolean {
  if (answer === null || answer === "") return true;
  if (typeof answer === "string") return NOT_FOUND.test(answer);
  if (Array.isArray(answer)) return answer.length === 0;
  if (!isJsonObject(answer)) return false;
  const { is_error, exists, found, status, error, content } = answer;
  if (is_error === true || exists === false || found === false || status === 404) return true;
  if (typeof error === "string") return NOT_FOUND.test(error);
  const [part] = Array.isArray(content) ? content : [];
  return isJsonObject(part ?? null) && typeof (part as JsonObject)["text"] === "string"
    ? isGone((part as JsonObject)["text"]!)
    : Object.keys(answer).length === 0;
}

const isSame = (a: JsonValue, b: JsonValue | undefined): boolean =>
  b !== undefined && toCanonicalJson(a) === toCanonicalJson(b);

/** Place of the first difference, never a value. */
function differenceOf(wanted: JsonValue, seen: JsonValue, at = ""): string {
  if (Array.isArray(wanted) && Array.isArray(seen) && wanted.length === seen.length) {
    const i = wanted.findIndex((item, n) => !isSame(item, seen[n]));
    return differenceOf(wanted[i]!, seen[i]!, `${at}[${i}]`);
  }
  if (isJsonObject(wanted) && isJsonObject(seen)) {
    const names = [...new Set([...Object.keys(wanted), ...Object.keys(seen)])];
    const name = names.find((one) => !isSame(wanted[one] ?? null, seen[one] ?? null));
    if (name !== undefined) return differenceOf(wanted[name] ?? null, seen[name] ?? null, `${at}.${name}`);
  }
  return at === "" ? "" : ` at ${at.replace(/^\./, "")}`;
}
