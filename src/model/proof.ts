/** What is known of a tool's undo by having tried it: whether its last drill passed, when, and on which manifest. */

/** The last drill of a tool, as it is kept. */
export interface DrillDoc {
  tool: string;
  /** The manifest that was drilled; another one has to be proven anew. */
  manifest_hash: string;
  at_ms: number;
  passed: boolean;
  /** What went wrong, in a sentence without values; null where nothing did. */
  problem: string | null;
  /** Null to whoever is bound to another tenant than the run's; so is `by`. */
  run_id: string | null;
  by: string | null;
}

const PROOF_STATES = ["proven", "never proven", "failing"] as const;
export interface Proof {
  state: (typeof PROOF_STATES)[number];
  /** When it was tried last; null where it never was. */
  at_ms: number | null;
}

/** What a drill says about the manifest with this hash. */
export function proofOf(drill: DrillDoc | undefined, manifest_hash: string): Proof {
  if (drill === undefined || drill.manifest_hash !== manifest_hash)
    return { state: "never proven", at_ms: null };
  return { state: drill.passed ? "proven" : "failing", at_ms: drill.at_ms };
}

/** The words for people, the same on every surface: `proven <when>`, `never proven` or `failing`. */
export function proofWords({ state, at_ms }: Proof): string {
  return state === "proven" && at_ms !== null ? `proven ${new Date(at_ms).toISOString()}` : state;
}

/** Why the proof does not count, or null where it does. */
export function unprovenBecause({ state, at_ms }: Proof, now: number, max_age_ms: number): string | null {
  if (state !== "proven") return state === "failing" ? "its last drill failed" : "it was never proven";
  return now - (at_ms ?? 0) > max_age_ms ? "its proof is too old" : null;
}
