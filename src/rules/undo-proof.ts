/** Drill results: whether the last undo drill of a tool passed, when, and with which manifest. */
import * as z from "zod";
import { nullableSchema } from "./nullable-schema.ts";

/** Last drill of a tool. */
export const drillShape = z.strictObject({
  tool: z.string(),
  /** Manifest used in the drill; any other manifest needs its own drill. */
  manifest_hash: z.string(),
  at_ms: z.int(),
  passed: z.boolean(),
  /** Problem in a sentence without values; null if the drill passed. */
  problem: nullableSchema(z.string()),
  /** Null, like `by`, for principals bound to another tenant. */
  run_id: nullableSchema(z.string()),
  by: nullableSchema(z.string()),
});

export type DrillDoc = z.output<typeof drillShape>;

const PROOF_STATES = ["proven", "never proven", "failing"] as const;
export interface UndoProof {
  state: (typeof PROOF_STATES)[number];
  /** Time of the last drill; null if there was none. */
  at_ms: number | null;
}

/** State of the undo of the manifest with this hash. */
export function undoProofOf(drill: DrillDoc | undefined, manifest_hash: string): UndoProof {
  if (drill === undefined || drill.manifest_hash !== manifest_hash)
    return { state: "never proven", at_ms: null };
  return { state: drill.passed ? "proven" : "failing", at_ms: drill.at_ms };
}

/** Text for users, the same on every surface: `proven <when>`, `never proven` or `failing`. */
export function describeProof({ state, at_ms }: UndoProof): string {
  return state === "proven" && at_ms !== null ? `proven ${new Date(at_ms).toISOString()}` : state;
}

/** Reason why the drill result is not sufficient; null if it is. */
export function unprovenReason({ state, at_ms }: UndoProof, now: number, max_age_ms: number): string | null {
  if (state !== "proven") return state === "failing" ? "its last drill failed" : "it was never proven";
  return now - (at_ms ?? 0) > max_age_ms ? "its proof is too old" : null;
}
