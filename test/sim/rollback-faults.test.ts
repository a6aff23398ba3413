/**
 * Two generic tests over every step of a rollback: fail and repeat, and a crash at every point of its journal.
 * Running the rollback again always ends with everything undone, and no step is reported as undone that is
 * not.
 */
import { describe, expect, it } from "vitest";
import type { StateStore, UnitOfWork } from "../../src/govern/port/store.ts";
import { SvcError } from "../../src/kernel/errors.ts";
import type { RollbackReport } from "../../src/rollback/plan/report.ts";
import { executeRollback, type RollbackOptions } from "../../src/rollback/undo/execute.ts";
import { otherProcess } from "../support/process.ts";
import { verifies } from "../support/verifies.ts";
import { type Bench, rollbackBench } from "./rollback-fixture.ts";

/** What can befall one outside action, a write or a call: `before` it takes effect, or `after`. */
type Fault = { at: number; how: "fail before" | "fail after" | "die before" | "die after" | "twice" };

const TOOLS = ["db.create", "db.fill", "crm.add", "pay.charge", "db.peek", "db.create", "db.fill"];
const UNDOABLE = [6, 5, 3, 2, 1, 0];

async function bench(): Promise<Bench> {
  const made = rollbackBench();
  await made.openRun();
  for (const tool of TOOLS) await made.act(tool);
  return made;
}

/** Counts every outside action of one process, and lets one of them go wrong. */
class Process {
  actions = 0;
  private readonly bench: Bench;
  private readonly fault: Fault | null;
  private dead = false;
  private die: () => void = () => {};
  private readonly death = new Promise<"dead">((resolve) => {
    this.die = () => resolve("dead");
  });

  constructor(bench: Bench, fault: Fault | null) {
    this.bench = bench;
    this.fault = fault;
  }

  async rollback(): Promise<RollbackReport | "dead" | Error> {
    const { world } = this.bench;
    const core = otherProcess(this.bench.core);
    await core.outwait();
    const store = new Proxy(core.store, {
      get: (target, name) => {
        if (name === "transact") return <T>(unit: UnitOfWork<T>) => this.action(() => target.transact(unit));
        const member = Reflect.get(target, name) as unknown;
        return typeof member === "function" ? member.bind(target) : member;
      },
    }) as StateStore;
    const options: RollbackOptions = {
      actor: "olga",
      retries: 2,
      approve_compensations: true,
      compensator: (call) => this.action(() => world.compensator(call)),
      reader: (request) => this.action(() => world.reader(request)),
      verify: () => this.action(async () => {}),
    };
    const ended = executeRollback({ ...core, store }, "r1", options).catch((error: Error) => error);
    return Promise.race([ended, this.death]);
  }

  private async action<T>(act: () => Promise<T>): Promise<T> {
    if (this.dead) return new Promise(() => {});
    const hit = this.fault !== null && ++this.actions === this.fault.at ? this.fault.how : null;
    if (this.fault === null) this.actions++;
    if (hit === "fail before") throw new SvcError("unavailable", "away");
    if (hit === "die before") return this.end();
    const answer = await act();
    // A second delivery of the same action: refused or harmless, never half-done.
    if (hit === "twice") await act().catch(() => {});
    if (hit === "fail after") throw new SvcError("unavailable", "away");
    if (hit === "die after") return this.end();
    return answer;
  }

  private end<T>(): Promise<T> {
    this.dead = true;
    this.die();
    return new Promise(() => {});
  }
}

async function countActions(): Promise<number> {
  const process = new Process(await bench(), null);
  expect(await process.rollback()).toMatchObject({ compensated: UNDOABLE, complete: true });
  return process.actions;
}

async function checkUndone(b: Bench, report: RollbackReport | "dead" | Error): Promise<void> {
  expect(report).toMatchObject({ complete: true, failed: [], unverified: [] });
  const trail = await b.undoTrail();
  for (const n of UNDOABLE) {
    expect((await b.step(n)).status).toBe("compensated");
    expect(trail.filter((line) => line === `compensated ${n}`)).toHaveLength(1);
  }
  const keys = new Map(b.world.calls.map((call) => [call.step, call.idempotency_key]));
  for (const call of b.world.calls) expect(call.idempotency_key).toBe(keys.get(call.step));
  expect(b.world.undone).toEqual(new Set(keys.values()));
  expect(b.world.most).toBe(1);
  expect(await b.run()).toMatchObject({ compensation_failed: 0, awaiting: 0, open_approvals: 0 });
  for (const tool of new Set(TOOLS)) {
    const standing = tool === "db.peek" ? 1 : 0;
    expect(await b.store.get("run_tools", `r1/${tool}`)).toMatchObject({ standing });
  }
  expect(await b.store.list("leases", { limit: 9 })).toEqual([]);
}

/** At any moment, and permanently: a step recorded as undone is undone. */
async function checkHonest(b: Bench): Promise<void> {
  for (const n of UNDOABLE) {
    const step = await b.step(n);
    if (step.status === "compensated") expect(b.world.undone).toContain(step.handle);
  }
}

describe("every action of a rollback", () => {
  it.each(["fail before", "fail after", "die before", "die after"] as const)(
    `may ${"%s"} it takes effect; running again completes ${verifies("contract.workers.take-over")}`,
    async (how) => {
      const actions = await countActions();
      expect(actions).toBeGreaterThan(25);
      for (let at = 1; at <= actions; at++) {
        const b = await bench();
        const first = await new Process(b, { at, how }).rollback();
        if (how.startsWith("die")) expect(first).toBe("dead");
        await checkHonest(b);
        const again = await new Process(b, null).rollback();
        await checkUndone(b, again);
      }
    },
  );

  it("may be delivered twice", async () => {
    const actions = await countActions();
    for (let at = 1; at <= actions; at++) {
      const b = await bench();
      const report = await new Process(b, { at, how: "twice" }).rollback();
      await checkHonest(b);
      await checkUndone(b, report instanceof Error ? await new Process(b, null).rollback() : report);
    }
  });

  it("may meet a second rollback, which is refused and changes nothing", async () => {
    const b = await bench();
    const refusals: unknown[] = [];
    const compensator: RollbackOptions["compensator"] = async (call) => {
      refusals.push(await b.rollback().catch((error: SvcError) => error.code));
      await b.world.compensator(call);
    };
    const report = await b.rollback({ compensator, approve_compensations: true, reader: b.world.reader });
    expect(refusals).toEqual(UNDOABLE.map(() => "conflict"));
    await checkUndone(b, report);
  });

  it("may die again and again", async () => {
    const b = await bench();
    let lives = 0;
    for (;;) {
      const report = await new Process(b, { at: 6, how: "die after" }).rollback();
      await checkHonest(b);
      if (report !== "dead") {
        await checkUndone(b, report);
        break;
      }
      expect(++lives).toBeLessThan(100);
    }
    expect(lives).toBeGreaterThan(3);
  });
});
