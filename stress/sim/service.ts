/** The real engine on a real store, behind the same actions as the model. */
import { decideUnit, expireOrEscalateUnit, withdrawUnit } from "../../src/govern/approvals/decide-request.ts";
import { delegateUnit } from "../../src/govern/approvals/delegations.ts";
import { type EngineCore, silentListeners } from "../../src/govern/core.ts";
import { intentUnit } from "../../src/govern/decide/intent.ts";
import { outcomeUnit, resolveUnit } from "../../src/govern/decide/outcome.ts";
import { giveGrantUnit, revokeGrantUnit } from "../../src/govern/grants/give.ts";
import { haltUnit, resumeUnit } from "../../src/govern/halts/halts.ts";
import { decidePlanUnit, withdrawPlanUnit } from "../../src/govern/plans/decide-plan.ts";
import { type ProposedCall, proposeUnit } from "../../src/govern/plans/propose.ts";
import type { StateStore } from "../../src/govern/port/store.ts";
import type { CallerPrincipal, StoredPrincipal } from "../../src/govern/roles.ts";
import { newRun, openRunUnit } from "../../src/govern/runs/open-run.ts";
import type { RuntimeEnv } from "../../src/kernel/env.ts";
import { SvcError } from "../../src/kernel/errors.ts";
import { SERVICE_LIMITS } from "../../src/kernel/limits.ts";
import { SilenceWatch } from "../../src/kernel/silence-watch.ts";
import type { LedgerRecord } from "../../src/ledger/record.ts";
import { executeRollback } from "../../src/rollback/undo/execute.ts";
import { mergeTerms } from "../../src/rules/policy/checks/approvals.ts";
import { principal } from "../../test/support/engine.ts";
import { type FakeEnv, fakeEnv } from "../../test/support/env.ts";
import { type Action, PEOPLE, type PlannedTool, type Said } from "./actions.ts";
import { LARGE } from "./model.ts";
import { RULES } from "./rules.ts";

const REFUSALS: ReadonlySet<string> = new Set(["conflict", "forbidden", "invalid"]);
const LOAN_MS = 20 * 86_400_000;
const NOTHING: Said = { answer: "nothing", events: [] };
const at = <T>(list: readonly T[], index: number): T | undefined => list[index % Math.max(1, list.length)];
const eventsOf = (records: readonly LedgerRecord[]): string[] => records.map(({ event }) => event);

interface PlannedCall {
  tool: PlannedTool;
  arg: number;
}

/** Gives the store; after a crash it gives another handle on the same data. */
export interface Handle {
  store(): StateStore;
  crash(): Promise<void>;
}

export class Service {
  readonly runs: { id: string; agent: CallerPrincipal; steps: number }[] = [];
  readonly requests: string[] = [];
  readonly grants: string[] = [];
  readonly plans: { id: string; run: number; calls: PlannedCall[] }[] = [];
  readonly halts: string[] = [];
  private readonly label: string;
  private readonly handle: Handle;
  private readonly env: FakeEnv;
  private readonly agents: readonly CallerPrincipal[];
  private readonly people: CallerPrincipal[];
  private readonly began: number;
  private core: EngineCore;

  /** Everything of a history carries its label, so that several may share a store. */
  constructor(label: string, seed: number, handle: Handle) {
    this.label = label;
    this.handle = handle;
    this.env = fakeEnv({ seed });
    this.began = this.env.now();
    this.agents = [principal(`${label}-a`), principal(`${label}-b`)];
    this.people = PEOPLE.map((name, i) => principal(`${label}-${name}`, i < 2 ? "approver" : "auditor"));
    this.core = this.newCore();
  }

  private newCore(): EngineCore {
    return {
      store: this.handle.store(),
      env: patient(this.env),
      rules: () => RULES,
      environment: null,
      killSwitch: () => null,
      storeKey: "sim",
      leases: new SilenceWatch(),
      redact: (text) => text,
      listeners: silentListeners,
      today: (kept) => this.today(kept),
    };
  }

  async perform(action: Action): Promise<Said> {
    try {
      return await (this[action.do] as (action: Action) => Promise<Said>).call(this, action);
    } catch (error) {
      if (error instanceof SvcError && REFUSALS.has(error.code)) return { answer: error.code, events: [] };
      throw error;
    }
  }

