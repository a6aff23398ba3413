/** Plans: an agent proposes calls before it makes them, and approvers decide them together. */
import * as z from "zod";
import { runInSlices } from "../child-process/event-loop-slices.ts";
import type { EngineCore } from "../govern/core.ts";
import { intentNeeds, type RunFacts } from "../govern/decide/load-facts.ts";
import { decidePlanUnit, type PlanDecisionResult, withdrawPlanUnit } from "../govern/plans/decide-plan.ts";
import { digestRequests, PLAN_STATUSES, type PlanDoc, planShape, planView } from "../govern/plans/plan.ts";
import { type ProposedCall, proposeUnit } from "../govern/plans/propose.ts";
import { rowPages } from "../govern/port/pages.ts";
import type { DocKey, StoreTx } from "../govern/port/store.ts";
import type { TableName } from "../govern/port/tables.ts";
import { type CallerPrincipal, hasRole } from "../govern/roles.ts";
import { loadCountedRun, loadRun } from "../govern/runs/load-run.ts";
import type { RunDoc } from "../govern/runs/run.ts";
import { signatureSchema } from "../govern/signing/payload.ts";
import { carriedMarkKeys } from "../govern/traces/carried.ts";
import { invalidError, notFoundError } from "../kernel/errors.ts";
import type { JsonValue } from "../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import { nullableSchema } from "../rules/nullable-schema.ts";
import { evaluatingPlan } from "../simulate/evaluate-plan.ts";
import type { LiveRun } from "../simulate/sandbox.ts";
import { announceRecords, type ServiceApp } from "./app.ts";
import { shownCardHash } from "./approvals/approvals.ts";
import { seesCard } from "./approvals/cards.ts";
import type { PlanFacts, ShownPlan } from "./approvals/draw-cards.ts";
import { cachePlanCards, loadPlanCards, type PlanCardTasks } from "./approvals/plan-cards.ts";
import { cutPage, positionOf } from "./cursor.ts";
import { proofWordsOf } from "./drills/drill-results.ts";
import { delegationsTo, requireOwnRun, requireRole } from "./pipeline/access.ts";
import { type ApiCaller, defineOperation, JsonText, type ServiceOperation } from "./pipeline/operation.ts";
import { anyJson, boundedText, givenId, noteSchema, pagingFields, runId, toolSchema } from "./schemas.ts";
import { checkGiven, withSigningLink } from "./signing/check-signature.ts";
import { grantSnapshotFor } from "./simulate/jobs.ts";
import { drawCards, precomputeCalls } from "./values/threads.ts";
import { openSandbox } from "./worker/execute.ts";

const plan_id = givenId("pln_<uuid>");

const plannedCall = z.strictObject({
  tool: toolSchema,
  args: anyJson,
  reason: boundedText(SERVICE_LIMITS.reason_chars).optional(),
  depends_on: z.array(z.int().min(0)).max(SERVICE_LIMITS.plan_calls).optional(),
});

export const proposePlan = defineOperation({
  id: "propose_plan",
  summary: "Propose calls for one decision; a plan with a call that would be blocked is denied at once",
  role: "agent",
  input: z.strictObject({
    run_id: runId,
    reason: boundedText(SERVICE_LIMITS.reason_chars),
    calls: z
      .array(plannedCall)
      .min(1, "a plan has at least one call")
      .max(SERVICE_LIMITS.plan_calls, `at most ${SERVICE_LIMITS.plan_calls} calls`),
  }),
  output: planShape,
  errors: { not_found: "unknown run, or another agent's", conflict: "too many plans are open" },
  run_of: ({ run_id }) => run_id,
  async run({ app, principal }, { run_id, reason, calls }) {
    const run = await requireOwnRun(app, principal, run_id);
    assertOrdered(calls.map(({ depends_on }) => depends_on ?? []));
    const planned = calls.map((call) => ({ tool: call.tool, args: call.args as JsonValue }));
    await precomputeCalls(app.core, planned);
    const judged = await judge(app, run, principal, planned);
    const proposed = calls.map((call, i): ProposedCall => {
      const { decision, reasons, risk_score, evaluation } = judged.calls[i]!;
      const { factors = {} as never, score = risk_score } = evaluation?.risk ?? {};
      return {
        ...planned[i]!,
        reason: call.reason ?? reason,
        depends_on: call.depends_on ?? [],
        decision,
        reasons,
        risk_score,
        spec: decision === "needs_approval" ? (evaluation?.approval ?? null) : null,
        because: {
          causes: evaluation?.causes ?? [],
          risk: app.core.rules().policy.risk === null || evaluation === null ? null : { score, factors },
        },
        rule: evaluation?.rules[0] ?? null,
      };
    });
    const { core, openRequests } = app;
    const unit = proposeUnit(core, principal, run_id, { ...judged, reason, calls: proposed });
    const propose = () => core.store.transact(unit);
    const { plan, records } = await (openRequests === undefined
      ? propose()
      : openRequests.around(run, propose));
    announceRecords(core.listeners, records);
    if (plan.status === "pending" && digestRequests(plan).length === 0) core.listeners.planProposed(plan);
    return planView(plan);
  },
});

