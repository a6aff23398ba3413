/**
 * Deletes the working data of runs past their retention. Archives a run and verifies the archive before it deletes
 * anything. One transaction deletes the data and appends the `purged` record. The ledger itself stays.
 */
import { offerSlot, slotOf } from "../govern/approvals/requests.ts";
import type { EngineCore } from "../govern/core.ts";
import { allRows } from "../govern/port/pages.ts";
import type { StateStore, StoreTx } from "../govern/port/store.ts";
import type { TableName } from "../govern/port/tables.ts";
import { appendRunRecord } from "../govern/records.ts";
import { childRunsOf } from "../govern/runs/child-runs.ts";
import type { RunDoc, StepDoc } from "../govern/runs/run.ts";
import { feedKeysOf, resourceCallKeys } from "../govern/traces/built-on.ts";
import { forgetStoredValues } from "../govern/traces/stores.ts";
import { forgetTenantValues } from "../govern/traces/tenant-trace.ts";
import { messageOf } from "../kernel/errors.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import { leaseNeed, mayBeRollingBack } from "../rollback/lease.ts";
import type { ToolManifest } from "../rules/manifest/types.ts";
import { unconfinedStore } from "../store/tenant-store.ts";
import { ACTIVE_HOLDS, activeHolds, calledInTx, coveringHold } from "./holds.ts";
import { dropRunlessIncidents, forgetRunOfIncidents, incidentsNaming } from "./incidents.ts";
import { type PlannedRun, planRetention, type RetentionSettings } from "./plan.ts";

/** Writes a signed bundle of the run, verifies that it is complete, and returns its path. */
export type ArchiveRun = (run: RunDoc) => Promise<string>;

interface ApplyOptions extends RetentionSettings {
  by: string;
  dry_run: boolean;
  /** Null if the caller wants no archive. `impossible` explains why a wanted archive cannot be written. */
  archive: ArchiveRun | null | { impossible: string };
}

export interface ApplyReport {
  deleted: string[];
  would_delete: string[];
  kept: { run_id: string; reason: string }[];
  archived: string[];
}

/** Prefix of the reason for keeping a run whose archive failed. */
export const NOT_ARCHIVED = "it could not be archived";

export async function applyRetention(core: EngineCore, options: ApplyOptions): Promise<ApplyReport> {
  const report: ApplyReport = { deleted: [], would_delete: [], kept: [], archived: [] };
  const parents: PlannedRun[] = [];
  for await (const planned of planRetention(core, options)) {
    if ((planned.run.children ?? 0) > 0) parents.push(planned);
    else await applyTo(core, planned, options, report);
  }
  // A run is deleted after the runs that it opened, which are younger.
  for (const planned of parents.reverse()) await applyTo(core, planned, options, report);
  if (!options.dry_run) await dropRunlessIncidents(core, options.days ?? options.rules.default_days);
  if (report.deleted.length > 0) await core.store.scrub();
  return report;
}

async function applyTo(
  core: EngineCore,
  planned: PlannedRun,
  { archive, dry_run, by }: ApplyOptions,
  report: ApplyReport,
): Promise<void> {
  const { run_id } = planned.run;
  const reason = reasonToKeep(planned);
  if (reason !== null) report.kept.push({ run_id, reason });
  else if (archive !== null && "impossible" in archive)
    report.kept.push({ run_id, reason: archive.impossible });
  else if (dry_run) report.would_delete.push(run_id);
  else await purge(core, planned, by, archive, report);
}

function reasonToKeep({ decision, hold, kept_child, age_days, keep_days }: PlannedRun): string | null {
  if (hold !== null) return `legal hold ${hold.id}: ${hold.reason}`;
  if (decision === "keep" && kept_child !== null && age_days >= keep_days)
    return `its child run ${kept_child} is kept`;
  if (decision === "keep") return `${age_days} of ${keep_days} days old`;
  if (decision === "due") return null;
  return "its manifest requires evidence: an archive directory and signing key are needed";
}

async function purge(
  core: EngineCore,
  planned: PlannedRun,
  by: string,
  archive: ArchiveRun | null,
  report: ApplyReport,
): Promise<void> {
  const { run_id } = planned.run;
  let archived: string | null = null;
  try {
    archived = archive === null ? null : await archive(planned.run);
  } catch (error) {
    report.kept.push({ run_id, reason: `${NOT_ARCHIVED}: ${messageOf(error)}` });
    return;
  }
  const outcome = await purgeRun(core, planned, by, archived);
  if ("kept" in outcome) report.kept.push({ run_id, reason: outcome.kept });
  else {
    core.listeners.recorded([outcome.record]);
    report.deleted.push(run_id);
    if (archived !== null) report.archived.push(archived);
  }
}

