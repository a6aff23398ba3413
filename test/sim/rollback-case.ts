/** One random history: tools, calls, rollbacks that fail, die and run again, and the model next to it. */
import { decideUnit } from "../../src/govern/approvals/decide-request.ts";
import { type EngineCore, silentListeners } from "../../src/govern/core.ts";
import { intentUnit } from "../../src/govern/decide/intent.ts";
import { outcomeUnit, resolveUnit } from "../../src/govern/decide/outcome.ts";
import type { StateStore, UnitOfWork } from "../../src/govern/port/store.ts";
import { newRun, openRunUnit } from "../../src/govern/runs/open-run.ts";
import type { RuntimeEnv } from "../../src/kernel/env.ts";
import { SERVICE_LIMITS } from "../../src/kernel/limits.ts";
import { SilenceWatch } from "../../src/kernel/silence-watch.ts";
import { acquireLease, LeaseHeldError, LeaseLostError } from "../../src/rollback/lease.ts";
import type { RollbackReport } from "../../src/rollback/plan/report.ts";
import type { CompensationCall, ReadRequest } from "../../src/rollback/ports.ts";
import { executeRollback, RollbackInterrupted } from "../../src/rollback/undo/execute.ts";
import { manifestSet } from "../../src/rules/manifest/set.ts";
import type { ToolManifest } from "../../src/rules/manifest/types.ts";
import { compilePolicy } from "../../src/rules/policy/compile.ts";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { principal } from "../support/engine.ts";
import { fakeEnv, seeded } from "../support/env.ts";
import { type OtherProcess, otherProcess } from "../support/process.ts";
import { type Ended, RunModel, type StepFacts, type ToolFacts } from "./rollback-model.ts";

const POLICY = compilePolicy({ version: 1 });
const RUN = "r1";
const AGENT = principal("bot");
const APPROVER = principal("ann", "approver");
const RETRIES = 2;
const READS = 2;
const CLOCK_SEEDS = 1_000_000;
const HOUR_MS = 3_600_000;
/** How far the time of day of a process may be ahead: less than the day after which requests expire. */
const CLOCKS_MS = [0, 0, 35_000, 6 * HOUR_MS, -6 * HOUR_MS];

export class Dice {
  private readonly next: () => number;
  constructor(seed: number) {
    this.next = seeded(seed);
  }
  below(n: number): number {
    return Math.floor(this.next() * n);
  }
  chance(percent: number): boolean {
    return this.next() * 100 < percent;
  }
  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }
}

/** A process that rolls back, until it is done or dies. */
interface Life {
  dead: boolean;
  /** How many outside actions it has left; endless for most. */
  fuse: number;
  die(): void;
  tried: Set<number>;
  ends: Map<number, Ended>;
  known: number;
  reads_back: boolean;
  /** Reads of each step in this life. */
  reads: Map<number, number>;
  busy: boolean;
  had_lease: boolean;
  /** Was paused, not killed: it continues after others have taken over. */
  zombie: boolean;
  paused: Promise<void>;
  wake(): void;
}

const never = <T>(): Promise<T> => new Promise(() => {});

export class Case {
  readonly dice: Dice;
  /** Separate dice for the clocks: the history itself is the same with any clock. */
  private readonly clocks: Dice;
  readonly model = new RunModel();
  readonly store = new MemoryStore();
  readonly problems: string[] = [];
  readonly counts = { rollbacks: 0, deaths: 0, undone: 0, failed: 0, late: 0 };
  private readonly env = fakeEnv();
  private readonly tools: ToolFacts[];
  private readonly core: EngineCore;
  /** How often the undo, or the read-back, of a step still fails. */
  private readonly undo_fails = new Map<number, number>();
  private readonly read_fails = new Map<number, number>();
  private readonly taken_back = new Set<number>();
  private readonly keys = new Map<number, string>();
  private readonly sleeping: { life: Life; ended: Promise<unknown> }[] = [];

  constructor(seed: number) {
    this.dice = new Dice(seed);
    this.clocks = new Dice(seed + CLOCK_SEEDS);
    this.tools = this.makeTools();
    const manifests = manifestSet(this.tools.map(manifestOf));
    this.core = {
      store: this.store,
      env: this.env,
      rules: () => ({ manifests, policy: POLICY }),
      environment: null,
      killSwitch: () => null,
      storeKey: "sim",
      leases: new SilenceWatch(),
      redact: (text) => text,
      listeners: silentListeners,
    };
  }

