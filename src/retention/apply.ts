/**
 * Deleting the working data of runs that are due. A run is archived and the archive verified before anything
 * of it goes; what goes, goes in one unit together with its `purged` record; the ledger itself stays.
 */
import { offerSlot, slotOf } from "../engine/approvals/requests.ts";
import type { Core } from "../engine/core.ts";
import { appendRunRecord } from "../engine/records.ts";
import { messageOf } from "../kernel/errors.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import type { RunDoc } from "../model/run.ts";
import { allRows } from "../port/pages.ts";
import type { Store, Tx } from "../port/store.ts";
import type { TableName } from "../port/tables.ts";
import { leaseNeed, mayBeRollingBack } from "../rollback/lease.ts";
import { ACTIVE_HOLDS, activeHolds, calledInTx, coveringHold } from "./holds.ts";
import { type PlannedRun, planRetention, type RetentionSettings } from "./plan.ts";

/** Writes a signed bundle of the run and verifies that it holds all of it; answers its path. */
export type Archive = (run: RunDoc) => Promise<string>;

interface ApplyOptions extends RetentionSettings {
  by: string;
  dry_run: boolean;
  /** Null where none was asked for; why not, where one was asked for and cannot be made. */
  archive: Archive | null | { impossible: string };
}

export interface ApplyReport {
  deleted: string[];
  would_delete: string[];
  kept: { run_id: string; reason: string }[];
  archived: string[];
}

/** How the reason begins for which a run was kept that was to be archived and could not be. */
export const NOT_ARCHIVED = "it could not be archived";

export async function applyRetention(core: Core, options: ApplyOptions): Promise<ApplyReport> {
  const report: ApplyReport = { deleted: [], would_delete: [], kept: [], archived: [] };
  for await (const planned of planRetention(core, options)) {
    const { run_id } = planned.run;
    const { archive } = options;
    const reason = reasonToKeep(planned);
    if (reason !== null) report.kept.push({ run_id, reason });
    else if (archive !== null && "impossible" in archive)
      report.kept.push({ run_id, reason: archive.impossible });
    else if (options.dry_run) report.would_delete.push(run_id);
    else await purge(core, planned, options.by, archive, report);
  }
  if (report.deleted.length > 0) await core.store.scrub();
  return report;
}

function reasonToKeep({ decision, hold, age_days, keep_days }: PlannedRun): string | null {
  if (hold !== null) return `legal hold ${hold.id}: ${hold.reason}`;
  if (decision === "keep") return `${age_days} of ${keep_days} days old`;
  if (decision === "due") return null;
  return "its manifest requires evidence: an archive directory and signing key are needed";
}

async function purge(
  core: Core,
  planned: PlannedRun,
  by: string,
  archive: Archive | null,
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
  core: Core,
  { run, keep_days }: PlannedRun,
  by: string,
  archived: string | null,
): Promise<Purged> {
  const owned = await ownedKeys(core.store, run.run_id);
  return core.store.transact({
    needs: [["runs", run.run_id], ["meta", ACTIVE_HOLDS], leaseNeed(run.run_id)],
    run(tx): Purged {
      const now = tx.get("runs", run.run_id);
      if (now === undefined) return { kept: "it was deleted meanwhile" };
      // Looked at again inside the unit: a hold that was placed during the apply wins.
      const hold = coveringHold(activeHolds(tx), now, calledInTx(tx, run.run_id));
      if (hold !== undefined) return { kept: `legal hold ${hold.id}: ${hold.reason}` };
      if (now.next_run_seq !== run.next_run_seq || now.next_step !== run.next_step)
        return { kept: "it was used meanwhile" };
      if (mayBeRollingBack(core, tx, run.run_id)) return { kept: "a rollback of it is under way" };
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
      tx.delete("runs", run.run_id);
      tx.delete(...leaseNeed(run.run_id));
      tx.delete("jobs", run.run_id);
      return { record };
    },
  });
}

type Owned = [TableName, string][];

function deleteAll(tx: Tx, owned: Owned): void {
  for (const [table, key] of owned) tx.delete(table, key);
}

/** Everything that belongs to the run: each of these tables is indexed by it. */
async function ownedKeys(store: Store, run_id: string): Promise<Owned> {
  const owned: Owned = [];
  for (const table of [
    "steps",
    "run_tools",
    "approvals",
    "approval_values",
    "plans",
    "closings",
    "idempotency",
    "replies",
    "captures",
  ] as const) {
    for await (const row of allRows(store, table, { owner: run_id })) {
      owned.push([table, row.key]);
      if (table === "steps") owned.push(["payloads", row.key], ["touches", row.key]);
      if (table === "approvals") {
        const slot = slotOf(row.doc as Parameters<typeof slotOf>[0]);
        owned.push(["approval_slots", slot], ["approval_slots", offerSlot(slot)]);
      }
    }
  }
  return owned;
}
