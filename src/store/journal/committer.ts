/**
 * Commits a batch: lock, catch up, run, write, unlock, sync. Also handles failures of each step. While one batch syncs,
 * the next one runs and writes. No caller learns of written or seen data before that data is durable. After a failure
 * that may have left something, the log is reopened, read back, verified and made durable before anything is added. The
 * data of a failed sync is then either durable, or its outcome is unknown.
 */
import { messageOf, SvcError } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { PendingUnit } from "../batch.ts";
import type { WrittenBatch } from "../group-commit.ts";
import { type CheckpointPosition, CheckpointReader } from "./checkpoint/checkpoint.ts";
import type { JournalCheckpointer } from "./checkpoint/checkpointer.ts";
import { isDiskFull, sqliteFailure, whenFree } from "./connection.ts";
import type { HaltReserve } from "./halt-reserve.ts";
import type { JournalUnits, LoadedLog, StoreIntegrity, StoreLog } from "./log.ts";
import { SerialQueue } from "./serial-queue.ts";
import type { StoreView } from "./store-view.ts";

const LOCK_MARGIN_MS = 100;

/**
 * Whether the log can accept records, and the transitions. `broken`: a sync failed or the log is reopening, so
 * durability is unknown until the log has been read back. `refusing`: the log is damaged or older than expected; lasts
 * until the store is reopened. `lost`: both.
 */
const STATES = {
  sound: { doubted: "broken", recovered: "sound", found_wrong: "refusing" },
  broken: { doubted: "broken", recovered: "sound", found_wrong: "lost" },
  refusing: { doubted: "lost", recovered: "refusing", found_wrong: "refusing" },
  lost: { doubted: "lost", recovered: "refusing", found_wrong: "lost" },
} as const;
type State = keyof typeof STATES;

interface CommitterParts {
  log: StoreLog;
  storeView: StoreView;
  reserve: HaltReserve;
  checkpoint_path: string;
  warn(message: string, fields?: Record<string, unknown>): void;
}

export class LogCommitter {
  private readonly parts: CommitterParts;
  /** Serializes writers of the log. */
  private readonly turns = new SerialQueue();
  /** Serializes syncs. A sync never waits for a writer; a writer can wait for a sync. */
  private readonly syncs = new SerialQueue();
  /** Everything up to this version of the store view is durable. */
  private durable = -1;
  /** A sync in progress. Callers with data that it covers share it. */
  private asked: { version: number; done: Promise<void> } | undefined;
  private mending: Promise<void> | undefined;
  /** How often a recovery did not return to the previous position. */
  private losses = 0;
  /** The cause of the last failed sync. */
  private failure: unknown;
  private current: CheckpointReader | undefined;
  private state: State = "sound";
  /** Whether this process holds the lock. */
  private holding = false;
  /** Why the log refuses records until an operator acts. Lasts until the store is reopened. */
  problem: SvcError | undefined;
  private known: StoreIntegrity = "everything";

  constructor(parts: CommitterParts) {
    this.parts = parts;
  }

  get checkpoint(): CheckpointReader {
    if (this.current === undefined) throw new SvcError("unavailable", "the store is closed");
    return this.current;
  }

  /**
   * Whether this process must not look for changes by others now, because it holds the lock or the log is not sound.
   */
  get isStill(): boolean {
    return this.holding || this.state !== "sound";
  }

  private get isInDoubt(): boolean {
    return this.state === "broken" || this.state === "lost";
  }

  private on(event: keyof (typeof STATES)[State]): void {
    this.state = STATES[this.state][event];
  }

  /** Throws if the answer is uncertain, so that no reader takes data for missing. */
  assertKnown(what: "documents" | "ledger"): void {
    if (this.known === "everything" || this.known === what) return;
    throw this.problem;
  }

