/** Recorded calls: arguments, decision and outcome. */
import type { CallVerdict } from "../govern/decide/verdict.ts";
import type { CaptureDoc } from "../govern/port/docs.ts";
import type { GivenValues } from "../govern/traces/given.ts";

/** The three decisions of previews and reports; `needs_approval` is a policy's `require_approval`. */
export const PREVIEW_DECISIONS = ["allow", "needs_approval", "block"] as const;
export type PreviewDecision = (typeof PREVIEW_DECISIONS)[number];

/** Captured call with the additional facts that a faithful replay needs. */
export interface HistoricCall extends CaptureDoc {
  /** True if the call used an approval. */
  approval_used: boolean;
  finished_ms: number | null;
  /** Key of the logical call, if the manifest declares one. Needed because redaction can make values equal. */
  logical_call: string | null;
  /** What people gave its run, with the run's first call. Needs a policy that follows values. */
  given?: GivenValues | undefined;
}

/** Decision in enforce mode, regardless of the run's mode. */
export function toPreviewDecision({
  decision,
  needs_approval,
}: Pick<CallVerdict, "decision" | "needs_approval">): PreviewDecision {
  if (decision === "allow") return "allow";
  return needs_approval ? "needs_approval" : "block";
}

const APPROVAL_REASON = /^approval required: request apr_\S+ is pending/;

/** Reasons without request ids, because requests of the sandbox never existed. */
export function plainReasons(reasons: readonly string[]): string[] {
  return reasons.map((reason) =>
    APPROVAL_REASON.test(reason) ? "approval required: an approver must approve this call" : reason,
  );
}

/** Maximum reasons shown; thousands of rules can reject one call. */
const MAX_REASONS = 20;

export function truncateReasons(reasons: readonly string[]): string[] {
  if (reasons.length <= MAX_REASONS) return [...reasons];
  return [...reasons.slice(0, MAX_REASONS), `and ${reasons.length - MAX_REASONS} more`];
}
