/**
 * Decides how one step would be undone, from the manifest it was accepted under and the values stored for its undo.
 * Later edits of the manifest have no effect here.
 */
import { byteSize } from "../../govern/decide/before-state.ts";
import {
  type PayloadDoc,
  type StepDoc,
  type StepStatus,
  UNKNOWN_OUTCOME_STATUSES,
} from "../../govern/runs/run.ts";
import { isUndoExpired } from "../../govern/runs/undo-deadlines.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { type PathRoot, readKeys, tryTemplatePath } from "../../kernel/paths.ts";
import { isAbsent } from "../../rules/manifest/is-absent.ts";
import type { BeforeSpec, ToolManifest } from "../../rules/manifest/types.ts";
import type { ReadRequest } from "../ports.ts";

/** Verification of the undo. `arguments` is undefined if they cannot be built. */
export interface ReadBackSpec {
  tool: string;
  arguments: JsonValue | undefined;
  expect: JsonValue;
  retries: number;
  backoff_ms: number;
}

/** State of the resource before and after the call. An undo begins only if the current state equals one of the two. */
export interface StateCheck {
  declared: BeforeSpec;
  read: ReadRequest;
  was: JsonValue;
  before_hash: string | undefined;
  /** Undefined if the state was not read after the call. */
  after_hash: string | undefined;
  /** The undo's arguments for readers who are not allowed to see the earlier state. */
  masked_args: JsonValue;
}

export interface UndoCall {
  tool: string;
  args: JsonValue;
  idempotency_key: string;
  needs_approval: boolean;
  residue: readonly string[];
  kind: "inverse" | "compensation";
  read_back: ReadBackSpec | null;
  /** Null if the manifest declares no read before the call. */
  state: StateCheck | null;
}

export type UndoClassification =
  | { kind: "compensate"; undo: UndoCall }
  | { kind: "skip" | "unresolved" | "unmanifested" }
  /** `closed`: could be undone until this time. */
  | { kind: "unrecoverable"; closed?: true };

export const closedText = (closes_ms: number): string =>
  `its undo closed at ${new Date(closes_ms).toISOString()}`;

const NOTHING: PayloadDoc = { refs: {} };
const SKIP: UndoClassification = { kind: "skip" };
const UNRECOVERABLE: UndoClassification = { kind: "unrecoverable" };
const CLOSED: UndoClassification = { kind: "unrecoverable", closed: true };
const UNRESOLVED: UndoClassification = { kind: "unresolved" };
const UNMANIFESTED: UndoClassification = { kind: "unmanifested" };

const FALLEN: ReadonlySet<StepStatus> = new Set(["failed", "compensated"]);
const HARMLESS: ReadonlySet<string | null> = new Set(["read", "idempotent"]);

/** Returns null for a step that failed or is already undone. An undo whose deadline is before `now` is expired. */
export function classifyUndo(
  step: StepDoc,
  manifest: ToolManifest | undefined,
  payload: PayloadDoc | undefined,
  now: number,
): UndoClassification | null {
  if (FALLEN.has(step.status)) return null;
  if (UNKNOWN_OUTCOME_STATUSES.has(step.status)) return UNRESOLVED;
  if (step.manifest_hash === null) return UNMANIFESTED;
  if (!needsUndo(step)) return SKIP;
  if (isUndoExpired(step, now)) return CLOSED;
  const undo = manifest === undefined ? undefined : undoOf(step, manifest, payload ?? NOTHING);
  return undo === undefined ? UNRECOVERABLE : { kind: "compensate", undo };
}

/** Whether a rollback or an operator has to deal with the step. Reads only the step's own row. */
export function needsUndo(step: StepDoc): boolean {
  if (FALLEN.has(step.status)) return false;
  if (UNKNOWN_OUTCOME_STATUSES.has(step.status)) return true;
  // A read that turned out to change something has the state from before it.
  if (step.effect === "read") return step.compensation_tool !== null && step.before_hash !== undefined;
  // An author who declares an undo for an idempotent call wants that call undone.
  return !HARMLESS.has(step.effect) || step.compensation_tool !== null;
}