function assertOrdered(depends: readonly (readonly number[])[]): void {
  for (const [i, steps] of depends.entries()) {
    const wrong = steps.find((step) => step >= i);
    if (wrong !== undefined)
      throw invalidError(
        `calls[${i}].depends_on: ${wrong} is not an earlier call of the plan (${i === 0 ? "the first has none" : `0 to ${i - 1}`}); a plan has no cycles`,
      );
  }
}

/** Evaluates the calls in order as enforce mode would, with the run's current state. */
async function judge(
  { core }: ServiceApp,
  run: RunFacts,
  principal: CallerPrincipal,
  calls: { tool: string; args: JsonValue }[],
) {
  const now_ms = core.env.now();
  const { run_id, actor, acting, tenant, environment, child_of } = run;
  const held = await grantSnapshotFor(
    { core },
    calls.map(({ tool }) => tool),
    actor,
  );
  const live = await liveRun(core, run, principal, calls);
  const facts = { now_ms, environment, storeKey: core.storeKey, held, live };
  const sandbox = await openSandbox(core.rules(), facts);
  return runInSlices(
    evaluatingPlan(
      sandbox,
      { run_id, actor, acting, tenant, environment, counted_run: child_of?.counted_run },
      calls,
      now_ms,
    ),
  );
}

/** Tables with documents that affect the decision on a call. The run's own requests are not included. */
const DECIDING: ReadonlySet<TableName> = new Set([
  "halts",
  "run_tools",
  "idempotency",
  "counters",
  "drills",
  "traces",
  "tenant_traces",
  "earlier_calls",
]);

async function liveRun(
  core: EngineCore,
  run: RunFacts,
  { max_permissions }: CallerPrincipal,
  calls: readonly { tool: string; args: JsonValue }[],
): Promise<LiveRun> {
  const needs = new Map<string, DocKey>();
  for (const { tool, args } of calls)
    for (const key of intentNeeds(core, run, { tool, args, reason: "", depends_on: [] }))
      if (DECIDING.has(key[0])) needs.set(key.join(" "), key);
  const keys = [...needs.values()];
  return core.store.transact({
    needs: [["runs", run.run_id], ...keys],
    run(tx) {
      const own = loadRun(tx, run.run_id);
      const marks = calls.flatMap(({ args }) => carriedMarkKeys(core, tx, own, args));
      const docs = [...keys, ...marks].flatMap((key) => {
        const doc = tx.get(key[0], key[1]);
        return doc === undefined ? [] : [{ key, doc }];
      });
      const { permissions } = own.scope;
      const kill_switch = core.killSwitch();
      return {
        permissions,
        salt: own.salt,
        max_permissions,
        kill_switch,
        docs: [...docs, ...rootOf(tx, own)],
      };
    },
  });
}

/** The root of a child run's tree: the run's counters and followed values are there. */
function rootOf(tx: StoreTx, run: RunDoc): LiveRun["docs"][number][] {
  if (run.child_of === undefined) return [];
  const doc = loadCountedRun(tx, run);
  return [{ key: ["runs", doc.run_id], doc }];
}

const isOwner = (principal: CallerPrincipal, plan: PlanDoc) => plan.internal.principal === principal.id;

export const listPlans = defineOperation({
  id: "list_plans",
  summary: "List plans, newest first; an agent sees its own",
  role: "auditor",
  any_role: true,
  within_tenant: true,
  input: z.strictObject({
    status: z.enum(PLAN_STATUSES).optional(),
    run_id: z.string().optional(),
    ...pagingFields,
  }),
  output: z.strictObject({ plans: z.array(planShape), next_cursor: nullableSchema(z.string()) }),
  async run({ app, principal }, { status, run_id, limit = SERVICE_LIMITS.page_default, cursor }) {
    const sees = (plan: PlanDoc) => hasRole(principal, "auditor") || isOwner(principal, plan);
    const found: { sort: number; key: string; doc: PlanDoc }[] = [];
    const after = positionOf(cursor);
    const query = {
      owner: run_id,
      tag: status,
      order: "desc",
      page: SERVICE_LIMITS.page_max,
      after,
    } as const;
    for await (const rows of rowPages(app.core.store, "plans", query)) {
      found.push(...rows.filter(({ doc }) => sees(doc)));
      if (found.length > limit) break;
    }
    const { page, next } = cutPage(found, limit);
    const plans = page.map(({ doc }) => planView(doc));
    return { plans, next_cursor: next };
  },
});