  private makeTools(): ToolFacts[] {
    const { dice } = this;
    return Array.from({ length: 2 + dice.below(4) }, (_, i): ToolFacts => {
      const effect = dice.pick([
        "read",
        "idempotent",
        "compensable",
        "compensable",
        "compensable",
        "compensable",
        "irreversible",
      ] as const);
      const undoable = effect === "compensable" || (effect === "idempotent" && dice.chance(30));
      return {
        name: `t${i}`,
        effect,
        requires: Array.from({ length: i }, (__, j) => `t${j}`).filter(() => dice.chance(25)),
        undoable,
        approval: undoable && dice.chance(15),
        reads_back: undoable && dice.chance(30),
      };
    });
  }

  async play(): Promise<void> {
    const mode = this.dice.chance(30) ? "observe" : "enforce";
    await this.store.transact(
      openRunUnit(newRun(this.core, AGENT, { run_id: RUN, permissions: ["p"], mode })),
    );
    for (let phase = 1 + this.dice.below(2); phase > 0; phase--) {
      for (let calls = 1 + this.dice.below(8); calls > 0; calls--) await this.call();
      for (let tries = 1 + this.dice.below(2); tries > 0; tries--) {
        await this.rollbackToItsEnd(false);
        await this.people();
      }
    }
    await this.settleEverything();
    await this.rollbackToItsEnd(true);
    await this.checkStore();
  }

  private problem(text: string): void {
    this.problems.push(text);
  }

  /** The agent asks for a call and, mostly, tells its outcome. */
  private async call(): Promise<void> {
    const { dice, model } = this;
    const tool = dice.chance(8) ? null : dice.pick(this.tools);
    const depends_on = model.steps.filter(() => dice.chance(12)).map(({ n }) => n);
    const input = { tool: tool?.name ?? "unknown", args: {}, reason: "sim", depends_on };
    const { decision } = await this.store.transact(intentUnit(this.core, AGENT, RUN, input));
    if (decision.decision === "block") return;
    const step = model.accept(tool, depends_on);
    if (decision.step !== step.n) this.problem(`step ${step.n} got the number ${decision.step}`);
    this.undo_fails.set(step.n, dice.chance(70) ? 0 : dice.below(6));
    this.read_fails.set(step.n, dice.chance(70) ? 0 : dice.below(6));
    const said = dice.pick([
      "done",
      "done",
      "done",
      "done",
      "done",
      "done",
      "done",
      "failed",
      "unsure",
      "open",
    ] as const);
    if (said === "open") return;
    const status = { done: "succeeded", failed: "failed", unsure: "uncertain" }[said] as
      | "succeeded"
      | "failed"
      | "uncertain";
    const result = this.result(step);
    await this.store.transact(
      outcomeUnit(this.core, AGENT, RUN, step.n, said === "done" ? { status, result } : { status }),
    );
    model.finish(step, said);
  }

  private result(step: StepFacts): { id?: number; read_id?: number } {
    step.has_id = this.dice.chance(92);
    step.has_read_id = this.dice.chance(92);
    return { ...(step.has_id ? { id: step.n } : {}), ...(step.has_read_id ? { read_id: step.n } : {}) };
  }

  /** People decide some requests and find out some outcomes. */
  private async people(): Promise<void> {
    for (const { doc } of await this.store.list("approvals", { owner: RUN, tag: "pending", limit: 100 })) {
      if (!this.dice.chance(60)) continue;
      const decision = this.dice.chance(70) ? "approve" : "deny";
      await this.store.transact(decideUnit(this.core, APPROVER, doc.id, { decision, note: null }, []));
      if (decision === "approve") this.model.steps[doc.step!]!.agreed = true;
    }
    for (const step of this.model.steps) {
      if ((step.outcome === "open" || step.outcome === "unsure") && this.dice.chance(40))
        await this.resolve(step);
    }
  }

  private async resolve(step: StepFacts): Promise<void> {
    const done = this.dice.chance(70);
    const result = this.result(step);
    const input = done
      ? { status: "succeeded" as const, note: "seen", result }
      : { status: "failed" as const, note: "seen" };
    await this.store.transact(resolveUnit(this.core, "olga", RUN, step.n, input));
    this.model.finish(step, done ? "done" : "failed");
  }

