/**
 * Reads of the state before a call: which read, whether it is allowed, and which parts of the answer count. The answer
 * is stored with the step for its undo; the ledger has its hash.
 */
import { keyedHash } from "../../kernel/hash.ts";
import { toCanonicalJson } from "../../kernel/json/canonical.ts";
import { isJsonObject, type JsonValue } from "../../kernel/json/json.ts";
import { fillTemplate, parseTemplatePath } from "../../kernel/paths.ts";
import { BEFORE_LIMITS } from "../../rules/manifest/schema.ts";
import type { BeforeSpec, ManifestSet, ToolManifest } from "../../rules/manifest/types.ts";
import { type CallerPrincipal, canRequestPermission } from "../roles.ts";
import type { RunDoc } from "../runs/run.ts";

/** Read that a decision requires. Fields with their default value are omitted. */
export type BeforeRead = {
  tool: string;
  arguments: JsonValue;
  max_bytes?: number;
  required?: false;
};

/**
 * Reading of a surface for the card of a call; `value` is undefined if the read failed. Null if the surface can read
 * but has not yet. A new request then shows that nothing was read, and an approval whose card showed state is not used.
 */
export type CardRead = { value: JsonValue | undefined } | null;

/** Declared read. `problem` explains why the read is impossible, which blocks a call that requires it. */
export type BeforeFacts = { read: BeforeRead | null; problem: string | null };

export function beforeFacts(
  manifests: ManifestSet,
  run: Pick<RunDoc, "scope">,
  caller: Pick<CallerPrincipal, "max_permissions">,
  { before }: ToolManifest,
  args: JsonValue,
): BeforeFacts | undefined {
  if (before === undefined) return undefined;
  const unreadable = readProblem(manifests, run, caller, before.tool);
  const problem = unreadable === null ? null : `before: ${unreadable}`;
  const read = problem === null ? beforeRead(before, args) : null;
  if (read !== null) return { read, problem: null };
  if (before.required === false) return { read: null, problem: null };
  return {
    read: null,
    problem: problem ?? `before: the arguments of ${before.tool} cannot be built from this call`,
  };
}

export function beforeRead(before: BeforeSpec, args: JsonValue): BeforeRead | null {
  const filled = fillTemplate(before.args, { args, result: undefined });
  if (filled === undefined) return null;
  const { tool, max_bytes, required } = before;
  return {
    tool,
    arguments: filled,
    ...(max_bytes === undefined ? {} : { max_bytes }),
    ...(required === undefined ? {} : { required }),
  };
}

/** Why a run may not make a declared read, or null. */
export function readProblem(
  manifests: ManifestSet,
  run: Pick<RunDoc, "scope">,
  caller: Pick<CallerPrincipal, "max_permissions">,
  tool: string,
): string | null {
  const manifest = manifests.active(tool);
  if (manifest === undefined) return `no manifest is registered for ${tool}`;
  if (manifest.effect !== "read") return `${tool} is declared ${manifest.effect}, not read`;
  const { permission } = manifest;
  if (run.scope.permissions.includes(permission) && canRequestPermission(caller, permission)) return null;
  return `permission ${permission}, which ${tool} needs, is not in the run's scope`;
}

/** Explains why an answer cannot be stored; null if it can. */
export function beforeAnswerProblem(
  { max_bytes = BEFORE_LIMITS.max_bytes.default }: { max_bytes?: number },
  value: JsonValue,
) {
  const text = toCanonicalJson(value);
  const bytes = Buffer.byteLength(text);
  if (bytes > max_bytes) return `the answer has ${bytes} bytes, more than max_bytes (${max_bytes})`;
  return text.includes(LOST)
    ? "the answer contains bytes that are not text, so it cannot restore them"
    : null;
}

/** Replacement character of a decoder for invalid bytes, which are then lost. */
const LOST = "\ufffd";

export const byteSize = (value: JsonValue): number => Buffer.byteLength(toCanonicalJson(value));

/** Hash of the resource that a call affects, identified by its read. Keyed with the run's salt. */
export const resourceHash = (salt: string, read: Pick<BeforeRead, "tool" | "arguments">): string =>
  keyedHash(salt, [read.tool, read.arguments]);

/** Hash of the answer without ignored parts. Keyed with the run's salt, like argument hashes. */
export function stateHash(salt: string, { ignore = [] }: BeforeSpec, value: JsonValue): string {
  return keyedHash(
    salt,
    ignore.reduce((rest, source) => without(rest, parseTemplatePath(source).keys), value),
  );
}

function without(value: JsonValue, [key, ...rest]: readonly (string | number)[]): JsonValue {
  if (Array.isArray(value)) {
    if (typeof key !== "number" || key >= value.length) return value;
    return value.with(key, rest.length === 0 ? null : without(value[key]!, rest));
  }
  if (!isJsonObject(value) || key === undefined || !Object.hasOwn(value, String(key))) return value;
  const { [String(key)]: inner, ...others } = value;
  return rest.length === 0 ? others : { ...others, [String(key)]: without(inner!, rest) };
}

/** Hash to compare with a card's: null if the read failed, undefined if there was no read. */
export function cardReadHash(
  salt: string,
  before: BeforeSpec | undefined,
  seen: CardRead | undefined,
): string | null | undefined {
  if (before === undefined || seen === undefined || seen === null) return undefined;
  return seen.value === undefined ? null : stateHash(salt, before, seen.value);
}