export const getPlan = defineOperation({
  id: "get_plan",
  summary: "Read a plan; approvers also see the cards that they can decide, and their hash",
  role: "auditor",
  any_role: true,
  within_tenant: true,
  input: z.strictObject({ plan_id }),
  output: {
    text_of: planShape.extend({
      cards: z.array(nullableSchema(z.looseObject({ arguments: z.unknown(), text: z.string() }))).optional(),
      card_hash: z.string().optional(),
    }),
  },
  errors: { not_found: "unknown plan, or one of another agent's run" },
  async run(caller, input): Promise<JsonText<ShownPlan>> {
    const { facts, cards, remember } = await loadPlanTasks(caller, input);
    if (cards === null) return new JsonText(JSON.stringify(facts.view));
    const { summaries, answer } = await drawCards({ cards, answer: { plan: facts } });
    remember(summaries);
    return new JsonText(answer!);
  },
});

/** A plan, and what its cards are drawn from: null if this principal sees none. */
export interface PlanCards extends Pick<PlanCardTasks, "remember"> {
  facts: PlanFacts;
  cards: PlanCardTasks["cards"] | null;
}

async function loadPlanTasks(
  { app, principal }: ApiCaller,
  { plan_id }: { plan_id: string },
): Promise<PlanCards> {
  const plan = await app.core.store.get("plans", plan_id);
  if (plan === undefined || !(hasRole(principal, "auditor") || isOwner(principal, plan)))
    throw notFoundError(`unknown plan ${plan_id}`, "unknown_plan");
  const alive = plan.status === "pending" || plan.status === "approved";
  const seen = alive ? await callsSeen(app, principal, plan) : [];
  const facts = { view: planView(plan), sees: seen };
  const isCardSeen = plan.calls.some(({ approval_id }, i) => approval_id !== null && seen[i]);
  const run = isCardSeen ? await app.core.store.get("runs", plan.run_id) : undefined;
  if (run === undefined) return { facts: { ...facts, salt: "" }, cards: null, remember: () => {} };
  const tasks = await loadPlanCards(app, run, plan, (tool) => proofWordsOf(app.core, tool));
  return { facts: { ...facts, salt: run.salt }, ...tasks };
}

/** The same as `getPlan`, for surfaces that draw the cards themselves. */
export const planCards: ServiceOperation<(typeof getPlan)["input"], PlanCards> = {
  ...getPlan,
  id: "get_plan_cards",
  summary: "Read a plan and what its cards are drawn from",
  run: loadPlanTasks,
};

/**
 * For each call, whether this principal can see its values. For calls that need no decision, the policy's defaults
 * apply.
 */
async function callsSeen(app: ServiceApp, principal: CallerPrincipal, plan: PlanDoc): Promise<boolean[]> {
  const delegations = await delegationsTo(app, principal.name);
  return plan.internal.requests.map((request) => seesCard(app, principal, request, delegations));
}

function announceDecision(app: ServiceApp, { plan, records, refused }: PlanDecisionResult) {
  announceRecords(app.core.listeners, records);
  if (refused !== null) throw refused;
  return planView(plan);
}

const decision = (verb: "approve" | "deny") =>
  defineOperation({
    id: `${verb}_plan`,
    summary: verb === "approve" ? "Approve a plan, with one vote on each of its calls" : "Deny a plan",
    role: "approver",
    role_or_delegate: true,
    within_tenant: true,
    input: z.strictObject({
      plan_id,
      note: noteSchema.optional(),
      card_hash: shownCardHash.optional(),
      signature: signatureSchema.optional(),
    }),
    output: planShape,
    errors: { not_found: "unknown plan", conflict: "already decided, or the cards have changed" },
    async run({ app, principal }: ApiCaller, { plan_id, note, card_hash, signature }) {
      const delegations = await delegationsTo(app, principal.name);
      if (delegations.length === 0) requireRole(principal, "approver");
      // For another tenant's plan, not even its run is disclosed.
      const plan = await app.core.store.get("plans", plan_id);
      if (plan === undefined) throw notFoundError(`unknown plan ${plan_id}`, "unknown_plan");
      if (card_hash !== undefined || signature !== undefined) await cachePlanCards(app, plan);
      return withSigningLink(app, `plans/${plan_id}`, async () => {
        const signed = await checkGiven(app, principal, signature);
        const input = { decision: verb, note: note ?? null, card_hash, signature: signed };
        const unit = decidePlanUnit(app.core, principal, plan_id, input, delegations);
        return announceDecision(app, await app.core.store.transact(unit));
      });
    },
  });

export const approvePlan = decision("approve");
export const denyPlan = decision("deny");

export const withdrawPlan = defineOperation({
  id: "withdraw_plan",
  summary: "Withdraw a plan of your own run",
  role: "agent",
  within_tenant: true,
  input: z.strictObject({ plan_id }),
  output: planShape,
  errors: { not_found: "unknown plan, or one of another agent's run", conflict: "it has ended" },
  async run({ app, principal }, { plan_id }) {
    return announceDecision(
      app,
      await app.core.store.transact(withdrawPlanUnit(app.core, principal, plan_id)),
    );
  },
});
