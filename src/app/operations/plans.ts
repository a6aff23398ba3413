/** Plans: an agent proposes calls before it makes them, and people decide them together. */
import * as z from "zod";
import { rememberedCard } from "../../engine/approvals/made-cards.ts";
import { closingWords } from "../../engine/closing.ts";
import type { Core } from "../../engine/core.ts";
import { intentNeeds, type RunFacts } from "../../engine/gather.ts";
import { learningCalls } from "../../engine/learn-values.ts";
import { loadRun } from "../../engine/load-run.ts";
import {
  decidePlanUnit,
  makingPlanCards,
  type PlanDecided,
  withdrawPlanUnit,
} from "../../engine/plans/decide-plan.ts";
import { type ProposedCall, proposeUnit } from "../../engine/plans/propose.ts";
import { invalid, notFound } from "../../kernel/errors.ts";
import type { Json } from "../../kernel/json.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { ApprovalDoc } from "../../model/approval.ts";
import type { CardFacts } from "../../model/card/facts.ts";
import { callText } from "../../model/card/lines.ts";
import type { ApprovalValues, CardSurroundings, JudgedCard } from "../../model/card/types.ts";
import { withPlainMasks } from "../../model/mask.ts";
import { PLAN_STATUSES, type PlanDoc, type PlanView, planView, toldTogether } from "../../model/plan.ts";
import { hasRole, type Principal } from "../../model/roles.ts";
import { rowPages } from "../../port/pages.ts";
import type { Key } from "../../port/store.ts";
import type { TableName } from "../../port/tables.ts";
import { doAnyInTurns, doInTurns, nextTurn } from "../../process/turns.ts";
import { judgingPlan } from "../../sandbox/judge-plan.ts";
import type { LiveRun } from "../../sandbox/sandbox.ts";
import { type App, announce } from "../app.ts";
import { delegationsTo, ownRun, requireRole } from "../door/access.ts";
import { type Caller, operation } from "../door/operation.ts";
import { openSandbox } from "../sandbox/work.ts";
import { seesCard } from "./approvals/cards.ts";
import { shownCardHash } from "./approvals.ts";
import { cutPage, positionOf } from "./cursor.ts";
import { proofWordsOf } from "./drills/proofs.ts";
import { anyJson, decidedFields, givenId, note, nullable, paging, runId, text, tool } from "./schemas.ts";
import { heldGrants } from "./simulate/jobs.ts";
import { ruling } from "./simulate.ts";

const plan_id = givenId("pln_<uuid>");

const plannedCall = z.strictObject({
  tool,
  args: anyJson,
  reason: text(LIMITS.reason_chars).optional(),
  depends_on: z.array(z.int().min(0)).max(LIMITS.plan_calls).optional(),
});

const planShape = z.strictObject({
  id: z.string(),
  run_id: z.string(),
  actor: z.string(),
  tenant: nullable(z.string()),
  reason: z.string(),
  status: z.enum(PLAN_STATUSES),
  calls: z.array(
    z.strictObject({
      tool: z.string(),
      args_hash: z.string(),
      arg_names: z.array(z.string()),
      reason: z.string(),
      depends_on: z.array(z.int()),
      decision: ruling,
      reasons: z.array(z.string()),
      risk_score: z.int(),
      approval_id: nullable(z.string()),
    }),
  ),
  fully_reversible: z.boolean(),
  irreversible: z.array(z.string()),
  residue: z.array(z.string()),
  requested_ms: z.int(),
  expires_ms: z.int(),
  ...decidedFields,
  next: z.int(),
});

export const proposePlan = operation({
  id: "propose_plan",
  summary:
    "Propose calls before making them; one decision approves those that need it, in this order. A plan with a call that would be refused is denied at once",
  role: "agent",
  input: z.strictObject({
    run_id: runId,
    reason: text(LIMITS.reason_chars),
    calls: z
      .array(plannedCall)
      .min(1, "a plan has at least one call")
      .max(LIMITS.plan_calls, `at most ${LIMITS.plan_calls} calls`),
  }),
  output: planShape,
  errors: { not_found: "unknown run, or another agent's", conflict: "too many plans are under way" },
  run_of: ({ run_id }) => run_id,
  async run({ app, principal }, { run_id, reason, calls }) {
    const run = await ownRun(app, principal, run_id);
    assertOrdered(calls.map(({ depends_on }) => depends_on ?? []));
    const planned = calls.map((call) => ({ tool: call.tool, args: call.args as Json }));
    await doAnyInTurns(learningCalls(app.core, planned));
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
    announce(core.listeners, records);
    if (plan.status === "pending" && toldTogether(plan).length === 0) core.listeners.planProposed(plan);
    return planView(plan);
  },
});

