/**
 * Undo with a concurrent foreign writer. Runs put and drop documents, calls of different runs overlap, and a foreign
 * writer writes the same documents all the while, also between the undos of a rollback. An undo may replace nothing
 * except its own call's result; without a foreign write the end state equals the start. Two windows are left out, as
 * the guide names them: from a call to the read after it, and from the check to the undo. Now and then all calls are
 * one run's and overlap with their reads and writes in any order: then a rollback that reports complete has restored
 * all.
 */
import { type EngineCore, silentListeners } from "../../src/govern/core.ts";
import { intentUnit } from "../../src/govern/decide/intent.ts";
import { outcomeUnit } from "../../src/govern/decide/outcome.ts";
import { newRun, openRunUnit } from "../../src/govern/runs/open-run.ts";
import { SilenceWatch } from "../../src/kernel/silence-watch.ts";
import { ledgerPlace, rollBackInOrder, type UndoStepFn } from "../../src/rollback/plan/multi-run.ts";
import type { RollbackReport } from "../../src/rollback/plan/report.ts";
import type { CompensationCall } from "../../src/rollback/ports.ts";
import { executeRollback } from "../../src/rollback/undo/execute.ts";
import { readManifests } from "../../src/rules/manifest/load.ts";
import { compilePolicy } from "../../src/rules/policy/compile.ts";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { Dice } from "../../test/sim/rollback-case.ts";
import { principal } from "../../test/support/engine.ts";
import { fakeEnv } from "../../test/support/env.ts";

const MANIFESTS = `
- {tool: get, effect: read, permission: p}
- tool: put
  effect: reversible
  permission: p
  before: {tool: get, args: {id: $args.id}, absent: {exists: false}}
  compensation: {tool: put, args: {id: $args.id, text: $before.text}, kind: inverse, when_absent: {tool: drop, args: {id: $args.id}}}
- tool: drop
  effect: reversible
  permission: p
  before: {tool: get, args: {id: $args.id}, absent: {exists: false}}
  compensation: {tool: put, args: {id: $args.id, text: $before.text}, kind: inverse}
`;
const RULES = {
  manifests: readManifests([{ file: "foreign.yaml", text: MANIFESTS }]),
  policy: compilePolicy({ version: 1 }),
};
const AGENT = principal("bot");
const IDS = ["a", "b", "c"] as const;
const RUNS = ["r0", "r1", "r2"] as const;
/** Few enough values that the foreign writer now and then writes the current one, or an earlier one. */
const WORDS = ["old", "one", "two", "three"] as const;

export interface ForeignCounts {
  /** Histories of calls side by side whose rollback was complete. */
  complete: number;
  calls: number;
  writes: number;
  undone: number;
  conflicts: number;
}

export class ForeignHistory {
  readonly problems: string[] = [];
  readonly counts: ForeignCounts = { complete: 0, calls: 0, writes: 0, undone: 0, conflicts: 0 };
  private readonly dice: Dice;
  private readonly core: EngineCore;
  private readonly store = new MemoryStore();
  /** The current content; null if there is none. */
  private readonly there = new Map<string, string | null>();
  private readonly first: ReadonlyMap<string, string | null>;
  /** What each call left, by run and step. */
  private readonly left = new Map<string, string | null>();
  private readonly steps = new Map<string, number>();
  private readonly last_made = new Map<string, number>(RUNS.map((run_id) => [run_id, -1]));
  private readonly waiting: (() => Promise<void>)[] = [];
  private readonly writes_too: boolean;
  /** The calls are one run's, and their reads and writes come in any order. */
  private readonly side_by_side: boolean;
  /** Documents that a call wrote and did not read yet: a foreign write now falls into the first window. */
  private readonly unread: string[] = [];
  private readonly tried = new Set<string>();
  /**
   * Whether no two calls of one run overlapped and all runs were undone as one, newest first. In another order a call
   * may be found to be as before already, although an older one lies below it.
   */
  private in_order = true;

  constructor(seed: number) {
    this.dice = new Dice(seed);
    this.side_by_side = this.dice.chance(25);
    this.writes_too = this.dice.chance(this.side_by_side ? 30 : 85);
    for (const id of IDS) this.there.set(id, this.dice.chance(70) ? "old" : null);
    this.first = new Map(this.there);
    const env = fakeEnv({ seed });
    this.core = {
      store: this.store,
      env: { ...env, sleep: (ms, signal) => (ms === 0 ? Promise.resolve() : env.sleep(ms, signal)) },
      rules: () => RULES,
      environment: null,
      killSwitch: () => null,
      storeKey: "foreign",
      leases: new SilenceWatch(),
      redact: (text) => text,
      listeners: silentListeners,
    };
  }

  async play(): Promise<void> {
    for (const run_id of RUNS)
      await this.store.transact(openRunUnit(newRun(this.core, AGENT, { run_id, permissions: ["p"] })));
    for (let n = 4 + this.dice.below(14); n > 0; n--) {
      if (this.dice.chance(25)) this.foreign();
      if (this.dice.chance(70)) await this.intend();
      if (this.waiting.length > 0 && this.dice.chance(75)) await this.finishOne();
      // Undone early, with calls of the others still to come.
      if (!this.side_by_side && this.dice.chance(6)) await this.undo([this.dice.pick(RUNS)]);
    }
    while (this.waiting.length > 0) await this.finishOne();
    if (this.side_by_side) return this.undoSideBySide();
    if (this.dice.chance(30)) for (const n of [0, 1, 2]) await this.undo([RUNS[(n * 2) % 3]!]);
    else await this.undo(RUNS);
    if (this.counts.writes === 0 && this.in_order) this.judgeUntouched();
  }

