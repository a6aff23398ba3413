/**
 * Carries out a containment phase by phase, in a fixed order. Each action is recorded together with the job's document
 * in one transaction, so a process that resumes the job knows about it. Changes outside the store (key file, bundles)
 * are recorded in the job beforehand and checked again afterwards.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { writeOutFile } from "../../evidence/atomic-file.ts";
import { runBundle } from "../../evidence/bundles/bundle.ts";
import { denyOpen } from "../../govern/approvals/deny-open.ts";
import { dropLease, leaseKey, renewLease, type WorkLease } from "../../govern/lease.ts";
import type { ContainedKey, ContainmentDoc } from "../../govern/port/docs.ts";
import type { DocKey, StoreTx } from "../../govern/port/store.ts";
import {
  type CallerPrincipal,
  isStillAuthorized,
  localId,
  type ResolvePrincipal,
} from "../../govern/roles.ts";
import { forbiddenError, messageOf, SvcError } from "../../kernel/errors.ts";
import { formatCountOf } from "../../kernel/text/phrases.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { announceRecords, type ServiceApp } from "../app.ts";
import { keyStateText } from "../keys.ts";
import { stateReaderFor } from "../rollback/state-reader.ts";
import { REVOCABLE_AUTHORITY, type RevocableKind, type WiderAuthority } from "./authority.ts";
import { dependentsOfRuns, findKeys, findRequests, listedDependents, previewRollback } from "./preview.ts";
import {
  type ContainReport,
  differencesFrom,
  NO_SIGNING_KEY,
  type RunContainment,
  reportAsJson,
  withTotals,
} from "./report.ts";
import { findActors, type RunInScope, runsInScope } from "./scope.ts";
import { undoRuns } from "./undo-runs.ts";

const DENIED_AT_ONCE = 50;
const KEY_TRIES = 5;

/** Thrown when a containment is stopped. Completed actions are recorded, and the containment can be resumed. */
class ContainmentInterrupted extends SvcError {
  constructor() {
    super("unavailable", "the containment was interrupted; run it again to resume");
    this.name = "ContainmentInterrupted";
  }
}

export class ContainmentWork {
  private readonly app: ServiceApp;
  private readonly lease: WorkLease;
  private readonly lost: AbortSignal;
  private readonly today: ResolvePrincipal | undefined;
  private job: ContainmentDoc;
  /** Keys that could not be disabled, with the reason. */
  private readonly stuck = new Map<string, string>();
  private readonly wider: WiderAuthority[] = [];

  constructor(
    app: ServiceApp,
    job: ContainmentDoc,
    lease: WorkLease,
    lost: AbortSignal,
    today: ResolvePrincipal | undefined,
  ) {
    this.app = app;
    this.job = job;
    this.lease = lease;
    this.lost = lost;
    this.today = today;
  }

  /** Returns the ended job. */
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

  /** Disables a key. Returns null on success or if the key is gone, otherwise the reason for the failure. */
  private async disable({ fingerprint }: ContainedKey): Promise<string | null> {
    for (let attempt = 1; ; attempt++) {
      try {
        const entries = (await this.app.keys?.list()) ?? [];
        const entry = entries.find((one) => one.fingerprint === fingerprint);
        if (entry !== undefined && !entry.disabled)
          await this.app.keys?.patch(entry.index, { disabled: true }, fingerprint);
        return null;
      } catch (error) {
        // A concurrent edit moved the entry; find it again.
        const moved = error instanceof SvcError && error.code === "conflict";
        if (!moved || attempt === KEY_TRIES) return messageOf(error);
      }
    }
  }

  private keyRecord(tx: StoreTx, { name }: ContainedKey): LedgerRecord {
    const ts_ms = this.app.core.env.now();
    const detail = `key ${name}: ${keyStateText(true)}`;
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
    for (const kind of Object.keys(REVOCABLE_AUTHORITY) as RevocableKind[]) {
      const { names, wider } = await REVOCABLE_AUTHORITY[kind].find(this.app, this.job, this.job.actors);
      this.wider.push(...wider);
      for (const id of names) {
        this.mayGoOn();
        await this.revoke(kind, id);
      }
    }
  }