  async open(): Promise<void> {
    const until = performance.now() + SERVICE_LIMITS.store_deadline_ms;
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

  /** Resolves when the batch is written. Returns undefined if everything it wrote or read is already durable. */
  commit(
    batch: readonly PendingUnit[],
    until: number,
    leave: () => void,
    checkpointer: JournalCheckpointer,
  ): Promise<WrittenBatch | undefined> {
    return this.turns.take(async () => {
      await this.usable(until);
      // Closing a journal waits for the current sync. Better here than while this process holds the lock.
      if (checkpointer.isDue) await this.syncs.idle();
      await this.locked(until, async () => {
        await this.catchUpToAdd();
        // Other processes may have written while the journal was being closed.
        if (await checkpointer.rotateIfDue()) await this.catchUpToAdd();
        this.assertSound();
        await this.write(batch, leave);
      });
      const durable = this.whenDurable();
      return durable && { durable };
    });
  }

  /** Runs work under the lock with an up-to-date view, and resolves once the result is durable. */
  async exclusively(work: () => Promise<void>): Promise<void> {
    const until = performance.now() + SERVICE_LIMITS.store_deadline_ms;
    await this.turns.take(async () => {
      await this.usable(until);
      await this.locked(until, async () => {
        await this.catchUpToAdd();
        await work();
      });
    });
    await this.whenDurable();
  }

  /** Resolves when everything is durable that this process has written or seen. Returns undefined if it already is. */
  whenDurable(): Promise<void> | undefined {
    const { version } = this.parts.storeView;
    if (this.durable >= version) return undefined;
    if (this.asked?.version === version) return this.asked.done;
    const done = this.makeDurable(version);
    this.asked = { version, done };
    const forget = () => {
      if (this.asked?.done === done) this.asked = undefined;
    };
    done.then(forget, forget);
    return done;
  }

  /**
   * For callers that sync on their own: the kernel reports a failed write once, and with two concurrent syncs it would
   * be unclear which one failed.
   */
  async whenSynced(): Promise<void> {
    await this.syncs.idle();
    this.assertSound();
  }

  /** For readers whose view can no longer follow the log. */
  reload(): Promise<void> {
    const until = performance.now() + SERVICE_LIMITS.store_deadline_ms;
    return this.turns.take(() =>
      this.parts.log.isDamaged ? this.recover(until) : this.locked(until, () => this.catchUp()),
    );
  }

  /** Recovers the log if necessary. */
  private async usable(until: number): Promise<void> {
    if (this.problem === undefined && (this.isInDoubt || this.parts.log.isDamaged)) await this.recover(until);
    this.assertAddable();
  }

  private assertAddable(): void {
    if (this.problem !== undefined) throw this.problem;
  }

  /** Nothing can build on data that is not durable. Only a writer's turn can fix that. */
  private assertSound(): void {
    if (this.isInDoubt) throw this.failure ?? notVerified();
  }

  private async locked<T>(until: number, work: () => Promise<T>): Promise<T> {
    const { log } = this.parts;
    // Slightly before the callers' timeout, because this error knows the cause.
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
    const { log, storeView } = this.parts;
    const news = log.news(true);
    if (news === "reload") return this.read();
    for (const { generation, units } of news) storeView.apply(generation, units);
  }

  /** Checks again after catching up: the log may only now prove to be damaged or older than expected. */
  private async catchUpToAdd(): Promise<void> {
    await this.catchUp();
    this.assertAddable();
  }

  private async read(): Promise<void> {
    // A problem stays: a second read would no longer know the previous position.
    while (this.problem === undefined) {
      const base = this.base();
      const loaded = await this.parts.log.load(base);
      // The checkpoint moves without the lock, and an applied journal disappears. Read again.
      if (loaded.problem !== undefined && this.base().generation !== base.generation) continue;
      return this.adopt(loaded);
    }
  }

  private base(): CheckpointPosition {
    const base = this.checkpoint.base();
    if (base === undefined) {
      throw new SvcError("corrupt", `${this.parts.checkpoint_path} has lost its contents`);
    }
    return base;
  }

  private adopt(loaded: LoadedLog): void {
    const { storeView, warn } = this.parts;
    storeView.reset(this.checkpoint, loaded.base);
    for (const { generation, units } of loaded.journals) storeView.apply(generation, units);
    this.problem = loaded.problem;
    this.known = loaded.known;
    if (this.problem === undefined) return;
    this.on("found_wrong");
    warn("the ledger refuses new records", { error: this.problem.message });
  }

  private async write(batch: readonly PendingUnit[], leave: () => void): Promise<void> {
    const { reserve } = this.parts;
    try {
      // First restore the disk space reserved for halts.
      if (reserve.isSpent) await reserve.fill();
      await this.runAndWrite(batch, leave);
    } catch (error) {
      if (!isDiskFull(error) || this.parts.log.isDamaged) throw error;
      const full = new SvcError("unavailable", "ledger unavailable: the disk is full", { cause: error });
      const urgent = batch.filter((pending) => this.isHalting(pending));
      if (urgent.length === 0) throw full;
      await reserve.release();
      // This process may have lost the lock for a moment.
      await this.catchUpToAdd();
      await this.runAndWrite(urgent, leave);
      for (const pending of batch) {
        if (!urgent.includes(pending)) pending.outcome = { ok: false, error: full };
      }
    }
  }

  private async runAndWrite(batch: readonly PendingUnit[], leave: () => void): Promise<void> {
    const { log, storeView } = this.parts;
    const run = this.parts.storeView.newBatch();
    this.checkpoint.together(() => {
      for (const pending of batch) run.run(pending);
    });
    if (run.units.length === 0) return;
    const { active } = storeView.overlays;
    const written: JournalUnits = await log.write(run.units, (table, key) => active.get(table, key), leave);
    storeView.apply(written.generation, written.units);
  }

  private isHalting(pending: PendingUnit): boolean {
    const trial = this.parts.storeView.newBatch();
    trial.run({ unit: pending.unit, outcome: undefined });
    return trial.units.some(({ changes }) => changes.some(({ table }) => table === "halts"));
  }

  /**
   * Makes this version of the store view durable. A failed sync may have lost bytes that the kernel counts as written.
   * Reading everything back and writing it again repairs that, if it returns to the previous position.
   */
  private async makeDurable(version: number): Promise<void> {
    const { losses } = this;
    try {
      await this.syncs.take(() => this.sync(version));
    } catch (error) {
      await this.mended();
      if (this.durable < version || this.losses !== losses) throw error;
    }
  }

  private async sync(wanted: number): Promise<void> {
    if (this.durable >= wanted) return;
    this.assertSound();
    const { version } = this.parts.storeView;
    try {
      await this.parts.log.sync();
    } catch (error) {
      this.failure = error;
      this.on("doubted");
      throw error;
    }
    this.durable = version;
  }

  /** Runs one repair at a time. Concurrent callers share it. */
  private mended(): Promise<void> {
    this.mending ??= this.turns
      .take(() => this.mend())
      .finally(() => {
        this.mending = undefined;
      });
    return this.mending;
  }

  private async mend(): Promise<void> {
    if (!this.isInDoubt) return;
    try {
      await this.recover(performance.now() + SERVICE_LIMITS.store_deadline_ms);
    } catch (again) {
      this.parts.warn("the ledger is not usable yet after a failed sync", { error: messageOf(again) });
    }
  }

  /** Reopens everything, reads it back, verifies it and makes it durable. */
  private async recover(until: number): Promise<void> {
    const { log, storeView } = this.parts;
    this.on("doubted");
    // The kernel reports a failed write once, so a sync in progress must not consume the report of a write from here.
    await this.syncs.idle();
    await this.locked(until, async () => {
      await log.recover();
      const reached = this.carriedOn();
      await this.connect(until);
      await this.read();
      if (reached !== log.position) this.losses++;
      if (this.problem !== undefined) return;
      await log.resync();
      this.durable = storeView.version;
    });
    this.failure = undefined;
    this.on("recovered");
  }

  /** Returns the log's position if it continues from the data that this process knows. */
  private carriedOn(): string | undefined {
    const { log } = this.parts;
    try {
      return log.news(true) === "reload" ? undefined : log.position;
    } catch {
      return undefined;
    }
  }

  /** Creates the checkpoint. If several processes find none, the first one creates it and the others wait. */
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
      const next = await whenFree(() => CheckpointReader.open(path), until, path);
      this.current?.close();
      this.current = next;
      this.parts.storeView.reconnect(next);
    } catch (error) {
      throw sqliteFailure(error, path);
    }
  }
}

function notVerified(): SvcError {
  return new SvcError("unavailable", "ledger unavailable: it has to be read back and verified first");
}
