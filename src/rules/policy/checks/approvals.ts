/** Approval terms: the policy's defaults, the terms of one rule, and the merged terms of several rules. */
import { parseDuration } from "../../../kernel/duration.ts";
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import type { ApprovalShow, ApprovalTerms } from "../finding.ts";
import type { ApprovalTermsDoc, PolicyDoc } from "../schema.ts";

export interface ApprovalSettings extends ApprovalTerms {
  four_eyes: boolean;
  max_open_per_run: number;
  /** Data of a call stored for approvers: its arguments, or only their names. */
  show: ApprovalShow;
  /** Number of requests per actor and window above which notifications become a digest; null for no limit. */
  flood: FloodLimit | null;
}

export interface FloodLimit {
  max: number;
  window_ms: number;
  /** As the author wrote it. */
  window: string;
}

export function compileApprovals(doc: PolicyDoc["approvals"]): ApprovalSettings {
  const builtIn: ApprovalTerms = {
    groups: [],
    quorum: 1,
    ttl_ms: SERVICE_LIMITS.approval_ttl_ms,
    escalate_after_ms: null,
    escalate_to: [],
  };
  return {
    ...compileTerms(doc, builtIn),
    four_eyes: doc?.four_eyes ?? false,
    max_open_per_run: doc?.max_open_per_run ?? SERVICE_LIMITS.open_approvals_per_run,
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
    // An entry cannot waive the signatures that the policy requires.
    ...((doc?.signed ?? false) || defaults.signed ? { signed: true as const } : {}),
  };
}

const SECTIONS = ["rules", "limits", "budgets", "flows", "windows", "freezes"] as const;

/** Whether any approval under this policy has to be signed. */
export function asksSignatures(doc: PolicyDoc): boolean {
  const entries = SECTIONS.flatMap(
    (name): readonly { approval?: ApprovalTermsDoc | undefined }[] => doc[name] ?? [],
  );
  return doc.approvals?.signed === true || entries.some(({ approval }) => approval?.signed === true);
}

/** One of the requirements that a request must meet. */
export interface ApprovalNeed {
  groups: string[];
  quorum: number;
}

export interface MergedApproval extends ApprovalTerms {
  /**
   * All requirements except those that another covers. A request is approved when every requirement has its quorum from
   * its groups. One approver can count for several requirements.
   */
  needs: ApprovalNeed[];
}

/** Merges terms: all groups, the highest quorum, the shortest time, so that every rule gets at least its own terms. */
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
    ...(all.some((terms) => terms.signed) ? { signed: true as const } : {}),
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

/** True if approvals by users with these groups meet every requirement. */
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

/** True if a user with these groups can decide at all. */
export function canDecide(terms: Pick<ApprovalTerms, "groups">, groups: readonly string[]): boolean {
  return terms.groups.length === 0 || groups.some((group) => terms.groups.includes(group));
}