/** Whether the step's own row shows that it took effect for good: nothing declares an undo, or its time has passed. */
export const isPermanent = (step: StepDoc, now: number): boolean =>
  step.status === "succeeded" &&
  needsUndo(step) &&
  (step.compensation_tool === null || isUndoExpired(step, now));

function undoOf(step: StepDoc, manifest: ToolManifest, payload: PayloadDoc): UndoCall | undefined {
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
    residue: compensation.residue.flatMap((text) => residueTexts(text, kept)),
    kind: compensation.kind,
    read_back: readBackOf(manifest, kept, way === compensation.when_absent),
    state: state && { ...state, masked_args: fill(way.args, kept, sizeOf)! },
  };
}

/** A residue is a text, or a path into the earlier state with a text or several. */
function residueTexts(text: string, kept: Kept): string[] {
  const found = tryTemplatePath(text)?.root === "before" ? fill(text, kept) : text;
  return [found].flat().filter((one) => typeof one === "string");
}

/**
 * Template of the undo call; undefined if nothing existed before the call and the manifest declares no `when_absent`.
 */
function wayBack({ compensation, before }: ToolManifest, payload: PayloadDoc) {
  if (compensation === null) return undefined;
  if (before === undefined || payload.before === undefined || !isAbsent(before, payload.before))
    return compensation;
  return compensation.when_absent;
}

function readBackOf(
  { verification, before }: ToolManifest,
  kept: Kept,
  was_absent: boolean,
): ReadBackSpec | null {
  if (verification === null) return null;
  const { tool, retries, backoff_ms } = verification;
  // Nothing existed before the call, so no earlier values can be expected. Expect the same "absent" answer instead.
  if (was_absent && before?.absent !== undefined && tool === before.tool && namesBefore(verification.expect))
    return { tool, arguments: fill(before.args, kept), expect: before.absent, retries, backoff_ms };
  const args = fill(verification.args, kept);
  // `expect` can refer to the earlier state only; any other text is literal.
  const expect =
    before === undefined ? verification.expect : fill(verification.expect, { before: kept.before });
  if (expect === undefined) return { tool, arguments: undefined, expect: null, retries, backoff_ms };
  return { tool, arguments: args, expect, retries, backoff_ms };
}

function namesBefore(template: JsonValue): boolean {
  if (typeof template === "string") return tryTemplatePath(template)?.root === "before";
  return template !== null && typeof template === "object" && Object.values(template).some(namesBefore);
}

/** Returns undefined if the manifest reads the state before the call but no such reading is stored. */
function stateOf(
  { before_hash, after_hash }: StepDoc,
  { before: declared }: ToolManifest,
  payload: PayloadDoc,
): Omit<StateCheck, "masked_args"> | null | undefined {
  if (declared === undefined) return null;
  const { before: was } = payload;
  const args = fill(declared.args, keptValues(payload));
  if (was === undefined || args === undefined) return undefined;
  return { declared, read: { tool: declared.tool, arguments: args }, was, before_hash, after_hash };
}

type Lookup = (source: string, keys: readonly (string | number)[]) => JsonValue | undefined;
type Kept = { [R in PathRoot]?: Lookup | undefined };

function keptValues({ refs, before }: PayloadDoc): Kept {
  const byPath = (source: string) => (Object.hasOwn(refs, source) ? refs[source] : undefined);
  return { args: byPath, result: byPath, before: (_, keys) => readKeys(before, keys) };
}

/** Placeholder for an earlier value, for readers who are not allowed to see it. */
export function sizeOf(value: JsonValue): JsonValue {
  return `[before: ${byteSize(value)} bytes]`;
}

/**
 * Fills a template from the stored values; undefined if one is missing. `show` transforms values of the earlier state.
 */
function fill(
  template: JsonValue,
  kept: Kept,
  show?: (before: JsonValue) => JsonValue,
): JsonValue | undefined {
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
  const out: { [name: string]: JsonValue } = {};
  for (const name of Object.keys(template)) {
    const filled = fill(template[name]!, kept, show);
    if (filled === undefined) return undefined;
    out[name] = filled;
  }
  return out;
}