  private async settleEverything(): Promise<void> {
    for (const step of this.model.steps) {
      if (step.outcome === "open" || step.outcome === "unsure") await this.resolve(step);
      this.undo_fails.set(step.n, 0);
      this.read_fails.set(step.n, 0);
    }
  }

  /** Runs the rollback, again after each death, and holds its report to the model's. */
  private async rollbackToItsEnd(last: boolean): Promise<void> {
    const approve = last || this.dice.chance(10);
    for (let lives = 0; lives < 50; lives++) {
      const report = await this.rollback(approve, last);
      if (report === null) continue;
      await this.wakeSleepers();
      return;
    }
    this.problem("the rollback never came to its end");
  }

  /** An executor that was paused and replaced can do no more than notice it. */
  private async wakeSleepers(): Promise<void> {
    for (const { life, ended } of this.sleeping.splice(0)) {
      const before = (await this.store.head()).records;
      life.wake();
      const result = await ended.catch((error: unknown) => error);
      if (!(result instanceof LeaseLostError) && !(result instanceof RollbackInterrupted))
        this.problem("a paused rollback went on");
      if ((await this.store.head()).records !== before) this.problem("a paused rollback wrote to the ledger");
    }
  }

  /** A process that has not seen a lease for its whole length does not get it, with any clock. */
  private async tooEarly(core: OtherProcess): Promise<void> {
    if (this.store.getSync("leases", `rollback/${RUN}`) === undefined) return;
    const early = { ...core, store: this.store };
    const held = await acquireLease(early, RUN).catch((error: unknown) => error);
    if (!(held instanceof LeaseHeldError)) this.problem("a lease was taken over before its time");
    await core.outwait();
  }

  private async rollback(approve: boolean, last: boolean): Promise<RollbackReport | null> {
    const { dice, model } = this;
    this.counts.rollbacks++;
    let died = (): void => {};
    const death = new Promise<"dead">((resolve) => {
      died = () => resolve("dead");
    });
    let wake = (): void => {};
    const paused = new Promise<void>((resolve) => {
      wake = resolve;
    });
    const life: Life = {
      dead: false,
      zombie: false,
      had_lease: false,
      paused,
      wake,
      reads: new Map(),
      fuse: dice.chance(45) ? 1 + dice.below(20) : Number.POSITIVE_INFINITY,
      die: died,
      tried: new Set(),
      ends: new Map(),
      known: model.steps.length,
      reads_back: last || dice.chance(75),
      busy: false,
    };
    const stop = new AbortController();
    model.all_agreed = approve;
    const core = otherProcess(
      { ...this.core, store: this.mortal(life), env: this.hasty(life) },
      this.clocks.pick(CLOCKS_MS),
    );
    // A later process has seen the dead one's lease, or finds it and has to wait.
    if (this.clocks.chance(50)) await core.outwait();
    else await this.tooEarly(core);
    const ended = executeRollback(core, RUN, {
      actor: "olga",
      compensator: (call) => this.compensate(life, call, stop, last),
      reader: life.reads_back ? (request) => this.read(life, request) : null,
      retries: RETRIES,
      approve_compensations: approve,
      stop: stop.signal,
    });
    const result = await Promise.race([ended, death]).catch((error: unknown) => error);
    this.noteRecorded(life);
    if (result === "dead") {
      this.counts.deaths++;
      // One that had its lease may come back; one that had not would start its own rollback.
      const holds = life.had_lease && this.store.getSync("leases", `rollback/${RUN}`) !== undefined;
      if (holds && dice.chance(30)) {
        life.zombie = true;
        this.sleeping.push({ life, ended });
      }
      return null;
    }
    if (result instanceof RollbackInterrupted) return null;
    if (result instanceof Error) {
      this.problem(`the rollback broke off: ${result.message}`);
      return null;
    }
    this.compare(life, result as RollbackReport);
    return result as RollbackReport;
  }