  async open({ agent: number, mode, wide }: Action & { do: "open" }): Promise<Said> {
    const agent = this.agents[number]!;
    const run_id = `${this.label}-${this.runs.length}`;
    const permissions = wide ? ["near", "far"] : ["near"];
    await this.core.store.transact(openRunUnit(newRun(this.core, agent, { run_id, mode, permissions })));
    this.runs.push({ id: run_id, agent, steps: 0 });
    return { answer: "open", events: [] };
  }

  private args(arg: number) {
    return { key: `${this.label}-${arg}`, amount: arg };
  }

  async ask({ run: number, tool, arg, dep }: Action & { do: "ask" }): Promise<Said> {
    const run = at(this.runs, number)!;
    const depends_on = dep === null || run.steps === 0 ? [] : [dep % run.steps];
    const input = { tool, args: this.args(arg), reason: "sim", depends_on };
    const unit = intentUnit(this.core, run.agent, run.id, input);
    const { decision, opened, records } = await this.core.store.transact(unit);
    if (opened !== null) this.requests.push(opened.id);
    if (decision.decision === "block") return { answer: "block", events: eventsOf(records) };
    run.steps++;
    return { answer: `${decision.decision} ${decision.step}`, events: eventsOf(records) };
  }

  async report({ run: number, step, status, with_id }: Action & { do: "report" }): Promise<Said> {
    const run = at(this.runs, number)!;
    if (run.steps === 0) return NOTHING;
    const n = step % run.steps;
    const unit = outcomeUnit(this.core, run.agent, run.id, n, { status, ...result(n, status, with_id) });
    const { answer, records } = await this.core.store.transact(unit);
    return { answer: `${answer.step} ${answer.status}`, events: eventsOf(records) };
  }

  async resolve({ run: number, step, status, with_id }: Action & { do: "resolve" }): Promise<Said> {
    const run = at(this.runs, number)!;
    if (run.steps === 0) return NOTHING;
    const n = step % run.steps;
    const input = { status, note: "seen", ...result(n, status, with_id) };
    const { answer, records } = await this.core.store.transact(
      resolveUnit(this.core, "olga", run.id, n, input),
    );
    return { answer: `${answer.step} ${answer.status}`, events: eventsOf(records) };
  }

  private readonly today = ({ principal }: StoredPrincipal) =>
    this.people.find(({ id }) => id === principal) ?? null;

  private async lentTo({ name }: CallerPrincipal) {
    const loans = await this.core.store.list("delegations", { owner: name, tag: "active", limit: 500 });
    return loans.map(({ doc }) => doc);
  }

  async decide({ request, decision, person }: Action & { do: "decide" }): Promise<Said> {
    const id = at(this.requests, request);
    if (id === undefined) return NOTHING;
    const who = this.people[person]!;
    const input = { decision, note: null };
    const unit = decideUnit(this.core, who, id, input, await this.lentTo(who));
    const { approval, records, refused } = await this.core.store.transact(unit);
    return { answer: refused === null ? approval.status : refused.code, events: eventsOf(records) };
  }

  async offer({ request, person, arg }: Action & { do: "offer" }): Promise<Said> {
    const id = at(this.requests, request);
    if (id === undefined) return NOTHING;
    const who = this.people[person]!;
    const offer = { id: `apr_${this.env.uuid()}`, args: this.args(arg) };
    const input = { decision: "deny", note: null, offer } as const;
    const unit = decideUnit(this.core, who, id, input, await this.lentTo(who));
    const { approval, offered, records, refused } = await this.core.store.transact(unit);
    if (refused !== null || offered === undefined)
      return { answer: refused?.code ?? approval.status, events: eventsOf(records) };
    this.requests.push(offered.id);
    const made = await this.core.store.get("approvals", offered.id);
    return { answer: `${approval.status} ${made!.status}`, events: eventsOf(records) };
  }

