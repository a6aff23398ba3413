/** The real engine on a real store, behind the same actions as the model. */
import { ageUnit, decideUnit } from "../../src/engine/approvals/decide-request.ts";
import { delegateUnit } from "../../src/engine/approvals/delegations.ts";
import { type Core, silentListeners } from "../../src/engine/core.ts";
import { haltUnit, resumeUnit } from "../../src/engine/halts.ts";
import { intentUnit } from "../../src/engine/intent.ts";
import { newRun, openRunUnit } from "../../src/engine/open-run.ts";
import { outcomeUnit, resolveUnit } from "../../src/engine/outcome.ts";
import type { Env } from "../../src/kernel/env.ts";
import { SvcError } from "../../src/kernel/errors.ts";
import { LIMITS } from "../../src/kernel/limits.ts";
import type { LedgerRecord } from "../../src/ledger/record.ts";
import type { KeptPrincipal, Principal } from "../../src/model/roles.ts";
import { executeRollback } from "../../src/rollback/execute.ts";
import type { Store } from "../../src/store/port.ts";
import { principal } from "../../test/support/engine.ts";
import { type FakeEnv, fakeEnv } from "../../test/support/env.ts";
import { type Action, PEOPLE, type Said } from "./actions.ts";
import { RULES } from "./rules.ts";

const REFUSALS: ReadonlySet<string> = new Set(["conflict", "forbidden"]);
const LOAN_MS = 20 * 86_400_000;
const NOTHING: Said = { answer: "nothing", events: [] };
const at = <T>(list: readonly T[], index: number): T | undefined => list[index % Math.max(1, list.length)];
const eventsOf = (records: readonly LedgerRecord[]): string[] => records.map(({ event }) => event);

/** Gives the store; after a crash it gives another handle on the same data. */
export interface Handle {
  store(): Store;
  crash(): Promise<void>;
}

export class Service {
  readonly runs: { id: string; agent: Principal; steps: number }[] = [];
  readonly requests: string[] = [];
  readonly halts: string[] = [];
  private readonly label: string;
  private readonly handle: Handle;
  private readonly env: FakeEnv;
  private readonly agents: readonly Principal[];
  private readonly people: Principal[];
  private core: Core;

  /** Everything of a history carries its label, so that several may share a store. */
  constructor(label: string, seed: number, handle: Handle) {
    this.label = label;
    this.handle = handle;
    this.env = fakeEnv({ seed });
    this.agents = [principal(`${label}-a`), principal(`${label}-b`)];
    this.people = PEOPLE.map((name, i) => principal(`${label}-${name}`, i < 2 ? "approver" : "auditor"));
    this.core = this.newCore();
  }

  private newCore(): Core {
    return {
      store: this.handle.store(),
      env: patient(this.env),
      rules: () => RULES,
      environment: null,
      killSwitch: () => null,
      storeKey: "sim",
      redact: (text) => text,
      listeners: silentListeners,
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

  async ask({ run: number, tool, arg, dep }: Action & { do: "ask" }): Promise<Said> {
    const run = at(this.runs, number)!;
    const depends_on = dep === null || run.steps === 0 ? [] : [dep % run.steps];
    const args = { key: `${this.label}-${arg}`, amount: arg };
    const unit = intentUnit(this.core, run.agent, run.id, { tool, args, reason: "sim", depends_on });
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

  async decide({ request, decision, person }: Action & { do: "decide" }): Promise<Said> {
    const id = at(this.requests, request);
    if (id === undefined) return NOTHING;
    const who = this.people[person]!;
    const loans = await this.core.store.list("delegations", { owner: who.name, tag: "active", limit: 500 });
    const lent = loans.map(({ doc }) => doc);
    const today = ({ principal }: KeptPrincipal) => this.people.find(({ id }) => id === principal) ?? null;
    const unit = decideUnit(this.core, who, id, { decision, note: null }, lent, today);
    const { approval, records, refused } = await this.core.store.transact(unit);
    return { answer: refused === null ? approval.status : refused.code, events: eventsOf(records) };
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
    const aged = id === undefined ? null : await this.core.store.transact(ageUnit(this.core, id));
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

  /** What is left at the end, as the store has it. */
  async state(): Promise<{ steps: string[][]; requests: string[] }> {
    const store = this.handle.store();
    const steps: string[][] = [];
    for (const { id } of this.runs) {
      const rows = await store.list("steps", { owner: id, limit: 10_000 });
      steps.push(rows.map(({ doc }) => `${doc.tool} ${doc.status}`));
    }
    const requests: string[] = [];
    for (const id of this.requests) requests.push((await store.get("approvals", id))!.status);
    return { steps, requests };
  }

  /** The history's halts do not outlive it. */
  async end(): Promise<void> {
    for (const id of this.halts.splice(0)) await this.core.store.transact(resumeUnit(this.core, "admin", id));
  }
}

function result(id: number, status: string, with_id: boolean): { result?: { id: number } } {
  return status === "succeeded" && with_id ? { result: { id } } : {};
}

async function trail(store: Store, run_id: string): Promise<LedgerRecord[]> {
  return (await store.records({ run_id, limit: 100_000 })).map((line) => JSON.parse(line) as LedgerRecord);
}

/** Waits take no time; a heartbeat waits until it is called off. */
function patient(env: FakeEnv): Env {
  return {
    ...env,
    sleep: (ms, signal) =>
      ms === LIMITS.lease_heartbeat_ms
        ? new Promise((_, reject) =>
            signal?.addEventListener("abort", () => reject(signal.reason), { once: true }),
          )
        : Promise.resolve(),
  };
}