  /** What the store says is undone must be undone in the world; only then the model takes it so. */
  private noteRecorded(life: Life): void {
    for (const step of this.model.steps) {
      const doc = this.store.getSync("steps", `${RUN}/${step.n}`)!;
      if (doc.status === "compensating" || doc.status === "compensation_failed") {
        if (!this.model.agreed(step)) this.problem(`nobody agreed to the undo of step ${step.n}`);
        step.agreed = true;
      }
      if (doc.status !== "compensated") continue;
      if (!this.taken_back.has(step.n)) this.problem(`step ${step.n} is compensated without success`);
      if (step.undone_at === Number.POSITIVE_INFINITY) this.counts.undone++;
      this.model.undone(step);
      if (life.ends.get(step.n) === "failed") this.problem(`step ${step.n} failed and is compensated`);
    }
  }

  private compare(life: Life, report: RollbackReport): void {
    const expected = this.model.report(life.ends);
    const failed = report.failed.map(({ step }) => step);
    this.counts.failed += failed.length;
    const got = JSON.stringify({ ...report, failed });
    const want = JSON.stringify(expected);
    if (got !== want) this.problem(`the report is ${got}, not ${want}`);
    for (const [n, reads] of life.reads) {
      const { has_read_id } = this.model.steps[n]!;
      if (reads > READS || (life.ends.get(n) === "failed" && has_read_id && reads !== READS))
        this.problem(`step ${n} was read ${reads} times`);
    }
    for (const { step, error } of report.failed) {
      if (!/^(after \d+ attempts?: not now|verification failed: |cannot verify: )/.test(error))
        this.problem(`step ${step}: odd error ${error}`);
    }
  }

  private async compensate(
    life: Life,
    call: CompensationCall,
    stop: AbortController,
    last: boolean,
  ): Promise<void> {
    if (life.zombie) return;
    const step = this.model.steps[call.step]!;
    // The model learns of ends that were recorded in the meantime before it judges the next undo.
    this.noteRecorded(life);
    const doc = this.store.getSync("steps", `${RUN}/${call.step}`)!;
    if (doc.status !== "compensating") this.problem(`step ${call.step} runs while ${doc.status}`);
    if (life.busy) this.problem("two undos at once");
    if (!life.tried.has(call.step)) {
      const objection = this.model.objection(step, life.tried, life.known);
      if (objection !== undefined) this.problem(objection);
    }
    const key = this.keys.get(call.step) ?? call.idempotency_key;
    if (key !== call.idempotency_key) this.problem(`step ${call.step} has another key`);
    this.keys.set(call.step, key);
    if (JSON.stringify(call.args) !== JSON.stringify({ id: call.step }))
      this.problem(`step ${call.step} has other arguments`);
    life.tried.add(call.step);
    life.busy = true;
    await this.tick(life);
    if (life.zombie) return;
    if (!last && this.dice.chance(7)) {
      const before = this.model.steps.length;
      await this.call();
      this.counts.late += this.model.steps.length - before;
    }
    const left = this.undo_fails.get(call.step) ?? 0;
    if (left === 0) this.taken_back.add(call.step);
    else this.undo_fails.set(call.step, left - 1);
    if (!last && this.dice.chance(3)) stop.abort();
    await this.tick(life);
    life.busy = false;
    life.ends.set(call.step, left === 0 ? this.endOf(life, step) : "failed");
    if (left > 0) throw new Error("not now");
  }

  /** How the undo ends if its reads, if any are made, fail; a good read corrects it. */
  private endOf(life: Life, step: StepFacts): Ended {
    if (!step.tool!.reads_back) return "undone";
    return life.reads_back ? "failed" : "unverified";
  }

  private async read(life: Life, { arguments: args }: ReadRequest): Promise<{ gone: boolean }> {
    await this.tick(life);
    if (life.zombie) return { gone: true };
    const n = (args as { id: number }).id;
    life.reads.set(n, (life.reads.get(n) ?? 0) + 1);
    const left = this.read_fails.get(n) ?? 0;
    if (left > 0) this.read_fails.set(n, left - 1);
    else life.ends.set(n, "undone");
    await this.tick(life);
    if (left > 0 && this.dice.chance(50)) throw new Error("away");
    return { gone: left === 0 };
  }

  private async tick(life: Life): Promise<void> {
    if (!life.dead && --life.fuse > 0) return;
    if (!life.zombie) {
      life.dead = true;
      life.die();
    }
    // The dead wait for ever, the paused until somebody has taken over.
    await life.paused;
  }

