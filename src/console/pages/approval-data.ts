/**
 * What an approver needs to know about a request beyond the request itself: the rule in its own words, what
 * makes it risky, whether it can be undone, and, where calls are captured, its redacted arguments.
 */
import { listApprovals } from "../../app/operations/approvals.ts";
import type { Json } from "../../kernel/json.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { ApprovalView } from "../../model/approval.ts";
import type { Manifest } from "../../model/manifest/types.ts";
import { checkRisk } from "../../model/policy/risk.ts";
import { RISK_FACTORS, type RiskFactor } from "../../model/policy/risk-weights.ts";
import type { Ctx } from "../ctx.ts";

export interface Judgeable {
  approval: ApprovalView;
  /** What the policy says where it asked; null for a score or an undo that asked. */
  rule_reason: string | null;
  risk: { score: number; factors: Record<RiskFactor, number> } | null;
  manifest: Manifest | null;
  /** The arguments as capture kept them; undefined where it kept none. */
  preview: Json | undefined;
}

const RULE_SECTIONS = ["rules", "limits", "budgets", "windows", "freezes"] as const;

/** The requests that somebody can still decide, the oldest first. */
export async function openApprovals(ctx: Ctx): Promise<ApprovalView[]> {
  const limit = LIMITS.page_max;
  const lists = await Promise.all(
    (["pending", "escalated"] as const).map((status) => ctx.call(listApprovals, { status, limit })),
  );
  return lists.flatMap(({ approvals }) => approvals).sort((a, b) => a.requested_ms - b.requested_ms);
}

export async function judgeable(ctx: Ctx, approval: ApprovalView): Promise<Judgeable> {
  const { policy, manifests } = ctx.app.core.rules();
  const manifest = manifests.active(approval.tool) ?? null;
  const entries: { id: string; reason?: string | undefined }[] = RULE_SECTIONS.flatMap((name) => [
    ...(policy.doc[name] ?? []),
  ]);
  const entry = entries.find(({ id }) => id === approval.rule);
  return {
    approval,
    rule_reason: entry?.reason ?? null,
    risk: policy.risk === null ? null : riskNow(ctx, manifest),
    manifest,
    preview: await previewOf(ctx, approval),
  };
}

/** Risk comes from labels alone, so it needs no arguments. */
function riskNow(ctx: Ctx, manifest: Manifest | null) {
  const { score, factors } = checkRisk(ctx.app.core.rules().policy, {
    environment: ctx.app.core.environment,
    effect: manifest?.effect ?? null,
    data_class: manifest?.risk.data_class ?? null,
    blast_radius: manifest?.risk.blast_radius ?? null,
  });
  return { score, factors };
}

const FACTOR_LABELS: Record<RiskFactor, string> = {
  effect: "effect",
  blast_radius: "blast radius",
  data_class: "data class",
  environment: "environment",
};

/** The labels that added points, the heaviest first. */
export function heaviest(factors: Record<RiskFactor, number>): { label: string; points: number }[] {
  return RISK_FACTORS.filter((factor) => factors[factor] > 0)
    .map((factor) => ({ label: FACTOR_LABELS[factor], points: factors[factor] }))
    .sort((a, b) => b.points - a.points);
}

const MOST_CAPTURES = 200;

/**
 * The captured call that asked for this very request: its reasons name the request, so that nobody is ever
 * shown the arguments of another call.
 */
async function previewOf(ctx: Ctx, approval: ApprovalView): Promise<Json | undefined> {
  const { settings, core } = ctx.app;
  if (!settings.capture.enabled || approval.kind !== "call") return undefined;
  const rows = await core.store.list("captures", {
    owner: approval.run_id,
    tag: approval.tool,
    from: approval.requested_ms,
    limit: MOST_CAPTURES,
  });
  const names = ` ${approval.id} `;
  const found = rows.find(
    ({ doc }) => doc.expires_ms > core.env.now() && doc.reasons.some((reason) => reason.includes(names)),
  );
  return found?.doc.args;
}
