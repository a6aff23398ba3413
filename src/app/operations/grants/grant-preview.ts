/**
 * What a grant would have covered: the last captured calls that it names, judged again by the rules in force, in
 * the order in which they were made, until it would have been used up.
 */
import { authoritiesFor } from "../../../engine/approvals/authority.ts";
import { policyCall } from "../../../engine/gather.ts";
import { coveringGrant, type GrantInHand } from "../../../engine/grants/coverage.ts";
import { assertMayGive, type Giver } from "../../../engine/grants/give.ts";
import { globMatches } from "../../../kernel/glob.ts";
import type { GrantDoc, GrantTerms } from "../../../model/grant.ts";
import { evaluatePolicy } from "../../../model/policy/evaluate.ts";
import { hasRole, keptOf } from "../../../model/roles.ts";
import type { CaptureDoc } from "../../../port/docs.ts";
import { allRows } from "../../../port/pages.ts";
import type { App } from "../../app.ts";

/** How many captured calls are looked at. */
const LAST = 1_000;
/** Deciding goes on beside it: so long it works before others get their turn. */
const TURN_MS = 10;

interface CoveredCall {
  run_id: string;
  step: number | null;
  tool: string;
  actor: string;
  captured_ms: number;
  decision: CaptureDoc["verdict"];
  rules: string[];
}

export interface GrantPreview {
  /** How many captured calls were looked at. */
  calls: number;
  covered: CoveredCall[];
  /** Ids of the rules that asked for approval of calls that the grant names, its own and others. */
  rules: string[];
}

export async function grantPreview(
  app: App,
  giver: Giver,
  terms: GrantTerms,
  signal: AbortSignal,
): Promise<GrantPreview> {
  assertMayGive(app.core, giver, terms);
  const calls = await lastCalls(app);
  const covered: CoveredCall[] = [];
  const asked = new Set<string>();
  let grant = pretended(giver, terms);
  let since = performance.now();
  for (const call of calls) {
    if (performance.now() - since > TURN_MS) {
      await new Promise(setImmediate);
      signal.throwIfAborted();
      since = performance.now();
    }
    const judged = judge(app, giver, grant, call);
    if (judged === null) continue;
    for (const rule of judged.rules) asked.add(rule);
    if (judged.next === null) continue;
    grant = judged.next;
    const { run_id, step, tool, actor, captured_ms, verdict } = call;
    covered.push({ run_id, step, tool, actor, captured_ms, decision: verdict, rules: judged.rules });
  }
  return { calls: calls.length, covered, rules: [...asked].sort() };
}

/** The oldest first. */
async function lastCalls({ core, capture }: App): Promise<CaptureDoc[]> {
  await capture?.settle(1_000);
  const now = core.env.now();
  const calls: CaptureDoc[] = [];
  for await (const { doc } of allRows(core.store, "captures", { order: "desc" })) {
    if (doc.expires_ms > now) calls.push(doc);
    if (calls.length === LAST) break;
  }
  return calls.reverse();
}

function pretended({ principal }: Giver, terms: GrantTerms): GrantDoc {
  return {
    id: "preview",
    ...terms,
    reason: "",
    by: principal.name,
    created_ms: 0,
    expires_ms: Number.POSITIVE_INFINITY,
    uses: 0,
    spent: 0,
    revoked_ms: null,
    internal: { giver: keptOf(principal), at_the_data: false, delegations: [] },
  };
}

/** The rules that ask for the call, and the grant after it where it would be used; null for a call it does not name. */
function judge(
  { core }: App,
  giver: Giver,
  doc: GrantDoc,
  past: CaptureDoc,
): { rules: string[]; next: GrantDoc | null } | null {
  const { tool, actor, tenant, environment, run_id, args, captured_ms: now } = past;
  if (!globMatches(doc.match.tool, tool) || !globMatches(doc.match.actor, actor)) return null;
  const { policy, manifests } = core.rules();
  const run = { run_id, principal: "", actor, tenant, environment, salt: "" };
  const call = policyCall(run, tool, args, manifests.active(tool) ?? null);
  const { findings, action } = evaluatePolicy(policy, call, now);
  const rules = findings.flatMap(({ stage, action, rule }) =>
    stage === "rule" && action === "require_approval" && rule !== null ? [rule] : [],
  );
  if (action !== "require_approval") return { rules, next: null };
  const facts = { four_eyes: policy.approvals.four_eyes, now: core.env.now(), ...giver };
  const hand: GrantInHand = {
    doc,
    admin: hasRole(giver.principal, "admin"),
    authorities: authoritiesFor({ tool, actor, tenant }, giver.principal, facts),
  };
  const use = coveringGrant([hand], { now, call, policy, principal: "" }, findings);
  return { rules, next: use === null ? null : { ...doc, uses: use.use, spent: use.spent } };
}
