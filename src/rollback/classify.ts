/**
 * What one step needs in a rollback, from the manifest it was accepted under and the values that were
 * kept for its undo. Later edits of the manifest change nothing here.
 */
import type { Json } from "../kernel/json.ts";
import { tryPath } from "../kernel/paths.ts";
import type { Manifest } from "../model/manifest/types.ts";
import { type PayloadDoc, type StepDoc, type StepStatus, UNKNOWN } from "../model/run.ts";

/** How the undo will be read back; `arguments` is undefined where they cannot be built. */
export interface ReadBackSpec {
  tool: string;
  arguments: Json | undefined;
  expect: Json;
  retries: number;
  backoff_ms: number;
}

export interface Undo {
  tool: string;
  args: Json;
  idempotency_key: string;
  needs_approval: boolean;
  residue: readonly string[];
  kind: "inverse" | "compensation";
  read_back: ReadBackSpec | null;
}

export type Standing =
  | { kind: "compensate"; undo: Undo }
  | { kind: "skip" | "unrecoverable" | "unresolved" | "unmanifested" };

const SKIP: Standing = { kind: "skip" };
const UNRECOVERABLE: Standing = { kind: "unrecoverable" };
const UNRESOLVED: Standing = { kind: "unresolved" };
const UNMANIFESTED: Standing = { kind: "unmanifested" };

const FALLEN: ReadonlySet<StepStatus> = new Set(["failed", "compensated"]);
const HARMLESS: ReadonlySet<string | null> = new Set(["read", "idempotent"]);

/** Null for a step that does not stand: it failed, or it is already undone. */
export function classify(
  step: StepDoc,
  manifest: Manifest | undefined,
  payload: PayloadDoc | undefined,
): Standing | null {
  if (FALLEN.has(step.status)) return null;
  if (UNKNOWN.has(step.status)) return UNRESOLVED;
  if (step.manifest_hash === null) return UNMANIFESTED;
  if (!needsUndo(step)) return SKIP;
  const undo = manifest === undefined ? undefined : undoOf(step, manifest, payload?.refs ?? {});
  return undo === undefined ? UNRECOVERABLE : { kind: "compensate", undo };
}

/** Whether the step stands in a way that somebody has to take back, by what is known from its row alone. */
export function needsUndo(step: StepDoc): boolean {
  if (FALLEN.has(step.status)) return false;
  if (UNKNOWN.has(step.status)) return true;
  // An author who declares an undo for a repeatable call wants it undone.
  return !HARMLESS.has(step.effect) || step.compensation_tool !== null;
}

function undoOf(step: StepDoc, manifest: Manifest, refs: PayloadDoc["refs"]): Undo | undefined {
  const { compensation, verification } = manifest;
  if (compensation === null || step.handle === null) return undefined;
  const args = fillFromRefs(compensation.args, refs);
  if (args === undefined) return undefined;
  return {
    tool: compensation.tool,
    args,
    idempotency_key: step.handle,
    needs_approval: compensation.requires_approval,
    residue: compensation.residue,
    kind: compensation.kind,
    read_back:
      verification === null
        ? null
        : {
            tool: verification.tool,
            arguments: fillFromRefs(verification.args, refs),
            expect: verification.expect,
            retries: verification.retries,
            backoff_ms: verification.backoff_ms,
          },
  };
}

/** Fills a template from the values that were kept by their path; undefined when one was not kept. */
export function fillFromRefs(template: Json, refs: { [path: string]: Json }): Json | undefined {
  if (typeof template === "string") {
    if (tryPath(template) === undefined) return template;
    return Object.hasOwn(refs, template) ? refs[template] : undefined;
  }
  if (template === null || typeof template !== "object") return template;
  if (Array.isArray(template)) {
    const items = template.map((item) => fillFromRefs(item, refs));
    return items.every((item) => item !== undefined) ? items : undefined;
  }
  const out: { [name: string]: Json } = {};
  for (const name of Object.keys(template)) {
    const filled = fillFromRefs(template[name]!, refs);
    if (filled === undefined) return undefined;
    out[name] = filled;
  }
  return out;
}
