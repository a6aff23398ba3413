/**
 * The way of a batch: lock, catch up, run, write, unlock, sync; and what happens when a step fails. The next batch is
 * run and written while one is synced; if that sync fails, both are lost. After a failure that may have left
 * something, nothing is added before the log was opened anew, read back and verified.
 */
import { messageOf, SvcError } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { Batch, type Pending } from "../batch.ts";
import type { Written } from "../group-commit.ts";
import { type Base, Checkpoint } from "./checkpoint.ts";
import type { Checkpointer } from "./checkpointer.ts";
import { isDiskFull, sqliteFailure, whenFree } from "./connection.ts";
import type { Journaled, Knowledge, Loaded, Log } from "./log.ts";
import type { Mirror } from "./mirror.ts";
import type { Reserve } from "./reserve.ts";
import { Turns } from "./turns.ts";

const LOCK_MARGIN_MS = 100;

export interface CommitterParts {
  log: Log;
  mirror: Mirror;
  reserve: Reserve;
  checkpoint_path: string;
  warn(message: string, fields?: Record<string, unknown>): void;
}

export class Committer {
  private readonly parts: CommitterParts;
  /** Whoever adds to the log. */
  private readonly turns = new Turns();
  /** Whoever makes it durable. A sync never waits for a turn at the log; a turn at the log may wait for a sync. */
  private readonly syncs = new Turns();
  /** How many syncs have failed, and why the last one did. */
  private failures = 0;
  private failure: unknown;
  private current: Checkpoint | undefined;
  private broken = false;
  private holding = false;
  /** Why nothing may be added until a person has looked; it stays until the store is opened anew. */
  problem: SvcError | undefined;
  private known: Knowledge = "everything";

  constructor(parts: CommitterParts) {
    this.parts = parts;
  }

  get checkpoint(): Checkpoint {
    if (this.current === undefined) throw new SvcError("unavailable", "the store is closed");
    return this.current;
  }

  /** Whether what this process knows is all there is to know: then others' news must not be looked for. */
  get isStill(): boolean {
    return this.holding || this.broken || this.problem !== undefined;
  }

  /** What cannot be known is refused, never told to be missing or fewer. */
  assertKnown(what: "documents" | "ledger"): void {
    if (this.known === "everything" || this.known === what) return;
    throw this.problem;
  }

  async open(): Promise<void> {
    const until = performance.now() + LIMITS.store_deadline_ms;
    await this.locked(until, async () => {
      await this.connect(until);
      const { log } = this.parts;
      if (this.checkpoint.base() !== undefined) return this.read();
      const created = await log.create();
      if (created.problem === undefined) await this.begin(until);
      this.adopt(created);
    });
  }

  async close(): Promise<void> {
    this.current?.close();
    this.current = undefined;
  }

  /** Resolves when the batch is written; undefined where there was nothing to write. */
  commit(batch: readonly Pending[], until: number, checkpointer: Checkpointer): Promise<Written | undefined> {
    return this.turns.take(async () => {
      const failures = await this.usable(until);
      // Closing a journal waits for the sync under way; better here than with the lock in hand.
      if (checkpointer.isDue) await this.syncs.idle();
      const isWritten = await this.locked(until, async () => {
        await this.catchUpToAdd();
        // Closing a journal may have let others in between.
        if (await checkpointer.rotateIfDue()) await this.catchUpToAdd();
        this.assertSound(failures);
        return this.write(batch, until);
      });
      return isWritten ? { durable: this.makeDurable(failures) } : undefined;
    });
  }

  /** Work under the lock with an up-to-date view, made durable before it is answered. */
  async exclusively(work: () => Promise<void>): Promise<void> {
    const until = performance.now() + LIMITS.store_deadline_ms;
    const { durable } = await this.turns.take(async () => {
      const failures = await this.usable(until);
      await this.locked(until, async () => {
        await this.catchUpToAdd();
        await work();
      });
      return { durable: this.makeDurable(failures) };
    });
    await durable;
  }

  /** Makes everything that this process has written or seen durable. */
  settle(): Promise<void> {
    return this.makeDurable(this.failures);
  }

  /**
   * For whoever syncs by itself: the kernel tells of a failed write once, and two syncs at a time would not know
   * whose it was.
   */
  async whenSynced(): Promise<void> {
    const { failures } = this;
    await this.syncs.idle();
    this.assertSound(failures);
  }

  /** For readers whose view can no longer be carried on with. */
  reload(): Promise<void> {
    const until = performance.now() + LIMITS.store_deadline_ms;
    return this.turns.take(() =>
      this.parts.log.isDamaged ? this.recover(until) : this.locked(until, () => this.catchUp()),
    );
  }

  /** Mends what has to be; answers how many syncs had failed when all was well. */
  private async usable(until: number): Promise<number> {
    if (this.problem === undefined && (this.broken || this.parts.log.isDamaged)) await this.recover(until);
    this.assertAddable();
    return this.failures;
  }

  private assertAddable(): void {
    if (this.problem !== undefined) throw this.problem;
  }

  /** Nothing is built on what could not be made durable. */
  private assertSound(failures: number): void {
    if (this.failures !== failures) throw this.failure;
  }