  async withdraw({ request }: Action & { do: "withdraw" }): Promise<Said> {
    const id = at(this.requests, request);
    if (id === undefined) return NOTHING;
    const { run_id } = (await this.core.store.get("approvals", id))!;
    const { agent } = this.runs.find((run) => run.id === run_id)!;
    const { approval, records, refused } = await this.core.store.transact(withdrawUnit(this.core, agent, id));
    return { answer: refused?.code ?? approval.status, events: eventsOf(records) };
  }

  async grant({ person, agent, uses }: Action & { do: "grant" }): Promise<Said> {
    const principal = this.people[person]!;
    const delegations = await this.lentTo(principal);
    const giver = { principal, at_the_data: false, delegations, today: this.today };
    const unit = giveGrantUnit(this.core, giver, {
      match: { tool: "pay", actor: this.agents[agent]!.name, tenant: null, environment: null },
      ...{ rules: ["payments"], when: [], max_uses: uses, budget: null, irreversible: false },
      reason: "a quiet week",
      // The one that ends first is used first.
      expires_ms: this.began + LOAN_MS + this.grants.length,
    });
    const { grant, records } = await this.core.store.transact(unit);
    this.grants.push(grant.id);
    return { answer: "granted", events: eventsOf(records) };
  }

  async revoke({ grant, person }: Action & { do: "revoke" }): Promise<Said> {
    const id = at(this.grants, grant);
    if (id === undefined) return NOTHING;
    const unit = revokeGrantUnit(this.core, this.people[person]!, id);
    return { answer: "revoked", events: eventsOf((await this.core.store.transact(unit)).records) };
  }

  async propose({ run: number, calls }: Action & { do: "propose" }): Promise<Said> {
    const run = at(this.runs, number)!;
    const unit = proposeUnit(this.core, run.agent, run.id, {
      reason: "a plan",
      calls: calls.map((call) => this.proposed(call)),
      ...{ fully_reversible: false, irreversible: [], residue: [] },
    });
    const { plan, records } = await this.core.store.transact(unit);
    this.plans.push({ id: plan.id, run: this.runs.indexOf(run), calls });
    return { answer: plan.status, events: eventsOf(records) };
  }

  /** As it is judged elsewhere: a payment needs a person, or two. */
  private proposed({ tool, arg }: PlannedCall): ProposedCall {
    const rules = RULES.policy.rules.all().filter(({ id }) => id === "payments" || arg >= LARGE);
    const asks = tool === "pay";
    return {
      ...{ tool, args: this.args(arg), reason: "sim", depends_on: [], reasons: [], risk_score: 0 },
      decision: asks ? "needs_approval" : "allow",
      spec: asks ? mergeTerms(rules.map(({ approval }) => approval)) : null,
      because: { causes: [], risk: null },
      rule: asks ? "payments" : null,
    };
  }

  async judge({ plan, decision, person }: Action & { do: "judge" }): Promise<Said> {
    const id = at(this.plans, plan)?.id;
    if (id === undefined) return NOTHING;
    const who = this.people[person]!;
    const input = { decision, note: null };
    const unit = decidePlanUnit(this.core, who, id, input, await this.lentTo(who));
    const { plan: decided, records, refused } = await this.core.store.transact(unit);
    return { answer: refused?.code ?? decided.status, events: eventsOf(records) };
  }

  async retract({ plan: number }: Action & { do: "retract" }): Promise<Said> {
    const plan = at(this.plans, number);
    if (plan === undefined) return NOTHING;
    const unit = withdrawPlanUnit(this.core, this.runs[plan.run]!.agent, plan.id);
    const { plan: ended, records } = await this.core.store.transact(unit);
    return { answer: ended.status, events: eventsOf(records) };
  }

  async follow({ plan: number, skip }: Action & { do: "follow" }): Promise<Said> {
    const plan = at(this.plans, number);
    if (plan === undefined) return NOTHING;
    const { next } = (await this.core.store.get("plans", plan.id))!;
    const { tool, arg } = at(plan.calls, next + skip)!;
    return this.ask({ do: "ask", run: plan.run, tool, arg, dep: null });
  }

  async lend({ from, to }: Action & { do: "lend" }): Promise<Said> {
    // No two loans at the same moment: the older one is used first.
    this.env.setNow(this.env.now() + 1);
    const input = { to: this.people[to]!.name, tools: "*", reason: "away" };
    const unit = delegateUnit(this.core, this.people[from]!, {
      ...input,
      expires_ms: this.env.now() + LOAN_MS,
    });
    const { records } = await this.core.store.transact(unit);
    return { answer: "lent", events: eventsOf(records) };
  }

