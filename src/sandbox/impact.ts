/** Impact preview: what one call would be answered now, what it touches, who is asked, and how it is undone. */
import { policyCall } from "../engine/gather.ts";
import type { Json } from "../kernel/json.ts";
import type { BlastRadius, Effect, Lifecycle, Manifest } from "../model/manifest/types.ts";
import type { ApprovalNeed } from "../model/policy/approvals.ts";
import type { RiskFactor } from "../model/policy/risk-weights.ts";
import type { Ruling } from "./past-call.ts";
import { assumeNothing, causesOf, type Judgement, type Sandbox } from "./sandbox.ts";

interface ImpactInput {
  tool: string;
  args: Json;
  actor: string;
  tenant: string | null;
  environment: string | null;
}

export interface ImpactReport {
  tool: string;
  actor: string;
  decision: Ruling;
  reasons: string[];
  /** What the agent can do instead, where the policy says so. */
  hints: string[];
  /** What decided: `rule big-refunds`, `limit mail-rate`. */
  by: string[];
  risk: { score: number; factors: Record<RiskFactor, number> };
  owner: string | null;
  labels: ImpactLabels;
  /** Tools that must have succeeded in the run before; here they are taken to have. */
  requires: string[];
  approval: ImpactApproval | null;
  rollback: RollbackOutlook;
  warnings: string[];
}

/** The manifest's labels, free ones included. */
interface ImpactLabels {
  effect: Effect | null;
  data_class: string | null;
  blast_radius: BlastRadius | null;
  lifecycle: Lifecycle | null;
  version: string | null;
  [label: string]: Json;
}

interface ImpactApproval {
  groups: string[];
  quorum: number;
  /** Where several entries ask: each with its own groups and number. */
  needs: ApprovalNeed[];
}

export const OUTLOOKS = ["nothing to undo", "can be undone", "cannot be undone", "unknown"] as const;

interface RollbackOutlook {
  outlook: (typeof OUTLOOKS)[number];
  undo_tool: string | null;
  kind: "inverse" | "compensation" | null;
  residue: string[];
  verified: boolean;
  needs_approval: boolean;
}

const RUN = "preview";

export function previewCall(sandbox: Sandbox, input: ImpactInput, now_ms: number): ImpactReport {
  const { tool, args, actor } = input;
  const manifest = sandbox.rules.manifests.active(tool) ?? null;
  const { tenant, environment } = input;
  sandbox.open({ run_id: RUN, actor, tenant, environment, mode: "enforce" });
  const judgement = sandbox.judge({
    ...assumeNothing(RUN, 0),
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
    by: causesOf(judgement),
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

/** Nothing came before the call here; what an earlier one would change is said. */
function flowWarnings({ rules }: Sandbox, { tool, args }: ImpactInput, { result }: Judgement): string[] {
  const call = policyCall(result.run, tool, args, result.manifest);
  return rules.policy.flows.restricting.matching(call).map(({ id, action, within }) => {
    const where = within === "run" ? "in the same run" : `by the same actor within ${within}`;
    const what = action === "deny" ? "denied" : "held for approval";
    return `flow ${id}: ${what} after a call that sets it off ${where}`;
  });
}

function labelsOf(manifest: Manifest | null): ImpactLabels {
  return {
    ...manifest?.risk,
    effect: manifest?.effect ?? null,
    data_class: manifest?.risk.data_class ?? null,
    blast_radius: manifest?.risk.blast_radius ?? null,
    lifecycle: manifest?.lifecycle ?? null,
    version: manifest?.version ?? null,
  };
}

function outlookOf(manifest: Manifest | null): RollbackOutlook {
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

function warningsFor(manifest: Manifest | null, { evaluation }: Judgement): string[] {
  const warnings: string[] = [];
  if (manifest === null) warnings.push("unclassified tool: no manifest says what it does");
  if (manifest?.effect === "irreversible") warnings.push("irreversible effect: nothing can take it back");
  if (manifest?.lifecycle === "draft")
    warnings.push("draft manifest: it does not count in enforce mode until it is approved");
  if (manifest?.lifecycle === "deprecated")
    warnings.push("deprecated manifest: it still works and is to be replaced");
  if (manifest?.compensation && manifest.verification === null)
    warnings.push("unverified undo: no read-back is declared, so nobody checks that it took effect");
  return [...warnings, ...(evaluation?.warnings ?? [])];
}