  private async locked<T>(until: number, work: () => Promise<T>): Promise<T> {
    const { log } = this.parts;
    // A little earlier than callers are told that nothing happens: this one knows why.
    await log.lock(until - LOCK_MARGIN_MS);
    this.holding = true;
    try {
      return await work();
    } finally {
      this.holding = false;
      log.unlock();
    }
  }

  private async catchUp(): Promise<void> {
    const { log, mirror } = this.parts;
    const news = log.news(true);
    if (news === "reload") return this.read();
    for (const { generation, units } of news) mirror.apply(generation, units);
  }

  /** Nothing is added to what turns out, only now, to be damaged or set back. */
  private async catchUpToAdd(): Promise<void> {
    await this.catchUp();
    this.assertAddable();
  }

  private async read(): Promise<void> {
    // What was found wrong stays wrong: a second look would no longer know what this process knew.
    while (this.problem === undefined) {
      const base = this.base();
      const loaded = await this.parts.log.load(base);
      // The checkpoint moves without the lock, and a journal goes once it was taken in: look again.
      if (loaded.problem !== undefined && this.base().generation !== base.generation) continue;
      return this.adopt(loaded);
    }
  }

  private base(): Base {
    const base = this.checkpoint.base();
    if (base === undefined) {
      throw new SvcError("corrupt", `${this.parts.checkpoint_path} has lost its contents`);
    }
    return base;
  }

  private adopt(loaded: Loaded): void {
    const { mirror, warn } = this.parts;
    mirror.reset(this.checkpoint, loaded.base);
    for (const { generation, units } of loaded.journals) mirror.apply(generation, units);
    this.problem = loaded.problem;
    this.known = loaded.known;
    if (this.problem !== undefined) warn("the ledger refuses new records", { error: this.problem.message });
  }

  private async write(batch: readonly Pending[], until: number): Promise<boolean> {
    const { reserve } = this.parts;
    try {
      // Room for a halt comes before room for anything else.
      if (reserve.isSpent) await reserve.fill();
      return await this.runAndWrite(batch, until);
    } catch (error) {
      if (!isDiskFull(error) || this.parts.log.isDamaged) throw error;
      const full = new SvcError("unavailable", "ledger unavailable: the disk is full", { cause: error });
      const urgent = batch.filter((pending) => this.isHalting(pending));
      if (urgent.length === 0) throw full;
      await reserve.release();
      // The lock may have been out of our hands for a moment.
      await this.catchUpToAdd();
      const isWritten = await this.runAndWrite(urgent, until);
      for (const pending of batch) {
        if (!urgent.includes(pending)) pending.outcome = { ok: false, error: full };
      }
      return isWritten;
    }
  }

  private async runAndWrite(batch: readonly Pending[], until: number): Promise<boolean> {
    const { log } = this.parts;
    const run = this.newBatch();
    for (const pending of batch) run.run(pending);
    if (run.units.length === 0) return false;
    const written: Journaled = await log.write(run.units, until);
    this.parts.mirror.apply(written.generation, written.units);
    return true;
  }

  private isHalting(pending: Pending): boolean {
    const trial = this.newBatch();
    trial.run({ unit: pending.unit, outcome: undefined });
    return trial.units.some(({ changes }) => changes.some(({ table }) => table === "halts"));
  }

  private newBatch(): Batch {
    const { mirror } = this.parts;
    return new Batch(mirror.head, (table, key) => mirror.get(table, key));
  }

  /**
   * What was written while so many syncs had failed, and all before it. If this one fails, it rejects after what was
   * written has been taken back, so that nobody who is told so finds it there.
   */
  private makeDurable(failures: number): Promise<void> {
    return this.syncs
      .take(() => this.sync(failures))
      .catch(async (error) => {
        await this.turns.take(() => this.mend());
        throw error;
      });
  }

  private async sync(failures: number): Promise<void> {
    this.assertSound(failures);
    try {
      await this.parts.log.sync();
    } catch (error) {
      this.failures++;
      this.failure = error;
      this.broken = true;
      throw error;
    }
  }

  private async mend(): Promise<void> {
    if (!this.broken) return;
    try {
      await this.recover(performance.now() + LIMITS.store_deadline_ms);
    } catch (again) {
      this.parts.warn("the ledger is not usable yet after a failed sync", { error: messageOf(again) });
    }
  }

  /** Opens everything anew, takes back what failed, reads back and verifies what is there. */
  private async recover(until: number): Promise<void> {
    this.broken = true;
    // What is being synced may yet turn out to be durable; only then is it known what to take back.
    await this.syncs.idle();
    await this.locked(until, async () => {
      await this.parts.log.recover();
      await this.connect(until);
      await this.read();
      if (this.problem === undefined) await this.parts.log.resync();
    });
    this.broken = false;
  }

  /** Processes that find nothing at the same time all begin; whoever is first does, and the others wait for it. */
  private async begin(until: number): Promise<void> {
    const path = this.parts.checkpoint_path;
    try {
      await whenFree(() => this.checkpoint.begin(this.parts.log.kind), until, path);
    } catch (error) {
      throw sqliteFailure(error, path);
    }
  }

  private async connect(until: number): Promise<void> {
    const path = this.parts.checkpoint_path;
    try {
      const next = await whenFree(() => Checkpoint.open(path), until, path);
      this.current?.close();
      this.current = next;
      this.parts.mirror.reconnect(next);
    } catch (error) {
      throw sqliteFailure(error, path);
    }
  }
}
