/**
 * Previews a grant: evaluates the latest captured calls that it matches against the active rules, in call order, until
 * the grant would be used up.
 */
import * as z from "zod";
import { authoritiesFor } from "../../govern/approvals/authority.ts";
import { policyCall } from "../../govern/decide/load-facts.ts";
import { isExpired } from "../../govern/expiry.ts";
import { findCoveringGrant, type ResolvedGrant } from "../../govern/grants/coverage.ts";
import { assertCanGrant, type GrantGiver } from "../../govern/grants/give.ts";
import type { GrantDoc, GrantTerms } from "../../govern/grants/grant.ts";
import type { CaptureDoc } from "../../govern/port/docs.ts";
import { allRows } from "../../govern/port/pages.ts";
import { hasRole, toStoredPrincipal } from "../../govern/roles.ts";
import { globMatches } from "../../kernel/text/glob.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import { evaluatePolicy } from "../../rules/policy/evaluate.ts";
import { PREVIEW_DECISIONS } from "../../simulate/recorded-call.ts";
import type { ServiceApp } from "../app.ts";

/** Number of captured calls to evaluate. */
const LAST = 1_000;
/** Longest work before other requests get their turn. */
const TURN_MS = 10;

export const grantPreviewShape = z.strictObject({
  /** Number of captured calls evaluated. */
  calls: z.int(),
  covered: z.array(
    z.strictObject({
      run_id: z.string(),
      step: nullableSchema(z.int()),
      tool: z.string(),
      actor: z.string(),
      captured_ms: z.int(),
      decision: z.enum(PREVIEW_DECISIONS),
      rules: z.array(z.string()),
    }),
  ),
  /** Ids of the rules that required approval for matching calls, covered by the grant or not. */
  rules: z.array(z.string()),
});

type GrantPreview = z.output<typeof grantPreviewShape>;
type CoveredCall = GrantPreview["covered"][number];

export async function grantPreview(
  app: ServiceApp,
  giver: GrantGiver,
  terms: GrantTerms,
  signal: AbortSignal,
): Promise<GrantPreview> {
  assertCanGrant(app.core, giver, terms);
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

/** Oldest first. */
async function lastCalls({ core, capture }: ServiceApp): Promise<CaptureDoc[]> {
  await capture?.settle(1_000);
  const now = core.env.now();
  const calls: CaptureDoc[] = [];
  for await (const { doc } of allRows(core.store, "captures", { order: "desc" })) {
    if (!isExpired(doc, now)) calls.push(doc);
    if (calls.length === LAST) break;
  }
  return calls.reverse();
}

function pretended({ principal }: GrantGiver, terms: GrantTerms): GrantDoc {
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
    internal: { giver: toStoredPrincipal(principal), at_the_data: false, delegations: [] },
  };
}

/**
 * Rules that require approval for the call, and the grant after its use, if used. Null for a call that does not match.
 */
function judge(
  { core }: ServiceApp,
  giver: GrantGiver,
  doc: GrantDoc,
  past: CaptureDoc,
): { rules: string[]; next: GrantDoc | null } | null {
  const { tool, actor, acting, tenant, environment, run_id, args, captured_ms: now } = past;
  if (!globMatches(doc.match.tool, tool) || !globMatches(doc.match.actor, actor)) return null;
  const { policy, manifests } = core.rules();
  const run = { run_id, principal: "", actor, acting, tenant, environment, salt: "" };
  const call = policyCall(run, tool, args, manifests.active(tool) ?? null);
  const { findings, action } = evaluatePolicy(policy, call, now);
  const rules = findings.flatMap(({ stage, action, rule }) =>
    stage === "rule" && action === "require_approval" && rule !== null ? [rule] : [],
  );
  if (action !== "require_approval") return { rules, next: null };
  const facts = { four_eyes: policy.approvals.four_eyes, now: core.env.now(), ...giver };
  const hand: ResolvedGrant = {
    doc,
    admin: hasRole(giver.principal, "admin"),
    authorities: authoritiesFor({ tool, actor, tenant }, giver.principal, facts),
  };
  const use = findCoveringGrant([hand], { now, call, policy, principal: "" }, findings);
  return { rules, next: use === null ? null : { ...doc, uses: use.use, spent: use.spent } };
}
