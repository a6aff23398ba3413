/**
 * The work of a containment, phase by phase in a fixed order. Each thing that is done is on record and in the
 * job's own document in one unit, so that whoever carries the job on knows it; what lies outside the store (key
 * file, bundles) is written down before and looked at again after.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { denyOpen } from "../../../engine/approvals/deny-open.ts";
import { dropLease, type Lease, needOfLease, renewLease } from "../../../engine/lease.ts";
import { runBundle } from "../../../evidence/bundle.ts";
import { writeOutFile } from "../../../evidence/out-file.ts";
import { forbidden, messageOf, SvcError } from "../../../kernel/errors.ts";
import { plural } from "../../../kernel/words.ts";
import type { LedgerRecord } from "../../../ledger/record.ts";
import { localId, type Principal, stillHolds, type Today } from "../../../model/roles.ts";
import type { ContainedKey, ContainmentDoc } from "../../../port/docs.ts";
import type { Key, Tx } from "../../../port/store.ts";
import { type App, announce } from "../../app.ts";
import { REVOCABLE, type RevocableKind, type WiderLine } from "./authority.ts";
import { asJson, type ContainReport, NO_SIGNING_KEY, type RunContainment, summed } from "./report.ts";
import { findActors, runsInScope } from "./scope.ts";
import { findKeys, findRequests, foretell } from "./survey.ts";
import { undoRuns } from "./undo-runs.ts";

const DENIED_AT_ONCE = 50;
const KEY_TRIES = 5;

/** The containment was told to stop. What it had done by then is recorded; it goes on from there. */
class ContainmentInterrupted extends SvcError {
  constructor() {
    super("unavailable", "the containment was interrupted; run it again to go on");
    this.name = "ContainmentInterrupted";
  }
}

export class ContainmentWork {
  private readonly app: App;
  private readonly lease: Lease;
  private readonly lost: AbortSignal;
  private readonly today: Today | undefined;
  private job: ContainmentDoc;
  /** Keys that could not be disabled, and why. */
  private readonly stuck = new Map<string, string>();
  private readonly wider: WiderLine[] = [];

  constructor(app: App, job: ContainmentDoc, lease: Lease, lost: AbortSignal, today: Today | undefined) {
    this.app = app;
    this.job = job;
    this.lease = lease;
    this.lost = lost;
    this.today = today;
  }

  /** The job as it ended. */
  async run(): Promise<ContainmentDoc> {
    await this.disableKeys();
    await this.denyRequests();
    await this.revokeAuthority();
    const runs = await this.rollBack();
    const bundles = await this.writeBundles(runs);
    return this.end(runs, bundles);
  }

  private async disableKeys(): Promise<void> {
    if (this.job.keys === null) {
      const { disable } = await findKeys(this.app, this.job);
      const planned = disable.map(({ name, fingerprint }) => ({ name, fingerprint }));
      await this.write([], (_, job) => ({ job: { ...job, keys: { planned, done: 0 } }, records: [] }));
    }
    const { planned, done } = this.job.keys!;
    for (const key of planned.slice(done)) {
      this.mayGoOn();
      const problem = await this.disable(key);
      if (problem !== null) this.stuck.set(key.fingerprint, problem);
      await this.write([], (tx, job) => {
        const keys = { planned, done: job.keys!.done + 1 };
        const records = problem === null ? [this.keyRecord(tx, key)] : [];
        return { job: { ...job, keys }, records };
      });
    }
  }

  /** Why it could not be, or null where it is disabled; one that is gone meanwhile needs nothing. */
  private async disable({ fingerprint }: ContainedKey): Promise<string | null> {
    for (let attempt = 1; ; attempt++) {
      try {
        const entries = (await this.app.keys?.list()) ?? [];
        const entry = entries.find((one) => one.fingerprint === fingerprint);
        if (entry !== undefined && !entry.disabled)
          await this.app.keys?.patch(entry.index, { disabled: true }, fingerprint);
        return null;
      } catch (error) {
        // An edit of another's moved the entry; it is looked for again.
        const moved = error instanceof SvcError && error.code === "conflict";
        if (!moved || attempt === KEY_TRIES) return messageOf(error);
      }
    }
  }

  private keyRecord(tx: Tx, { name }: ContainedKey): LedgerRecord {
    const ts_ms = this.app.core.env.now();
    const detail = `key ${name}: disabled changed`;
    return tx.append({ event: "key_changed", actor: this.job.by, ts_ms, detail });
  }

  private async denyRequests(): Promise<void> {
    const { core } = this.app;
    const { open } = await findRequests(this.app, this.job);
    const note = `contained: ${this.job.reason}`;
    for (let at = 0; at < open.length; at += DENIED_AT_ONCE) {
      this.mayGoOn();
      const ids = open.slice(at, at + DENIED_AT_ONCE);
      await this.write(
        ids.map((id) => ["approvals", id] as const),
        (tx, job) => {
          const { denied, records } = denyOpen(core, tx, ids, job.by, note);
          return { job: { ...job, phase: "requests", denied: [...job.denied, ...denied] }, records };
        },
      );
    }
  }

  private async revokeAuthority(): Promise<void> {
    for (const kind of Object.keys(REVOCABLE) as RevocableKind[]) {
      const { names, wider } = await REVOCABLE[kind].find(this.app, this.job, this.job.actors);
      this.wider.push(...wider);
      for (const id of names) {
        this.mayGoOn();
        await this.revoke(kind, id);
      }
    }
  }