  async turn({ person, approver }: Action & { do: "turn" }): Promise<Said> {
    this.people[person] = principal(this.people[person]!.name, approver ? "approver" : "auditor");
    return NOTHING;
  }

  async age({ request }: Action & { do: "age" }): Promise<Said> {
    const id = at(this.requests, request);
    const aged =
      id === undefined ? null : await this.core.store.transact(expireOrEscalateUnit(this.core, id));
    return aged === null ? NOTHING : { answer: aged.approval.status, events: eventsOf(aged.records) };
  }

  async halt({ agent, tool }: Action & { do: "halt" }): Promise<Said> {
    const input = { reason: "drill", actor: this.agents[agent]!.name, tool: tool ?? undefined };
    const { halt, records } = await this.core.store.transact(haltUnit(this.core, "admin", input));
    this.halts.push(halt.id);
    return { answer: "halted", events: eventsOf(records) };
  }

  async lift({ halt }: Action & { do: "lift" }): Promise<Said> {
    if (this.halts.length === 0) return NOTHING;
    const [id] = this.halts.splice(halt % this.halts.length, 1);
    const { records } = await this.core.store.transact(resumeUnit(this.core, "admin", id!));
    return { answer: "resumed", events: eventsOf(records) };
  }

  async time({ ms }: Action & { do: "time" }): Promise<Said> {
    this.env.setNow(this.env.now() + ms);
    return NOTHING;
  }

  async rollback({ run: number, fails }: Action & { do: "rollback" }): Promise<Said> {
    const { id } = at(this.runs, number)!;
    const { store } = this.core;
    const before = await trail(store, id);
    const report = await executeRollback(this.core, id, {
      actor: "olga",
      compensator: async ({ step, args }) => {
        if ((args as { id: number }).id !== step) throw new Error("other arguments");
        if ((fails >> (step % 8)) & 1) throw new Error("not now");
      },
      retries: 1,
    });
    const written = (await trail(store, id)).slice(before.length);
    const failed = report.failed.map(({ step }) => step);
    return {
      answer: JSON.stringify({ ...report, failed }),
      events: written.map(({ event, step }) => `${event} ${step}`),
    };
  }

  async crash(): Promise<Said> {
    await this.handle.crash();
    this.core = this.newCore();
    return NOTHING;
  }

  /** The final state, as the store has it. */
  async state(): Promise<{ steps: string[][]; requests: string[]; plans: string[] }> {
    const store = this.handle.store();
    const steps: string[][] = [];
    for (const { id } of this.runs) {
      const rows = await store.list("steps", { owner: id, limit: 10_000 });
      steps.push(rows.map(({ doc }) => `${doc.tool} ${doc.status}`));
    }
    const requests: string[] = [];
    for (const id of this.requests) requests.push((await store.get("approvals", id))!.status);
    const plans: string[] = [];
    for (const { id } of this.plans) plans.push((await store.get("plans", id))!.status);
    return { steps, requests, plans };
  }

  /** The history's halts do not outlive it. */
  async end(): Promise<void> {
    for (const id of this.halts.splice(0)) await this.core.store.transact(resumeUnit(this.core, "admin", id));
  }
}

function result(id: number, status: string, with_id: boolean): { result?: { id: number } } {
  return status === "succeeded" && with_id ? { result: { id } } : {};
}

async function trail(store: StateStore, run_id: string): Promise<LedgerRecord[]> {
  return (await store.records({ run_id, limit: 100_000 })).map((line) => JSON.parse(line) as LedgerRecord);
}

/** Waits take no time; a heartbeat waits until it is called off. */
function patient(env: FakeEnv): RuntimeEnv {
  return {
    ...env,
    sleep: (ms, signal) =>
      ms === SERVICE_LIMITS.lease_heartbeat_ms
        ? new Promise((_, reject) =>
            signal?.addEventListener("abort", () => reject(signal.reason), { once: true }),
          )
        : Promise.resolve(),
  };
}