  private mortal(life: Life): StateStore {
    return new Proxy(this.store, {
      get: (target, name) => {
        if (name === "transact") {
          return async <T>(unit: UnitOfWork<T>): Promise<T> => {
            await this.tick(life);
            const value = await target.transact(unit);
            life.had_lease = true;
            await this.tick(life);
            return value;
          };
        }
        const member = Reflect.get(target, name) as unknown;
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
  }

  private hasty(life: Life): RuntimeEnv {
    const { env } = this;
    return {
      ...env,
      sleep: (ms, signal) => {
        if (life.dead && !life.zombie) return never();
        if (ms !== SERVICE_LIMITS.lease_heartbeat_ms) {
          env.setNow(env.now() + ms);
          return Promise.resolve();
        }
        return new Promise((_, reject) =>
          signal?.addEventListener("abort", () => reject(signal.reason), { once: true }),
        );
      },
    };
  }

  /** Counters, chain and trail against a recount. */
  private async checkStore(): Promise<void> {
    const steps = (await this.store.list("steps", { owner: RUN, limit: 1_000 })).map(({ doc }) => doc);
    const run = this.store.getSync("runs", RUN)!;
    const failed = steps.filter(({ status }) => status === "compensation_failed").length;
    if (run.compensation_failed !== failed)
      this.problem(`the run counts ${run.compensation_failed} failed undos, not ${failed}`);
    const requests = (await this.store.list("approvals", { owner: RUN, limit: 1_000 })).map(({ doc }) => doc);
    const open = requests.filter(({ status }) => status === "pending").length;
    if (run.open_approvals !== open)
      this.problem(`the run counts ${run.open_approvals} open requests, not ${open}`);
    // The undo of a step waits from its request until it begins or a person denies it.
    const denied = new Set(requests.filter(({ status }) => status === "denied").map(({ id }) => id));
    const awaiting = steps.filter(
      ({ status, undo_request: id }) => status === "succeeded" && id != null && !denied.has(id),
    ).length;
    if (run.awaiting !== awaiting)
      this.problem(`the run counts ${run.awaiting} awaiting consent, not ${awaiting}`);
    for (const { name } of this.tools) {
      const standing = steps.filter(
        ({ tool, status }) => tool === name && (status === "succeeded" || status === "compensation_failed"),
      ).length;
      const counted = this.store.getSync("run_tools", `${RUN}/${name}`)?.standing ?? 0;
      if (counted !== standing) this.problem(`${name} counts ${counted} standing steps, not ${standing}`);
    }
    if ((await this.store.list("leases", { limit: 1 })).length > 0) this.problem("a lease was left behind");
    this.checkTrail(
      (await this.store.records({ limit: 100_000 })).map(
        (line) => JSON.parse(line) as { event: string; step?: number; run_seq: number },
      ),
    );
  }

  private checkTrail(trail: { event: string; step?: number; run_seq: number }[]): void {
    const begun = new Set<number>();
    const done = new Set<number>();
    for (const [at, { event, step = -1, run_seq }] of trail.entries()) {
      if (run_seq !== at) this.problem(`record ${at} is number ${run_seq} of its run`);
      if (done.has(step) && /^(compensat|verif|unverif)/.test(event))
        this.problem(`${event} of step ${step} after it was compensated`);
      if (event === "compensating") begun.add(step);
      if (!/^(compensated|compensation_failed)$/.test(event)) continue;
      if (!begun.delete(step)) this.problem(`${event} of step ${step} that was not begun`);
      if (event === "compensated") done.add(step);
    }
  }
}

function manifestOf(tool: ToolFacts): ToolManifest {
  return {
    tool: tool.name,
    version: "1",
    lifecycle: "approved",
    effect: tool.effect,
    permission: "p",
    owner: null,
    requires: tool.requires,
    idempotency: [],
    risk: { data_class: null, blast_radius: null },
    compensation: tool.undoable
      ? {
          tool: `undo.${tool.name}`,
          args: { id: "$result.id" },
          kind: "inverse",
          residue: [],
          requires_approval: tool.approval,
        }
      : null,
    verification: tool.reads_back
      ? {
          tool: "look",
          args: { id: "$result.read_id" },
          expect: { gone: true },
          retries: READS - 1,
          backoff_ms: 1,
        }
      : null,
    audit: { redaction: [], retention_days: null, evidence_export: null },
  };
}
