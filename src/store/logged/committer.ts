/**
 * The way of a batch: lock, catch up, run, write, unlock, sync; and what happens when a step fails. The next batch is
 * run and written while one is synced. No caller is told of what was written or seen before it is durable. After a
 * failure that may have left something, nothing is added before the log was opened anew, read back, verified and made
 * durable again; what a failed sync had covered is then either there for good, or in doubt.
 */
import { messageOf, SvcError } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { Batch, type Pending } from "../batch.ts";
import type { Written } from "../group-commit.ts";
import { type Base, Checkpoint } from "./checkpoint.ts";
import type { Checkpointer } from "./checkpointer.ts";
import { isDiskFull, sqliteFailure, whenFree } from "./connection.ts";
import type { Journaled, Knowledge, LoadedLog, Log } from "./log.ts";
import type { Mirror } from "./mirror.ts";
import type { Reserve } from "./reserve.ts";
import { Turns } from "./turns.ts";

const LOCK_MARGIN_MS = 100;

/**
 * How far the log can be built on, and what becomes of that. `broken`: a sync has failed, or the log is being opened
 * anew; what is durable is in doubt until it was read back. `refusing`: what was read back is damaged or set back, and
 * stays so until the store is opened anew. `lost`: both.
 */
const STATES = {
  sound: { doubted: "broken", recovered: "sound", found_wrong: "refusing" },
  broken: { doubted: "broken", recovered: "sound", found_wrong: "lost" },
  refusing: { doubted: "lost", recovered: "refusing", found_wrong: "refusing" },
  lost: { doubted: "lost", recovered: "refusing", found_wrong: "lost" },
} as const;
type State = keyof typeof STATES;