  private async revoke(kind: RevocableKind, id: string): Promise<void> {
    const unit = REVOCABLE[kind].revoke(this.app, this.asAdmin(), id);
    const needs = typeof unit.needs === "function" ? unit.needs() : (unit.needs ?? []);
    try {
      await this.write(needs, (tx, job) => {
        const { records } = unit.run(tx);
        const revoked = { ...job.revoked, [kind]: [...job.revoked[kind], id] };
        return { job: { ...job, phase: "authority", revoked }, records };
      });
    } catch (error) {
      // Taken back or ended by another caller in between: that is all that was wanted.
      const ended = error instanceof SvcError && (error.code === "conflict" || error.code === "not_found");
      this.mayGoOn();
      if (!ended) throw error;
    }
  }

  /** An admin began it, and what it takes back is taken back by that admin. */
  private asAdmin(): Principal {
    const { by, authority } = this.job;
    const id = authority?.principal ?? localId(by);
    const nothing = { groups: [], tenant: null, max_permissions: [], allow_observe: false };
    return { id, name: by, roles: ["admin"], ...nothing };
  }

  private async rollBack(): Promise<RunContainment[]> {
    const { app, job } = this;
    this.mayGoOn();
    await this.write([], (_, job) => ({ job: { ...job, phase: "rollback" }, records: [] }));
    const runs = await runsInScope(app.core, (await findActors(app, job)).runs, job);
    if (job.rollback !== "yes") return (await foretell(app, runs, job.rollback)).reverse();
    return undoRuns(app, job, runs, {
      signal: this.lost,
      authorised: () => stillHolds(job.authority, this.today, "admin"),
      mayGoOn: () => this.mayGoOn(),
    });
  }

  /** Names each run's bundle in `runs`. One that cannot be written is told, and holds up nothing. */
  private async writeBundles(runs: RunContainment[]): Promise<ContainReport["bundles"]> {
    const { signing, settings, core } = this.app;
    if (signing === null) return { folder: null, note: NO_SIGNING_KEY };
    const folder = join(settings.data, "contain", this.job.id);
    let note: string | null = null;
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      for (const run of runs) {
        this.mayGoOn();
        const [record] = await core.store.records({ run_id: run.run_id, limit: 1 });
        if (record === undefined) continue;
        const bundle = join(folder, `${run.run_id}.bundle.json`);
        await writeOutFile(bundle, [await runBundle(core.store, run.run_id, signing, core.env.now())]);
        run.bundle = bundle;
      }
    } catch (error) {
      this.mayGoOn();
      if (error instanceof SvcError && error.code === "unavailable") throw error;
      note = `bundles are not complete: ${messageOf(error)}`;
    }
    return { folder, note };
  }

  private async end(runs: RunContainment[], bundles: ContainReport["bundles"]): Promise<ContainmentDoc> {
    this.mayGoOn();
    const { core } = this.app;
    const keys = await this.keysReport();
    const { approved } = await findRequests(this.app, this.job);
    const { actors, halt_id, halt_was_there, denied, revoked, rollback } = this.job;
    const undisturbed = this.stuck.size === 0 && (bundles.note === null || bundles.note === NO_SIGNING_KEY);
    const report = summed(
      {
        actors,
        halt: { id: halt_id, was_there: halt_was_there },
        keys,
        requests: { denied, approved },
        revoked,
        wider: this.wider,
        rollback,
        runs,
        bundles,
      },
      undisturbed,
    );
    return this.write([], (tx, job) => {
      const now = core.env.now();
      const record = tx.append({
        event: "contained",
        actor: job.by,
        ts_ms: now,
        detail: `${job.id}: ${describeScope(job)}: ${plural(runs.length, "run", "runs")}, ${plural(report.undone, "step", "steps")} undone, ${report.left} left`,
        reason: job.reason,
      });
      dropLease(tx, this.lease);
      const ended: ContainmentDoc = { ...job, state: "done", finished_ms: now, report: asJson(report) };
      return { job: ended, records: [record] };
    });
  }

  private async keysReport(): Promise<ContainReport["keys"]> {
    const { left, note } = await findKeys(this.app, this.job);
    const planned = this.job.keys?.planned ?? [];
    const stuck = planned.filter(({ fingerprint }) => this.stuck.has(fingerprint));
    return {
      disabled: planned.filter(({ fingerprint }) => !this.stuck.has(fingerprint)),
      left: [
        ...left,
        ...stuck.map((key) => ({ ...key, why: `could not be disabled: ${this.stuck.get(key.fingerprint)}` })),
      ],
      note,
    };
  }

  /** One unit under the lease: the job as it is afterwards, with what was recorded. */
  private async write(
    needs: readonly Key[],
    run: (tx: Tx, job: ContainmentDoc) => { job: ContainmentDoc; records: LedgerRecord[] },
  ): Promise<ContainmentDoc> {
    const { core } = this.app;
    const { job, lease } = this;
    const done = await core.store.transact({
      needs: [["containments", job.id], needOfLease(lease.subject), ...needs],
      run: (tx: Tx) => {
        renewLease(tx, lease, core.env.now());
        const result = run(tx, job);
        tx.put("containments", job.id, result.job);
        return result;
      },
    });
    this.job = done.job;
    announce(core.listeners, done.records);
    return done.job;
  }

  private mayGoOn(): void {
    this.lost.throwIfAborted();
    if (this.app.background.signal.aborted) throw new ContainmentInterrupted();
    if (!stillHolds(this.job.authority, this.today, "admin"))
      throw forbidden(
        `${this.job.by} is no longer an admin; the halt stays, and another admin can contain again`,
      );
  }
}

export function describeScope({ actor, tenant }: Pick<ContainmentDoc, "actor" | "tenant">): string {
  return tenant === null ? `actor ${actor}` : `actor ${actor}, tenant ${tenant}`;
}
