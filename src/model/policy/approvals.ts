/** Who must approve: the policy's defaults, the terms of one rule, and the terms of several at once. */
import { parseDuration } from "../../kernel/duration.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { ApprovalShow, ApprovalTerms } from "./finding.ts";
import type { ApprovalTermsDoc, PolicyDoc } from "./schema.ts";

export interface ApprovalSettings extends ApprovalTerms {
  four_eyes: boolean;
  max_open_per_run: number;
  /** What of a call is kept for whoever decides it: its arguments, or their names alone. */
  show: ApprovalShow;
  /** How many requests an actor opens within a window before people are told of them together; null without. */
  flood: FloodLimit | null;
}

export interface FloodLimit {
  max: number;
  window_ms: number;
  /** As it was written. */
  window: string;
}

export function compileApprovals(doc: PolicyDoc["approvals"]): ApprovalSettings {
  const builtIn: ApprovalTerms = {
    groups: [],
    quorum: 1,
    ttl_ms: LIMITS.approval_ttl_ms,
    escalate_after_ms: null,
    escalate_to: [],
  };
  return {
    ...compileTerms(doc, builtIn),
    four_eyes: doc?.four_eyes ?? false,
    max_open_per_run: doc?.max_open_per_run ?? LIMITS.open_approvals_per_run,
    show: doc?.show ?? "arguments",
    flood: doc?.flood === undefined ? null : { ...doc.flood, window_ms: parseDuration(doc.flood.window) },
  };
}

export function compileTerms(doc: ApprovalTermsDoc | undefined, defaults: ApprovalTerms): ApprovalTerms {
  return {
    groups: [...(doc?.groups ?? defaults.groups)],
    quorum: doc?.quorum ?? defaults.quorum,
    ttl_ms: doc?.ttl === undefined ? defaults.ttl_ms : parseDuration(doc.ttl),
    escalate_after_ms:
      doc?.escalate_after === undefined ? defaults.escalate_after_ms : parseDuration(doc.escalate_after),
    escalate_to: [...(doc?.escalate_to ?? defaults.escalate_to)],
  };
}

/** One demand among several that one request must meet. */
export interface ApprovalNeed {
  groups: string[];
  quorum: number;
}

export interface MergedApproval extends ApprovalTerms {
  /**
   * Each demand that was made, without those that another covers. A request is approved when all are
   * met, each by its own number of approvers from its own groups; one person may count towards several.
   */
  needs: ApprovalNeed[];
}

/** All the groups, the highest quorum, the shortest time: no rule gets less than it asked for. */
export function mergeTerms(all: readonly ApprovalTerms[]): MergedApproval {
  const groups = [...new Set(all.flatMap((terms) => terms.groups))];
  const escalations = all.flatMap((terms) =>
    terms.escalate_after_ms === null ? [] : [terms.escalate_after_ms],
  );
  return {
    groups,
    quorum: Math.max(...all.map((terms) => terms.quorum)),
    ttl_ms: Math.min(...all.map((terms) => terms.ttl_ms)),
    escalate_after_ms: escalations.length > 0 ? Math.min(...escalations) : null,
    escalate_to: [...new Set(all.flatMap((terms) => terms.escalate_to))],
    needs: distinctNeeds(all),
  };
}

function distinctNeeds(all: readonly ApprovalTerms[]): ApprovalNeed[] {
  const needs: ApprovalNeed[] = [];
  const covers = (a: ApprovalNeed, b: ApprovalNeed) =>
    a.quorum >= b.quorum &&
    (b.groups.length === 0 || (a.groups.length > 0 && a.groups.every((g) => b.groups.includes(g))));
  for (const { groups, quorum } of all) {
    const need = { groups: [...groups], quorum };
    if (needs.some((other) => covers(other, need))) continue;
    needs.splice(0, needs.length, ...needs.filter((other) => !covers(need, other)), need);
  }
  return needs;
}

/** Whether approvals by people with these groups meet every need. */
export function needsMet(
  needs: readonly ApprovalNeed[],
  approvers: readonly { groups: readonly string[] }[],
): boolean {
  return needs.every(({ groups, quorum }) => {
    const counting = approvers.filter(
      (one) => groups.length === 0 || one.groups.some((group) => groups.includes(group)),
    );
    return counting.length >= quorum;
  });
}

/** Whether a person with these groups may decide at all. */
export function mayDecide(terms: Pick<ApprovalTerms, "groups">, groups: readonly string[]): boolean {
  return terms.groups.length === 0 || groups.some((group) => terms.groups.includes(group));
}
