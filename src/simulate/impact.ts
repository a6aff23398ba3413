/** Impact preview of one call: the current decision, the resources it affects, the required approvers, and the undo. */
import { policyCall } from "../govern/decide/load-facts.ts";
import type { JsonValue } from "../kernel/json/json.ts";
import type { BlastRadius, ManifestLifecycle, ToolEffect, ToolManifest } from "../rules/manifest/types.ts";
import type { ApprovalNeed } from "../rules/policy/checks/approvals.ts";
import type { RiskFactor } from "../rules/policy/checks/default-weights.ts";
import type { PreviewDecision } from "./recorded-call.ts";
import { defaultAssumptions, listCauses, type SandboxDecision, type SandboxEngine } from "./sandbox.ts";

interface ImpactInput {
  tool: string;
  args: JsonValue;
  actor: string;
  acting?: readonly string[] | undefined;
  tenant: string | null;
  environment: string | null;
}

export interface ImpactReport {
  tool: string;
  actor: string;
  decision: PreviewDecision;
  reasons: string[];
  /** Alternatives for the agent, from the policy's hints. */
  hints: string[];
  /** Deciding entries, such as `rule big-refunds` or `limit mail-rate`. */
  by: string[];
  risk: { score: number; factors: Record<RiskFactor, number> };
  owner: string | null;
  labels: ImpactLabels;
  /** Tools that must have succeeded earlier in the run; the preview assumes that they have. */
  requires: string[];
  approval: ImpactApproval | null;
  rollback: RollbackOutlook;
  warnings: string[];
}

/** Labels of the manifest, including custom ones. */
interface ImpactLabels {
  effect: ToolEffect | null;
  data_class: string | null;
  blast_radius: BlastRadius | null;
  lifecycle: ManifestLifecycle | null;
  version: string | null;
  [label: string]: JsonValue;
}

interface ImpactApproval {
  groups: string[];
  quorum: number;
  /** One for each entry that requires approval, with its groups and quorum. */
  needs: ApprovalNeed[];
}

export const ROLLBACK_OUTLOOKS = ["nothing to undo", "can be undone", "cannot be undone", "unknown"] as const;

interface RollbackOutlook {
  outlook: (typeof ROLLBACK_OUTLOOKS)[number];
  undo_tool: string | null;
  kind: "inverse" | "compensation" | null;
  residue: string[];
  verified: boolean;
  needs_approval: boolean;
}

const RUN = "preview";

export function previewCall(sandbox: SandboxEngine, input: ImpactInput, now_ms: number): ImpactReport {
  const { tool, args, actor, acting } = input;
  const manifest = sandbox.rules.manifests.active(tool) ?? null;
  const { tenant, environment } = input;
  sandbox.open({ run_id: RUN, actor, acting, tenant, environment, mode: "enforce" });
  const judgement = sandbox.judge({
    ...defaultAssumptions(RUN, 0),
    tool,
    args,
    depends_on: [],
    at_ms: now_ms,
    prerequisites: new Set(manifest?.requires ?? []),
    dry: true,
    forget: false,
    explain: () => true,
  });
  const { risk, approval, hints } = judgement.evaluation!;
  return {
    tool,
    actor,
    decision: judgement.ruling,
    reasons: judgement.reasons,
    hints,
    by: listCauses(judgement),
    risk: { score: risk.score, factors: risk.factors },
    owner: manifest?.owner ?? null,
    labels: labelsOf(manifest),
    requires: [...(manifest?.requires ?? [])],
    approval:
      approval === null || judgement.ruling === "allow"
        ? null
        : { groups: approval.groups, quorum: approval.quorum, needs: approval.needs },
    rollback: outlookOf(manifest),
    warnings: [...warningsFor(manifest, judgement), ...flowWarnings(sandbox, input, judgement)],
  };
}

/** Warns about flows: the preview assumes no earlier call, and an earlier call could change the decision. */
function flowWarnings(
  { rules }: SandboxEngine,
  { tool, args }: ImpactInput,
  { result }: SandboxDecision,
): string[] {
  const call = policyCall(result.run, tool, args, result.manifest);
  return rules.policy.flows.restricting.matching(call).map(({ id, action, within, carries, when }) => {
    const whose = carries ? "in any run of the tenant" : "by the same actor";
    const where = within === "run" ? "in the same run" : `${whose} within ${within}`;
    const what = action === "deny" ? "denied" : "held for approval";
    const carried = carries ? ", if an argument carries a value of its result" : "";
    const compared = when === null ? "" : ", if the two calls compare as the flow says";
    return `flow ${id}: ${what} after a call that triggers it ${where}${carried}${compared}`;
  });
}

function labelsOf(manifest: ToolManifest | null): ImpactLabels {
  return {
    ...manifest?.risk,
    effect: manifest?.effect ?? null,
    data_class: manifest?.risk.data_class ?? null,
    blast_radius: manifest?.risk.blast_radius ?? null,
    lifecycle: manifest?.lifecycle ?? null,
    version: manifest?.version ?? null,
  };
}

function outlookOf(manifest: ToolManifest | null): RollbackOutlook {
  const none = { undo_tool: null, kind: null, residue: [], verified: false, needs_approval: false };
  if (manifest === null) return { outlook: "unknown", ...none };
  const { compensation, verification, effect } = manifest;
  if (compensation !== null) {
    return {
      outlook: "can be undone",
      undo_tool: compensation.tool,
      kind: compensation.kind,
      residue: [...compensation.residue],
      verified: verification !== null,
      needs_approval: compensation.requires_approval,
    };
  }
  return { outlook: effect === "irreversible" ? "cannot be undone" : "nothing to undo", ...none };
}

function warningsFor(manifest: ToolManifest | null, { evaluation }: SandboxDecision): string[] {
  const warnings: string[] = [];
  if (manifest === null) warnings.push("unclassified tool: it has no manifest");
  if (manifest?.effect === "irreversible") warnings.push("irreversible effect: it cannot be undone");
  if (manifest?.lifecycle === "draft")
    warnings.push("draft manifest: it does not apply in enforce mode until it is approved");
  if (manifest?.lifecycle === "deprecated")
    warnings.push("deprecated manifest: it still works, but should be replaced");
  if (manifest?.compensation && manifest.verification === null)
    warnings.push("unverified undo: no read-back is declared, so its effect is not checked");
  return [...warnings, ...(evaluation?.warnings ?? [])];
}