  private show(id: string) {
    const text = this.there.get(id) ?? null;
    return { exists: text !== null, text };
  }

  private foreign(): void {
    if (!this.writes_too) return;
    const id = this.dice.pick(IDS);
    const text = this.dice.chance(15)
      ? null
      : this.dice.chance(20)
        ? this.dice.pick(WORDS)
        : `theirs ${this.counts.writes}`;
    if (this.there.get(id) === text || this.unread.includes(id)) return;
    this.there.set(id, text);
    this.counts.writes++;
  }

  /** Asks now; the call itself is made later, maybe after one that was asked for after it. */
  private async intend(): Promise<void> {
    const { core, dice, store } = this;
    const [run_id, id] = [this.side_by_side ? RUNS[0] : dice.pick(RUNS), dice.pick(IDS)];
    // Concurrent calls deceive most where one restores a state that another read.
    const word = dice.chance(this.side_by_side ? 70 : 20);
    const text = dice.chance(15) ? null : word ? dice.pick(WORDS) : `ours ${this.counts.calls}`;
    const tool = text === null ? "drop" : "put";
    const args = text === null ? { id } : { id, text };
    await store.transact(intentUnit(core, AGENT, run_id, { tool, args, reason: "sim", depends_on: [] }));
    const step = this.steps.get(run_id) ?? 0;
    this.steps.set(run_id, step + 1);
    this.counts.calls++;
    if (this.side_by_side) return this.move(step, id, text);
    this.waiting.push(async () => {
      if (this.last_made.get(run_id) !== step - 1) this.in_order = false;
      this.last_made.set(run_id, step);
      const before = this.show(id);
      this.there.set(id, text);
      this.left.set(`${run_id}/${step}`, text);
      const outcome = { status: "succeeded" as const, result: null, before, after: this.show(id) };
      await store.transact(outcomeUnit(core, AGENT, run_id, step, outcome));
    });
  }

  /** The call's read, its write, and its read again with the outcome, each after any move of another call. */
  private move(step: number, id: string, text: string | null): void {
    const { core, store, waiting, unread } = this;
    waiting.push(async () => {
      const before = this.show(id);
      waiting.push(async () => {
        this.there.set(id, text);
        this.left.set(`${RUNS[0]}/${step}`, text);
        unread.push(id);
        waiting.push(async () => {
          unread.splice(unread.indexOf(id), 1);
          const outcome = { status: "succeeded" as const, result: null, before, after: this.show(id) };
          await store.transact(outcomeUnit(core, AGENT, RUNS[0], step, outcome));
        });
      });
    });
  }

  /** As long as it brings anything: a step that overlapped another one may come up once that is undone. */
  private async undoSideBySide(): Promise<void> {
    for (let undone = -1; undone < this.counts.undone; ) {
      undone = this.counts.undone;
      const { complete } = await this.undoOne(RUNS[0]);
      if (!complete) continue;
      this.counts.complete++;
      if (this.counts.writes === 0) this.judgeUntouched();
      return;
    }
  }

  private async finishOne(): Promise<void> {
    const [finish] = this.waiting.splice(this.dice.below(this.waiting.length), 1);
    await finish!();
  }

  private async undo(run_ids: readonly string[]): Promise<void> {
    if (run_ids.length < RUNS.length) this.in_order = false;
    const placed = await Promise.all(
      run_ids.map(async (run_id) => {
        const steps = await this.store.list("steps", { owner: run_id, limit: 500 });
        return { run_id, newest_seq: Math.max(0, ...steps.map(({ doc }) => ledgerPlace(doc))) };
      }),
    );
    await rollBackInOrder(placed, async (run_id, turn) => void (await this.undoOne(run_id, turn)));
  }

  private async undoOne(run_id: string, turn?: UndoStepFn): Promise<RollbackReport> {
    const report = await executeRollback(this.core, run_id, {
      actor: "olga",
      turn,
      reader: async ({ arguments: args }) => {
        if (this.dice.chance(15)) this.foreign();
        return this.show((args as { id: string }).id);
      },
      compensator: async (call) => this.compensate(call),
      backoff_ms: 0,
    });
    this.judgeReport(run_id, report);
    return report;
  }

  private compensate({ run_id, step, tool, args }: CompensationCall): void {
    const { id, text } = args as { id: string; text?: string };
    const name = `${run_id}/${step}`;
    if (!this.tried.has(name) && this.dice.chance(10)) {
      this.tried.add(name);
      this.foreign();
      throw new Error("no answer");
    }
    const mine = this.left.get(name);
    const there = this.there.get(id);
    // Of calls side by side one may have read the other's work for its own; a foreign text is neither's.
    if (this.side_by_side ? there?.startsWith("theirs") : there !== mine)
      this.problems.push(
        `${run_id}/${step} replaced ${JSON.stringify(this.there.get(id))}, which is not its own`,
      );
    this.there.set(id, tool === "drop" ? null : text!);
    this.counts.undone++;
  }

  private judgeReport(run_id: string, report: RollbackReport): void {
    for (const { step, error } of report.failed) {
      if (error.startsWith("conflict:")) this.counts.conflicts++;
      else this.problems.push(`${run_id}/${step} failed: ${error}`);
    }
  }

  private judgeUntouched(): void {
    for (const [id, text] of this.first)
      if (this.there.get(id) !== text)
        this.problems.push(`${id} was ${JSON.stringify(text)} and is ${JSON.stringify(this.there.get(id))}`);
  }
}
