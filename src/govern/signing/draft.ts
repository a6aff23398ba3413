/** What each kind of decision signs, as it is now. A challenge and the unit that decides build the same payload. */
import { valueHash } from "../../kernel/hash.ts";
import { asJson, type JsonValue } from "../../kernel/json/json.ts";
import { runAtOnce } from "../../kernel/pausable-work.ts";
import { asksSignatures } from "../../rules/policy/checks/approvals.ts";
import type { ApprovalDoc } from "../approvals/approval.ts";
import { buildingCard, cachedCardSummary } from "../cards/card-cache.ts";
import type { StoredValues } from "../cards/stored-values.ts";
import type { EngineCore } from "../core.ts";
import type { GrantTerms } from "../grants/grant.ts";
import type { PlanDoc } from "../plans/plan.ts";
import type { RunDoc } from "../runs/run.ts";
import type { SignedPayload } from "./payload.ts";
import { shownContent } from "./shown.ts";

export type PayloadDraft = Omit<SignedPayload, "nonce">;

const given = <N extends string>(name: N, value: string | null | undefined) =>
  (value == null ? {} : { [name]: value }) as { [K in N]?: string };

/** Whether every decision on the request has to be signed. */
export const isSignatureRequired = (core: EngineCore, { internal }: Pick<ApprovalDoc, "internal">): boolean =>
  internal.signed === true || core.rules().policy.approvals.signed === true;

/** Whether any approval under the active policy has to be signed. */
export const anySignatureRequired = (core: EngineCore): boolean => asksSignatures(core.rules().policy.doc);

type Head = Pick<SignedPayload, "kind" | "decision" | "by">;

function head(core: EngineCore, { kind, decision, by }: Head, run?: RunDoc): PayloadDraft {
  return {
    v: 1,
    ...given("ledger", core.ledger),
    kind,
    decision,
    by,
    ...(run === undefined ? {} : { run_id: run.run_id, actor: run.actor }),
    ...given("tenant", run?.tenant),
    ...given("environment", run?.environment),
    policy_hash: core.rules().policy.hash,
  };
}

interface RequestDecision {
  by: string;
  values: StoredValues | undefined;
  /** For break-glass. */
  reason?: string;
}

/** An approval of a request, or a break-glass with its reason. */
export function approvalDraft(
  core: EngineCore,
  run: RunDoc,
  approval: ApprovalDoc,
  { by, values, reason }: RequestDecision,
): PayloadDraft {
  const { hash, shown_hash } = hashesOf(core, run, approval, values);
  const kind = approval.kind === "compensation" ? "compensation" : "approval";
  return {
    ...head(core, { kind: reason === undefined ? kind : "break_glass", decision: "approve", by }, run),
    id: approval.id,
    tool: approval.tool,
    args_hash: approval.args_hash,
    card_hash: hash,
    shown_hash,
    ...(reason === undefined ? {} : { subject_hash: valueHash(reason) }),
    expires_ms: approval.expires_ms,
  };
}

/** From the cached card if it has them, because a unit of work must not draw a large one. */
function hashesOf(core: EngineCore, run: RunDoc, approval: ApprovalDoc, values: StoredValues | undefined) {
  const rules = core.rules();
  const known = values === undefined ? undefined : cachedCardSummary(rules, run, approval);
  if (known?.shown_hash !== undefined) return { hash: known.hash, shown_hash: known.shown_hash };
  const { judged, hash } = runAtOnce(buildingCard(rules, run, approval, values));
  return { hash, shown_hash: shownContent(run, approval, judged).hash };
}

interface NewCallApproval {
  kind: "offer" | "pre_approval";
  id: string;
  by: string;
  tool: string;
  args_hash: string;
  expires_ms: number;
}

/** An approval of a call that has no request yet. */
export function callDraft(core: EngineCore, run: RunDoc, call: NewCallApproval): PayloadDraft {
  const { kind, id, by, tool, args_hash, expires_ms } = call;
  const decision = kind === "offer" ? "offer" : "approve";
  return { ...head(core, { kind, decision, by }, run), id, tool, args_hash, expires_ms };
}

export function planDraft(
  core: EngineCore,
  run: RunDoc,
  plan: PlanDoc,
  { by, card_hash }: { by: string; card_hash: string },
): PayloadDraft {
  return {
    ...head(core, { kind: "plan", decision: "approve", by }, run),
    id: plan.id,
    card_hash,
    subject_hash: valueHash(planSubject(plan)),
    expires_ms: plan.expires_ms,
  };
}

/** The plan as it is signed: its calls in their order. */
export function planSubject({ id, run_id, reason, calls }: PlanDoc): JsonValue {
  return { id, run_id, reason, calls: calls.map(({ tool, args_hash }) => ({ tool, args_hash })) };
}

interface IssuedTerms {
  id: string;
  by: string;
  expires_ms: number;
}

export function grantDraft(
  core: EngineCore,
  { id, by, expires_ms }: IssuedTerms,
  terms: GrantTerms & { reason: string },
): PayloadDraft {
  const { match, rules, when, args_only, max_uses, budget, irreversible, reason } = terms;
  const limits = { ...(args_only && { args_only }), max_uses, budget, irreversible };
  const subject = asJson({ match, rules, when, ...limits, reason, expires_ms });
  const subject_hash = valueHash(subject);
  return { ...head(core, { kind: "grant", decision: "grant", by }), id, subject_hash, expires_ms };
}

export function delegationDraft(
  core: EngineCore,
  { id, by, expires_ms }: IssuedTerms,
  { to_id, tools, reason }: { to_id: string; tools: string; reason: string },
): PayloadDraft {
  const subject_hash = valueHash({ to_id, tools, reason, expires_ms });
  return { ...head(core, { kind: "delegation", decision: "delegate", by }), id, subject_hash, expires_ms };
}
