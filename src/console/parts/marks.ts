/** Coloured labels for statuses, decisions, effects and counts. The text carries the meaning; the colour repeats it. */

import type { ApprovalStatus } from "../../govern/approvals/approval.ts";
import type { RunState, StepStatus } from "../../govern/runs/run.ts";
import type { PlanKind } from "../../rollback/plan/plan.ts";
import type { ManifestLifecycle, ToolEffect } from "../../rules/manifest/types.ts";
import { type HtmlFragment, safeHtml } from "../html.ts";
import { formatTimesIn } from "./time.ts";

export { formatCountOf } from "../../kernel/text/phrases.ts";

export type MarkTone = "good" | "bad" | "warn" | "info" | "quiet";

export function markLabel(tone: MarkTone, text: string, title?: string): HtmlFragment {
  return safeHtml`<span class="mark ${tone}"${title === undefined ? null : safeHtml` title="${title}"`}>${text}</span>`;
}

export function riskTone(score: number): MarkTone {
  return score >= 75 ? "bad" : score >= 45 ? "warn" : "good";
}

const STEP: Record<StepStatus, [MarkTone, string]> = {
  intended: ["info", "intended"],
  succeeded: ["good", "succeeded"],
  failed: ["quiet", "failed"],
  uncertain: ["warn", "outcome unknown"],
  compensating: ["info", "being undone"],
  compensated: ["quiet", "undone"],
  compensation_failed: ["bad", "undo failed"],
};
export const stepTone = (status: StepStatus): MarkTone => STEP[status][0];
export const stepMark = (status: StepStatus): HtmlFragment => markLabel(...STEP[status]);

const RUN_STATE: Record<RunState, MarkTone> = { "needs attention": "warn", open: "info", settled: "good" };
export const runStateMark = (state: RunState): HtmlFragment => markLabel(RUN_STATE[state], state);

const APPROVAL: Record<ApprovalStatus, MarkTone> = {
  pending: "warn",
  escalated: "bad",
  approved: "good",
  denied: "bad",
  expired: "quiet",
  consumed: "quiet",
};
/** The tooltip shows the name that filters and exports use. */
export const approvalMark = (status: ApprovalStatus): HtmlFragment =>
  markLabel(APPROVAL[status], status === "consumed" ? "approved, used" : status, status);

const EFFECT: Record<ToolEffect, [MarkTone, string]> = {
  read: ["quiet", "reads only; nothing to undo"],
  idempotent: ["quiet", "can be repeated; nothing to undo"],
  reversible: ["good", "can be undone exactly"],
  compensable: ["info", "can be compensated, not undone exactly"],
  irreversible: ["bad", "cannot be undone"],
};
export function effectMark(effect: string | null): HtmlFragment {
  if (effect === null) return markLabel("warn", "no manifest", "no manifest describes this tool");
  const known = Object.hasOwn(EFFECT, effect) ? EFFECT[effect as ToolEffect] : undefined;
  return known === undefined ? markLabel("quiet", effect) : markLabel(known[0], effect, known[1]);
}

const LIFECYCLE: Record<ManifestLifecycle, MarkTone> = {
  draft: "warn",
  approved: "good",
  deprecated: "quiet",
};
export const lifecycleMark = (lifecycle: ManifestLifecycle): HtmlFragment =>
  markLabel(LIFECYCLE[lifecycle], lifecycle);

const PLAN: Record<PlanKind, [MarkTone, string]> = {
  compensate: ["good", "will be undone"],
  skip: ["quiet", "nothing to undo"],
  unrecoverable: ["bad", "cannot be undone"],
  unresolved: ["warn", "outcome unknown"],
  unmanifested: ["warn", "no manifest"],
  defer: ["warn", "has to wait"],
};
export const planMark = (kind: PlanKind): HtmlFragment => markLabel(...PLAN[kind]);

const SEVERITY: Record<string, MarkTone> = { critical: "bad", error: "bad", warning: "warn" };
export const severityMark = (severity: string): HtmlFragment =>
  markLabel(SEVERITY[severity] ?? "info", severity);

const RULING: Record<string, [MarkTone, string]> = {
  allow: ["good", "allow"],
  needs_approval: ["warn", "needs approval"],
  require_approval: ["warn", "require approval"],
  would_block: ["warn", "would block"],
  deny: ["bad", "deny"],
  block: ["bad", "block"],
};
export function rulingMark(ruling: string): HtmlFragment {
  const known = Object.hasOwn(RULING, ruling) ? RULING[ruling] : undefined;
  return markLabel(known?.[0] ?? "info", known?.[1] ?? ruling);
}

/** Drill state of an undo, worded as on the command line and in the API. */
export function proofMark(words: string): HtmlFragment {
  const tone: MarkTone = words.startsWith("proven") ? "good" : words === "failing" ? "bad" : "quiet";
  return safeHtml`<span class="mark ${tone}" title="svc drill tests undos">${formatTimesIn(words)}</span>`;
}