type Purged = { record: LedgerRecord } | { kept: string };

async function purgeRun(
  core: EngineCore,
  { run, keep_days }: PlannedRun,
  by: string,
  archived: string | null,
): Promise<Purged> {
  const owned = await ownedKeys(core.store, run.run_id);
  const marks: string[] = [];
  for await (const { key } of allRows(core.store, "tenant_marks", { owner: run.run_id })) marks.push(key);
  const declared = await usedManifests(core.store, run.run_id);
  const [child] = await childRunsOf(unconfinedStore(core.store), run);
  const incidents = await incidentsNaming(core.store, run);
  return core.store.transact({
    needs: [["runs", run.run_id], ["meta", ACTIVE_HOLDS], leaseNeed(run.run_id)],
    run(tx): Purged {
      const now = tx.get("runs", run.run_id);
      if (now === undefined) return { kept: "it was deleted in the meantime" };
      // Checked again inside the unit: a hold placed during the apply wins.
      const hold = coveringHold(activeHolds(tx), now, calledInTx(tx, run.run_id));
      if (hold !== undefined) return { kept: `legal hold ${hold.id}: ${hold.reason}` };
      if (child !== undefined || (now.children ?? 0) !== (run.children ?? 0))
        return { kept: "a child run of it is kept" };
      if (now.next_run_seq !== run.next_run_seq || now.next_step !== run.next_step)
        return { kept: "it was used in the meantime" };
      if (mayBeRollingBack(core, tx, run.run_id)) return { kept: "a rollback of it is in progress" };
      const where = archived === null ? "" : `; archived to ${archived}`;
      const record = appendRunRecord(
        tx,
        { ...now },
        {
          event: "purged",
          actor: by,
          ts_ms: core.env.now(),
          detail: `retention: older than ${keep_days} days${where}`,
        },
      );
      deleteAll(tx, owned);
      forgetTenantValues(core, tx, now, marks);
      forgetStoredValues(core, tx, now, declared);
      forgetRunOfIncidents(tx, run.run_id, incidents);
      tx.delete("runs", run.run_id);
      tx.delete("child_runs", run.run_id);
      tx.delete(...leaseNeed(run.run_id));
      tx.delete("jobs", run.run_id);
      return { record };
    },
  });
}

/** Manifests of the run's calls. */
async function usedManifests(store: StateStore, run_id: string): Promise<ToolManifest[]> {
  const hashes = new Set<string>();
  for await (const { doc } of allRows(store, "steps", { owner: run_id }))
    if (doc.manifest_hash !== null) hashes.add(doc.manifest_hash);
  const found = await Promise.all([...hashes].map((hash) => store.get("manifests", hash)));
  return found.filter((manifest) => manifest !== undefined);
}

type Owned = [TableName, string][];

function deleteAll(tx: StoreTx, owned: Owned): void {
  for (const [table, key] of owned) tx.delete(table, key);
}

/** Lists everything that belongs to the run: each of these tables has an index by run. */
async function ownedKeys(store: StateStore, run_id: string): Promise<Owned> {
  const owned: Owned = [];
  for (const table of [
    "steps",
    "run_tools",
    "approvals",
    "approval_values",
    "plans",
    "closings",
    "idempotency",
    "traces",
    "trace_marks",
    "earlier_calls",
    "value_feeds",
    "replies",
    "captures",
  ] as const) {
    for await (const row of allRows(store, table, { owner: run_id })) {
      owned.push([table, row.key]);
      if (table === "steps") {
        const step = row.doc as StepDoc;
        owned.push(["payloads", row.key], ["touches", row.key]);
        for (const key of feedKeysOf(step)) owned.push(["value_feeds", key]);
        const listed = await store.get("resource_calls", row.key);
        if (listed !== undefined)
          for (const key of resourceCallKeys(listed)) owned.push(["resource_calls", key]);
      }
      if (table === "approvals") {
        const slot = slotOf(row.doc as Parameters<typeof slotOf>[0]);
        owned.push(["approval_slots", slot], ["approval_slots", offerSlot(slot)]);
      }
    }
  }
  return owned;
}
