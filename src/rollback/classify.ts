/**
 * What one step needs in a rollback, from the manifest it was accepted under and the values that were
 * kept for its undo. Later edits of the manifest change nothing here.
 */
import { byteSize } from "../engine/before.ts";
import { isClosed } from "../engine/closing.ts";
import type { Json } from "../kernel/json.ts";
import { type Root, readKeys, tryTemplatePath } from "../kernel/paths.ts";
import { isAbsent } from "../model/manifest/absent.ts";
import type { Before, Manifest } from "../model/manifest/types.ts";
import { type PayloadDoc, type StepDoc, type StepStatus, UNKNOWN } from "../model/run.ts";
import type { ReadRequest } from "./ports.ts";

/** How the undo will be read back; `arguments` is undefined where they cannot be built. */
export interface ReadBackSpec {
  tool: string;
  arguments: Json | undefined;
  expect: Json;
  retries: number;
  backoff_ms: number;
}

/** What was there before the call and after it: an undo begins only where it still is one of the two. */
export interface StateCheck {
  declared: Before;
  read: ReadRequest;
  was: Json;
  before_hash: string | undefined;
  /** Undefined where it was not read after the call. */
  after_hash: string | undefined;
  /** The undo's arguments for those who may not see what was there. */
  masked_args: Json;
}

export interface UndoCall {
  tool: string;
  args: Json;
  idempotency_key: string;
  needs_approval: boolean;
  residue: readonly string[];
  kind: "inverse" | "compensation";
  read_back: ReadBackSpec | null;
  /** Null where the manifest reads nothing before the call. */
  state: StateCheck | null;
}

export type Standing =
  | { kind: "compensate"; undo: UndoCall }
  | { kind: "skip" | "unresolved" | "unmanifested" }
  /** `closed`: there was a way back, until then. */
  | { kind: "unrecoverable"; closed?: true };

export const closedText = (closes_ms: number): string =>
  `its undo closed at ${new Date(closes_ms).toISOString()}`;

const NOTHING: PayloadDoc = { refs: {} };
const SKIP: Standing = { kind: "skip" };
const UNRECOVERABLE: Standing = { kind: "unrecoverable" };
const CLOSED: Standing = { kind: "unrecoverable", closed: true };
const UNRESOLVED: Standing = { kind: "unresolved" };
const UNMANIFESTED: Standing = { kind: "unmanifested" };

const FALLEN: ReadonlySet<StepStatus> = new Set(["failed", "compensated"]);
const HARMLESS: ReadonlySet<string | null> = new Set(["read", "idempotent"]);

/** Null for a step that does not stand: it failed, or it is already undone. `now` closes undos whose time has passed. */
export function classify(
  step: StepDoc,
  manifest: Manifest | undefined,
  payload: PayloadDoc | undefined,
  now: number,
): Standing | null {
  if (FALLEN.has(step.status)) return null;
  if (UNKNOWN.has(step.status)) return UNRESOLVED;
  if (step.manifest_hash === null) return UNMANIFESTED;
  if (!needsUndo(step)) return SKIP;
  if (isClosed(step, now)) return CLOSED;
  const undo = manifest === undefined ? undefined : undoOf(step, manifest, payload ?? NOTHING);
  return undo === undefined ? UNRECOVERABLE : { kind: "compensate", undo };
}

/** Whether the step stands in a way that a rollback or a person has to take back, by what is known from its row alone. */
export function needsUndo(step: StepDoc): boolean {
  if (FALLEN.has(step.status)) return false;
  if (UNKNOWN.has(step.status)) return true;
  // An author who declares an undo for a repeatable call wants it undone.
  return !HARMLESS.has(step.effect) || step.compensation_tool !== null;
}

