/**
 * What was there before a call: what is to be read, whether it may be, and what of the answer counts. The answer
 * is kept with the step for its undo; the ledger holds its hash.
 */
import { canonical } from "../kernel/canonical.ts";
import { keyedHash } from "../kernel/hash.ts";
import { isJsonObject, type Json } from "../kernel/json.ts";
import { fillTemplate, parseTemplatePath } from "../kernel/paths.ts";
import { BEFORE } from "../model/manifest/schema.ts";
import type { Before, Manifest, ManifestSet } from "../model/manifest/types.ts";
import { mayRequest, type Principal } from "../model/roles.ts";
import type { RunDoc } from "../model/run.ts";

/** The read that a decision asks for. What keeps its default is left out. */
export type BeforeRead = {
  tool: string;
  arguments: Json;
  max_bytes?: number;
  required?: false;
};

/**
 * What a surface that reads by itself read for the card of a call; undefined where that failed. Null where it reads and
 * did not yet: a request that is opened then shows that nothing was read, and one that showed something is not used.
 */
export type Seen = { value: Json | undefined } | null;

/** Null where the manifest declares none; a text where it cannot be made, which refuses a call that needs it. */
export type BeforeFacts = { read: BeforeRead | null; problem: string | null };

export function beforeFacts(
  manifests: ManifestSet,
  run: Pick<RunDoc, "scope">,
  caller: Pick<Principal, "max_permissions">,
  { before }: Manifest,
  args: Json,
): BeforeFacts | undefined {
  if (before === undefined) return undefined;
  const problem = problemOf(manifests, run, caller, before);
  const read = problem === null ? beforeRead(before, args) : null;
  if (read !== null) return { read, problem: null };
  if (before.required === false) return { read: null, problem: null };
  return {
    read: null,
    problem: problem ?? `before: the arguments of ${before.tool} cannot be built from this call`,
  };
}

export function beforeRead(before: Before, args: Json): BeforeRead | null {
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

function problemOf(
  manifests: ManifestSet,
  run: Pick<RunDoc, "scope">,
  caller: Pick<Principal, "max_permissions">,
  { tool }: Before,
): string | null {
  const manifest = manifests.active(tool);
  if (manifest === undefined) return `before: no manifest is registered for ${tool}`;
  if (manifest.effect !== "read") return `before: ${tool} is declared ${manifest.effect}, not read`;
  const { permission } = manifest;
  if (run.scope.permissions.includes(permission) && mayRequest(caller, permission)) return null;
  return `before: permission ${permission}, which ${tool} needs, is not in the run's scope`;
}

/** What is wrong with an answer to the read, or null where it can be kept. */
export function answerProblem({ max_bytes = BEFORE.max_bytes.default }: { max_bytes?: number }, value: Json) {
  const text = canonical(value);
  const bytes = Buffer.byteLength(text);
  if (bytes > max_bytes) return `the answer has ${bytes} bytes, more than max_bytes (${max_bytes})`;
  return text.includes(LOST)
    ? "the answer stands for bytes that are no text, and would not restore them"
    : null;
}

/** What a decoder puts in the place of bytes that it cannot read: they are gone. */
const LOST = "\ufffd";

export const byteSize = (value: Json): number => Buffer.byteLength(canonical(value));

/** What a call touches, by the read that shows it; keyed with the run's salt, too. */
export const thingHash = (salt: string, read: Pick<BeforeRead, "tool" | "arguments">): string =>
  keyedHash(salt, [read.tool, read.arguments]);

/** Over what counts of the answer, keyed with the run's salt like the hash of arguments. */
export function stateHash(salt: string, { ignore = [] }: Before, value: Json): string {
  return keyedHash(
    salt,
    ignore.reduce((rest, source) => without(rest, parseTemplatePath(source).keys), value),
  );
}

function without(value: Json, [key, ...rest]: readonly (string | number)[]): Json {
  if (Array.isArray(value)) {
    if (typeof key !== "number" || key >= value.length) return value;
    return value.with(key, rest.length === 0 ? null : without(value[key]!, rest));
  }
  if (!isJsonObject(value) || key === undefined || !Object.hasOwn(value, String(key))) return value;
  const { [String(key)]: inner, ...others } = value;
  return rest.length === 0 ? others : { ...others, [String(key)]: without(inner!, rest) };
}

/** For comparing with what a card showed: null where nothing could be read, undefined where there was no look. */
export function seenHash(
  salt: string,
  before: Before | undefined,
  seen: Seen | undefined,
): string | null | undefined {
  if (before === undefined || seen === undefined || seen === null) return undefined;
  return seen.value === undefined ? null : stateHash(salt, before, seen.value);
}