function assertOrdered(depends: readonly (readonly number[])[]): void {
  for (const [i, steps] of depends.entries()) {
    const wrong = steps.find((step) => step >= i);
    if (wrong !== undefined)
      throw invalid(
        `calls[${i}].depends_on: ${wrong} is not an earlier call of the plan (${i === 0 ? "the first has none" : `0 to ${i - 1}`}); a plan has no cycles`,
      );
  }
}

/** As enforce would judge the calls, one after the other, on what the run has and what stands around it now. */
async function judge(
  { core }: App,
  run: RunFacts,
  principal: Principal,
  calls: { tool: string; args: Json }[],
) {
  const now_ms = core.env.now();
  const { run_id, actor, tenant, environment } = run;
  const held = await heldGrants(
    { core },
    calls.map(({ tool }) => tool),
    actor,
  );
  const live = await liveRun(core, run, principal, calls);
  const facts = { now_ms, environment, storeKey: core.storeKey, held, live };
  const sandbox = await openSandbox(core.rules(), facts);
  return doInTurns(judgingPlan(sandbox, { run_id, actor, tenant, environment }, calls, now_ms));
}

/** Tables of which a call of the run reads documents that decide about it; its own requests are not among them. */
const DECIDING: ReadonlySet<TableName> = new Set(["halts", "run_tools", "idempotency", "counters", "drills"]);

async function liveRun(
  core: Core,
  run: RunFacts,
  { max_permissions }: Principal,
  calls: readonly { tool: string; args: Json }[],
): Promise<LiveRun> {
  const needs = new Map<string, Key>();
  for (const { tool, args } of calls)
    for (const key of intentNeeds(core, run, { tool, args, reason: "", depends_on: [] }))
      if (DECIDING.has(key[0])) needs.set(key.join(" "), key);
  const keys = [...needs.values()];
  return core.store.transact({
    needs: [["runs", run.run_id], ...keys],
    run(tx) {
      const docs = keys.flatMap((key) => {
        const doc = tx.get(key[0], key[1]);
        return doc === undefined ? [] : [{ key, doc }];
      });
      const { permissions } = loadRun(tx, run.run_id).scope;
      return { permissions, max_permissions, kill_switch: core.killSwitch(), docs };
    },
  });
}

const isOwner = (principal: Principal, plan: PlanDoc) => plan.internal.principal === principal.id;

export const listPlans = operation({
  id: "list_plans",
  summary: "List plans, newest first; an agent sees its own",
  role: "auditor",
  any_role: true,
  within_tenant: true,
  input: z.strictObject({
    status: z.enum(PLAN_STATUSES).optional(),
    run_id: z.string().optional(),
    ...paging,
  }),
  output: z.strictObject({ plans: z.array(planShape), next_cursor: nullable(z.string()) }),
  async run({ app, principal }, { status, run_id, limit = LIMITS.page_default, cursor }) {
    const sees = (plan: PlanDoc) => hasRole(principal, "auditor") || isOwner(principal, plan);
    const found: { sort: number; key: string; doc: PlanDoc }[] = [];
    const after = positionOf(cursor);
    const query = { owner: run_id, tag: status, order: "desc", page: LIMITS.page_max, after } as const;
    for await (const rows of rowPages(app.core.store, "plans", query)) {
      found.push(...rows.filter(({ doc }) => sees(doc)));
      if (found.length > limit) break;
    }
    const { page, next } = cutPage(found, limit);
    const plans = page.map(({ doc }) => planView(doc));
    return { plans, next_cursor: next };
  },
});

export const getPlan = operation({
  id: "get_plan",
  summary:
    "Read a plan; whoever may decide it sees the cards of calls that they may decide, and the hash over all",
  role: "auditor",
  any_role: true,
  within_tenant: true,
  input: z.strictObject({ plan_id }),
  output: planShape.extend({
    cards: z.array(nullable(z.looseObject({ arguments: z.unknown(), text: z.string() }))).optional(),
    card_hash: z.string().optional(),
  }),
  errors: { not_found: "unknown plan, or one of another agent's run" },
  async run({ app, principal }, { plan_id }): Promise<PlanShown> {
    const plan = await app.core.store.get("plans", plan_id);
    if (plan === undefined || !(hasRole(principal, "auditor") || isOwner(principal, plan)))
      throw notFound(`unknown plan ${plan_id}`, "unknown_plan");
    const alive = plan.status === "pending" || plan.status === "approved";
    const seen = alive ? await callsSeen(app, principal, plan) : [];
    if (!plan.calls.some(({ approval_id }, i) => approval_id !== null && seen[i])) return planView(plan);
    const run = await app.core.store.get("runs", plan.run_id);
    if (run === undefined) return planView(plan);
    const values = await valuesOf(app, plan);
    const made = await doInTurns(makingPlanCards(app.core.rules(), run, plan, values));
    const cards: PlanShown["cards"] = [];
    for (const [i, { judged, facts }] of made.cards.entries()) {
      cards.push(seen[i] ? await plannedCard(app, judged, facts, values[i]) : null);
      await nextTurn();
    }
    return { ...planView(plan), cards, card_hash: made.card_hash };
  },
});