  private async revoke(kind: RevocableKind, id: string): Promise<void> {
    const unit = REVOCABLE_AUTHORITY[kind].revoke(this.app, this.asAdmin(), id);
    const needs = typeof unit.needs === "function" ? unit.needs() : (unit.needs ?? []);
    try {
      await this.write(needs, (tx, job) => {
        const { records } = unit.run(tx);
        const revoked = { ...job.revoked, [kind]: [...job.revoked[kind], id] };
        return { job: { ...job, phase: "authority", revoked }, records };
      });
    } catch (error) {
      // Another caller has revoked or ended it, which has the same effect.
      const ended = error instanceof SvcError && (error.code === "conflict" || error.code === "not_found");
      this.mayGoOn();
      if (!ended) throw error;
    }
  }

  /** The admin who started the containment. Revocations are made in that admin's name. */
  private asAdmin(): CallerPrincipal {
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
    if (job.rollback !== "yes") {
      const left = await previewRollback(app, runs, job.rollback);
      const found = listedDependents(await dependentsOfRuns(app, left));
      await this.write([], (_, job) => ({ job: { ...job, ...found }, records: [] }));
      return left.reverse();
    }
    await this.keepPromise(runs);
    return undoRuns(app, job, runs, {
      signal: this.lost,
      authorised: () => isStillAuthorized(job.authority, this.today, "admin"),
      mayGoOn: () => this.mayGoOn(),
    });
  }

  /** Stores the preview before the first undo, for the report to compare with. A resumed job has it already. */
  private async keepPromise(runs: readonly RunInScope[]): Promise<void> {
    if (this.job.promised !== undefined) return;
    const promised = await previewRollback(this.app, runs, "yes", stateReaderFor(this.app));
    const found = listedDependents(await dependentsOfRuns(this.app, promised));
    await this.write([], (_, job) => ({
      job: { ...job, promised: reportAsJson(promised), ...found },
      records: [],
    }));
  }

  /**
   * Writes a signed bundle for each run and adds its path to `runs`. A bundle that cannot be written is noted in the
   * report.
   */
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
        await writeOutFile(bundle, await runBundle(core.store, run.run_id, signing, core.env.now()));
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
    const { actors, halt_id, halt_was_there, denied, revoked, rollback, promised, dependents } = this.job;
    const undisturbed = this.stuck.size === 0 && (bundles.note === null || bundles.note === NO_SIGNING_KEY);
    const report = withTotals(
      {
        actors,
        halt: { id: halt_id, was_there: halt_was_there },
        keys,
        requests: { denied, approved },
        revoked,
        wider: this.wider,
        rollback,
        runs,
        ...(dependents === undefined ? {} : { dependents: [...dependents] }),
        bundles,
        ...(promised === undefined
          ? {}
          : { differences: differencesFrom(promised as RunContainment[], runs) }),
      },
      undisturbed,
    );
    return this.write([], (tx, job) => {
      const now = core.env.now();
      const record = tx.append({
        event: "contained",
        actor: job.by,
        ts_ms: now,
        detail: `${job.id}: ${describeScope(job)}: ${formatCountOf(runs.length, "run", "runs")}, ${formatCountOf(report.undone, "step", "steps")} undone, ${report.left} left`,
        reason: job.reason,
      });
      dropLease(tx, this.lease);
      const ended: ContainmentDoc = { ...job, state: "done", finished_ms: now, report: reportAsJson(report) };
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

  /** Runs one transaction under the lease, stores the changed job and announces the new records. */
  private async write(
    needs: readonly DocKey[],
    run: (tx: StoreTx, job: ContainmentDoc) => { job: ContainmentDoc; records: LedgerRecord[] },
  ): Promise<ContainmentDoc> {
    const { core } = this.app;
    const { job, lease } = this;
    const done = await core.store.transact({
      needs: [["containments", job.id], leaseKey(lease.subject), ...needs],
      run: (tx: StoreTx) => {
        renewLease(tx, lease, core.env.now());
        const result = run(tx, job);
        tx.put("containments", job.id, result.job);
        return result;
      },
    });
    this.job = done.job;
    announceRecords(core.listeners, done.records);
    return done.job;
  }

  private mayGoOn(): void {
    this.lost.throwIfAborted();
    if (this.app.background.signal.aborted) throw new ContainmentInterrupted();
    if (!isStillAuthorized(this.job.authority, this.today, "admin"))
      throw forbiddenError(
        `${this.job.by} is no longer an admin; the halt stays, and another admin can contain again`,
      );
  }
}

export function describeScope({ actor, tenant }: Pick<ContainmentDoc, "actor" | "tenant">): string {
  return tenant === null ? `actor ${actor}` : `actor ${actor}, tenant ${tenant}`;
}
