/** Small coloured words: statuses, decisions, effects, counts. Each has its word; colour only repeats it. */
import type { ApprovalStatus } from "../../model/approval.ts";
import type { Effect, Lifecycle } from "../../model/manifest/types.ts";
import type { StepStatus } from "../../model/run.ts";
import type { PlanKind } from "../../rollback/plan.ts";
import { type Html, html } from "../html.ts";

export { plural } from "../../kernel/words.ts";

export type Tone = "good" | "bad" | "warn" | "info" | "quiet";

export function mark(tone: Tone, text: string, title?: string): Html {
  return html`<span class="mark ${tone}"${title === undefined ? null : html` title="${title}"`}>${text}</span>`;
}

export function riskTone(score: number): Tone {
  return score >= 75 ? "bad" : score >= 45 ? "warn" : "good";
}

const STEP: Record<StepStatus, [Tone, string]> = {
  intended: ["info", "intended"],
  succeeded: ["good", "succeeded"],
  failed: ["quiet", "failed"],
  uncertain: ["warn", "outcome unknown"],
  compensating: ["info", "being undone"],
  compensated: ["quiet", "undone"],
  compensation_failed: ["bad", "undo failed"],
};
export const stepTone = (status: StepStatus): Tone => STEP[status][0];
export const stepMark = (status: StepStatus): Html => mark(...STEP[status]);

const APPROVAL: Record<ApprovalStatus, Tone> = {
  pending: "warn",
  escalated: "bad",
  approved: "good",
  denied: "bad",
  expired: "quiet",
  consumed: "quiet",
};
export const approvalMark = (status: ApprovalStatus): Html => mark(APPROVAL[status], status);

const EFFECT: Record<Effect, [Tone, string]> = {
  read: ["quiet", "reads only; nothing to undo"],
  idempotent: ["quiet", "may be repeated; nothing to undo"],
  reversible: ["good", "can be taken back exactly"],
  compensable: ["info", "can be made good, not unmade"],
  irreversible: ["bad", "cannot be undone"],
};
export function effectMark(effect: string | null): Html {
  if (effect === null) return mark("warn", "no manifest", "nobody has said what this tool does");
  const known = Object.hasOwn(EFFECT, effect) ? EFFECT[effect as Effect] : undefined;
  return known === undefined ? mark("quiet", effect) : mark(known[0], effect, known[1]);
}

const LIFECYCLE: Record<Lifecycle, Tone> = { draft: "warn", approved: "good", deprecated: "quiet" };
export const lifecycleMark = (lifecycle: Lifecycle): Html => mark(LIFECYCLE[lifecycle], lifecycle);

const PLAN: Record<PlanKind, [Tone, string]> = {
  compensate: ["good", "will be undone"],
  skip: ["quiet", "nothing to undo"],
  unrecoverable: ["bad", "cannot be undone"],
  unresolved: ["warn", "outcome unknown"],
  unmanifested: ["warn", "no manifest"],
  defer: ["warn", "has to wait"],
};
export const planMark = (kind: PlanKind): Html => mark(...PLAN[kind]);

const SEVERITY: Record<string, Tone> = { critical: "bad", error: "bad", warning: "warn" };
export const severityMark = (severity: string): Html => mark(SEVERITY[severity] ?? "info", severity);

const RULING: Record<string, [Tone, string]> = {
  allow: ["good", "allow"],
  needs_approval: ["warn", "needs approval"],
  require_approval: ["warn", "require approval"],
  would_block: ["warn", "would block"],
  deny: ["bad", "deny"],
  block: ["bad", "block"],
};
export function rulingMark(ruling: string): Html {
  const known = Object.hasOwn(RULING, ruling) ? RULING[ruling] : undefined;
  return mark(known?.[0] ?? "info", known?.[1] ?? ruling);
}

/** What drills say of an undo, in the words that every surface has. */
export function proofMark(words: string): Html {
  const tone: Tone = words.startsWith("proven") ? "good" : words === "failing" ? "bad" : "quiet";
  return mark(tone, words, "svc drill tries undos");
}