function valuesOf({ core }: App, { internal }: PlanDoc) {
  return Promise.all(internal.requests.map(({ id }) => core.store.get("approval_values", id)));
}

/** Makes the cards of a plan before it is decided by them, so that the decision itself need not. */
async function learnPlanCards(app: App, plan: PlanDoc): Promise<void> {
  const { core } = app;
  const run = await core.store.get("runs", plan.run_id);
  if (run === undefined) return;
  const isKnown = (request: ApprovalDoc) => rememberedCard(core.rules(), run, request) !== undefined;
  if (plan.internal.requests.every(isKnown)) return;
  await doInTurns(makingPlanCards(core.rules(), run, plan, await valuesOf(app, plan)));
}

async function plannedCard(
  { core }: App,
  judged: JudgedCard,
  { call: { tool }, values: shown }: CardFacts,
  values: ApprovalValues | undefined,
): Promise<PlannedCard> {
  const around = {
    proof: await proofWordsOf(core, tool),
    closes: closingWords(core.rules().manifests.active(tool), values),
  };
  return {
    tool,
    ...judged,
    arguments: shown === undefined ? null : withPlainMasks(shown.args),
    ...around,
    text: callText(judged, around),
  };
}

/** A plan, with the cards for whoever may decide it; null stands for a call that others decide. */
export interface PlanShown extends PlanView {
  cards?: (PlannedCard | null)[];
  card_hash?: string;
}

interface PlannedCard extends JudgedCard, Pick<CardSurroundings, "proof" | "closes"> {
  tool: string;
  arguments: Json;
  text: string;
}

/**
 * Of each call, whether its values are for this principal's eyes: those that need no decision are judged as the
 * policy's defaults say.
 */
async function callsSeen(app: App, principal: Principal, plan: PlanDoc): Promise<boolean[]> {
  const delegations = await delegationsTo(app, principal.name);
  return plan.internal.requests.map((request) => seesCard(app, principal, request, delegations));
}

function told(app: App, { plan, records, refused }: PlanDecided) {
  announce(app.core.listeners, records);
  if (refused !== null) throw refused;
  return planView(plan);
}

const decision = (verb: "approve" | "deny") =>
  operation({
    id: `${verb}_plan`,
    summary: verb === "approve" ? "Approve a plan: your one vote on each of its calls" : "Deny a plan",
    role: "approver",
    role_or_delegate: true,
    within_tenant: true,
    input: z.strictObject({ plan_id, note: note.optional(), card_hash: shownCardHash.optional() }),
    output: planShape,
    errors: { not_found: "unknown plan", conflict: "already decided, or the cards have changed" },
    async run({ app, principal }: Caller, { plan_id, note, card_hash }) {
      const delegations = await delegationsTo(app, principal.name);
      if (delegations.length === 0) requireRole(principal, "approver");
      // Of another tenant's plan not even its run is told.
      const plan = await app.core.store.get("plans", plan_id);
      if (plan === undefined) throw notFound(`unknown plan ${plan_id}`, "unknown_plan");
      if (card_hash !== undefined) await learnPlanCards(app, plan);
      const input = { decision: verb, note: note ?? null, card_hash };
      const unit = decidePlanUnit(app.core, principal, plan_id, input, delegations);
      return told(app, await app.core.store.transact(unit));
    },
  });

export const approvePlan = decision("approve");
export const denyPlan = decision("deny");

export const withdrawPlan = operation({
  id: "withdraw_plan",
  summary: "Take back a plan of your own run",
  role: "agent",
  within_tenant: true,
  input: z.strictObject({ plan_id }),
  output: planShape,
  errors: { not_found: "unknown plan, or one of another agent's run", conflict: "it has ended" },
  async run({ app, principal }, { plan_id }) {
    return told(app, await app.core.store.transact(withdrawPlanUnit(app.core, principal, plan_id)));
  },
});