function undoOf(step: StepDoc, manifest: Manifest, payload: PayloadDoc): UndoCall | undefined {
  const { compensation } = manifest;
  if (compensation === null || step.handle === null) return undefined;
  const way = wayBack(manifest, payload);
  const kept = keptValues(payload);
  const args = way && fill(way.args, kept);
  const state = stateOf(step, manifest, payload);
  if (way === undefined || args === undefined || state === undefined) return undefined;
  return {
    tool: way.tool,
    args,
    idempotency_key: step.handle,
    needs_approval: compensation.requires_approval,
    residue: compensation.residue,
    kind: compensation.kind,
    read_back: readBackOf(manifest, kept, way === compensation.when_absent),
    state: state && { ...state, masked_args: fill(way.args, kept, sizeOf)! },
  };
}

/** The tool and the arguments that undo the call; undefined where nothing was there and no way is declared for that. */
function wayBack({ compensation, before }: Manifest, payload: PayloadDoc) {
  if (compensation === null) return undefined;
  if (before === undefined || payload.before === undefined || !isAbsent(before, payload.before))
    return compensation;
  return compensation.when_absent;
}

function readBackOf(
  { verification, before }: Manifest,
  kept: Kept,
  was_absent: boolean,
): ReadBackSpec | null {
  if (verification === null) return null;
  const { tool, retries, backoff_ms } = verification;
  // There are no values to expect back where nothing was: the read that showed so is to show so again.
  if (was_absent && before?.absent !== undefined && tool === before.tool && namesBefore(verification.expect))
    return { tool, arguments: fill(before.args, kept), expect: before.absent, retries, backoff_ms };
  const args = fill(verification.args, kept);
  // Only what was there before is named in what is expected; other texts stand for themselves.
  const expect =
    before === undefined ? verification.expect : fill(verification.expect, { before: kept.before });
  if (expect === undefined) return { tool, arguments: undefined, expect: null, retries, backoff_ms };
  return { tool, arguments: args, expect, retries, backoff_ms };
}

function namesBefore(template: Json): boolean {
  if (typeof template === "string") return tryTemplatePath(template)?.root === "before";
  return template !== null && typeof template === "object" && Object.values(template).some(namesBefore);
}

/** Undefined where the manifest reads what was there, and nothing of it is known. */
function stateOf(
  { before_hash, after_hash }: StepDoc,
  { before: declared }: Manifest,
  payload: PayloadDoc,
): Omit<StateCheck, "masked_args"> | null | undefined {
  if (declared === undefined) return null;
  const { before: was } = payload;
  const args = fill(declared.args, keptValues(payload));
  if (was === undefined || args === undefined) return undefined;
  return { declared, read: { tool: declared.tool, arguments: args }, was, before_hash, after_hash };
}

type Lookup = (source: string, keys: readonly (string | number)[]) => Json | undefined;
type Kept = { [R in Root]?: Lookup | undefined };

function keptValues({ refs, before }: PayloadDoc): Kept {
  const byPath = (source: string) => (Object.hasOwn(refs, source) ? refs[source] : undefined);
  return { args: byPath, result: byPath, before: (_, keys) => readKeys(before, keys) };
}

/** How a value that was there is shown to those who may not see it. */
export function sizeOf(value: Json): Json {
  return `[before: ${byteSize(value)} bytes]`;
}

/** Fills a template from the values that were kept; undefined when one was not. `show` stands for what was there. */
function fill(template: Json, kept: Kept, show?: (before: Json) => Json): Json | undefined {
  if (typeof template === "string") {
    const path = tryTemplatePath(template);
    const source = path && kept[path.root];
    if (path === undefined || source === undefined) return template;
    const value = source(path.source, path.keys);
    return value !== undefined && path.root === "before" && show !== undefined ? show(value) : value;
  }
  if (template === null || typeof template !== "object") return template;
  if (Array.isArray(template)) {
    const items = template.map((item) => fill(item, kept, show));
    return items.every((item) => item !== undefined) ? items : undefined;
  }
  const out: { [name: string]: Json } = {};
  for (const name of Object.keys(template)) {
    const filled = fill(template[name]!, kept, show);
    if (filled === undefined) return undefined;
    out[name] = filled;
  }
  return out;
}