interface CommitterParts {
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
  /** Everything up to this version of the mirror is durable. */
  private durable = -1;
  /** A sync that was asked for and has not ended: whoever knows no more than it covers waits with it. */
  private asked: { version: number; done: Promise<void> } | undefined;
  private mending: Promise<void> | undefined;
  /** How often reading back has not led to where this process had been. */
  private losses = 0;
  /** Why the last sync failed. */
  private failure: unknown;
  private current: Checkpoint | undefined;
  private state: State = "sound";
  /** Whether the lock is in hand. */
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
    return this.holding || this.state !== "sound";
  }

  private get isInDoubt(): boolean {
    return this.state === "broken" || this.state === "lost";
  }

  private on(event: keyof (typeof STATES)[State]): void {
    this.state = STATES[this.state][event];
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

  /** Resolves when the batch is written; undefined where all that it wrote or saw is durable. */
  commit(
    batch: readonly Pending[],
    until: number,
    leave: () => void,
    checkpointer: Checkpointer,
  ): Promise<Written | undefined> {
    return this.turns.take(async () => {
      await this.usable(until);
      // Closing a journal waits for the sync under way; better here than with the lock in hand.
      if (checkpointer.isDue) await this.syncs.idle();
      await this.locked(until, async () => {
        await this.catchUpToAdd();
        // Closing a journal may have let others in between.
        if (await checkpointer.rotateIfDue()) await this.catchUpToAdd();
        this.assertSound();
        await this.write(batch, leave);
      });
      const durable = this.whenDurable();
      return durable && { durable };
    });
  }

  /** Work under the lock with an up-to-date view, made durable before it is answered. */
  async exclusively(work: () => Promise<void>): Promise<void> {
    const until = performance.now() + LIMITS.store_deadline_ms;
    await this.turns.take(async () => {
      await this.usable(until);
      await this.locked(until, async () => {
        await this.catchUpToAdd();
        await work();
      });
    });
    await this.whenDurable();
  }

  /** When everything that this process has written or seen is durable; undefined where it is. */
  whenDurable(): Promise<void> | undefined {
    const { version } = this.parts.mirror;
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
   * For whoever syncs by itself: the kernel tells of a failed write once, and two syncs at a time would not know
   * whose it was.
   */
  async whenSynced(): Promise<void> {
    await this.syncs.idle();
    this.assertSound();
  }

  /** For readers whose view can no longer be carried on with. */
  reload(): Promise<void> {
    const until = performance.now() + LIMITS.store_deadline_ms;
    return this.turns.take(() =>
      this.parts.log.isDamaged ? this.recover(until) : this.locked(until, () => this.catchUp()),
    );
  }

  /** Mends what has to be. */
  private async usable(until: number): Promise<void> {
    if (this.problem === undefined && (this.isInDoubt || this.parts.log.isDamaged)) await this.recover(until);
    this.assertAddable();
  }

  private assertAddable(): void {
    if (this.problem !== undefined) throw this.problem;
  }

  /** Nothing is built on what could not be made durable. Only a turn at the log mends that. */
  private assertSound(): void {
    if (this.isInDoubt) throw this.failure ?? notVerified();
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

  private adopt(loaded: LoadedLog): void {
    const { mirror, warn } = this.parts;
    mirror.reset(this.checkpoint, loaded.base);
    for (const { generation, units } of loaded.journals) mirror.apply(generation, units);
    this.problem = loaded.problem;
    this.known = loaded.known;
    if (this.problem === undefined) return;
    this.on("found_wrong");
    warn("the ledger refuses new records", { error: this.problem.message });
  }

  private async write(batch: readonly Pending[], leave: () => void): Promise<void> {
    const { reserve } = this.parts;
    try {
      // Room for a halt comes before room for anything else.
      if (reserve.isSpent) await reserve.fill();
      await this.runAndWrite(batch, leave);
    } catch (error) {
      if (!isDiskFull(error) || this.parts.log.isDamaged) throw error;
      const full = new SvcError("unavailable", "ledger unavailable: the disk is full", { cause: error });
      const urgent = batch.filter((pending) => this.isHalting(pending));
      if (urgent.length === 0) throw full;
      await reserve.release();
      // The lock may have been out of our hands for a moment.
      await this.catchUpToAdd();
      await this.runAndWrite(urgent, leave);
      for (const pending of batch) {
        if (!urgent.includes(pending)) pending.outcome = { ok: false, error: full };
      }
    }
  }

  private async runAndWrite(batch: readonly Pending[], leave: () => void): Promise<void> {
    const { log, mirror } = this.parts;
    const run = this.newBatch();
    this.checkpoint.together(() => {
      for (const pending of batch) run.run(pending);
    });
    if (run.units.length === 0) return;
    const { active } = mirror.overlays;
    const written: Journaled = await log.write(run.units, (table, key) => active.get(table, key), leave);
    mirror.apply(written.generation, written.units);
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
   * What this version of the mirror holds. A sync that fails may have lost bytes that the kernel counts as written;
   * reading everything back and writing it again makes good for it, if it leads to where this process had been.
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
    const { version } = this.parts.mirror;
    try {
      await this.parts.log.sync();
    } catch (error) {
      this.failure = error;
      this.on("doubted");
      throw error;
    }
    this.durable = version;
  }

  /** However many wait for it, it is tried once at a time. */
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
      await this.recover(performance.now() + LIMITS.store_deadline_ms);
    } catch (again) {
      this.parts.warn("the ledger is not usable yet after a failed sync", { error: messageOf(again) });
    }
  }

  /** Opens everything anew, reads back and verifies what is there, and makes it durable. */
  private async recover(until: number): Promise<void> {
    const { log, mirror } = this.parts;
    this.on("doubted");
    // The kernel tells of a failed write once; a sync under way must not be told of one that is made here.
    await this.syncs.idle();
    await this.locked(until, async () => {
      await log.recover();
      const reached = this.carriedOn();
      await this.connect(until);
      await this.read();
      if (reached !== log.position) this.losses++;
      if (this.problem !== undefined) return;
      await log.resync();
      this.durable = mirror.version;
    });
    this.failure = undefined;
    this.on("recovered");
  }

  /** Where the log stands, if it carries on from what this process knows. */
  private carriedOn(): string | undefined {
    const { log } = this.parts;
    try {
      return log.news(true) === "reload" ? undefined : log.position;
    } catch {
      return undefined;
    }
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

function notVerified(): SvcError {
  return new SvcError("unavailable", "ledger unavailable: it has to be read back and verified first");
}
