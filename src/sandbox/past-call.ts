/** A call as history has it: what was asked, what was answered, what became of it. */
import type { Verdict } from "../engine/decide/verdict.ts";
import type { CaptureDoc } from "../port/docs.ts";

/** The three answers that previews and reports speak of; `needs_approval` is a policy's `require_approval`. */
export const RULINGS = ["allow", "needs_approval", "block"] as const;
export type Ruling = (typeof RULINGS)[number];

/** The captured call, and what else a faithful repetition has to know of it. */
export interface PastCall extends CaptureDoc {
  /** It went ahead because a person had approved it. */
  approval_used: boolean;
  finished_ms: number | null;
  /** Names its logical call where the manifest declares one: redaction may have made the values alike. */
  logical_call: string | null;
}

/** What enforcing would say, whatever the mode of the run made of it. */
export function rulingOf({ decision, needs_approval }: Pick<Verdict, "decision" | "needs_approval">): Ruling {
  if (decision === "allow") return "allow";
  return needs_approval ? "needs_approval" : "block";
}

const APPROVAL_REASON = /^approval required: request apr_\S+ is pending/;

/** Reasons as a report shows them: the id of a request that never was would only mislead. */
export function plainReasons(reasons: readonly string[]): string[] {
  return reasons.map((reason) =>
    APPROVAL_REASON.test(reason) ? "approval required: a person must approve this call" : reason,
  );
}

/** As many as a person reads: a policy may hold thousands of rules that all speak against one call. */
const MOST_REASONS = 20;

export function few(reasons: readonly string[]): string[] {
  if (reasons.length <= MOST_REASONS) return [...reasons];
  return [...reasons.slice(0, MOST_REASONS), `and ${reasons.length - MOST_REASONS} more`];
}
