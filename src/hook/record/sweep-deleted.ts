/**
 * Asks the service which recorded runs were deleted, and removes their records and contents. A legal hold keeps a run,
 * and so its contents. If the service does not answer for every run, nothing is removed.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { isRunDeleted } from "../service.ts";
import type { HookSettings } from "../settings.ts";
import { ContentStore, recordFolder } from "./content-store.ts";
import { recordedRuns } from "./record-file.ts";
import type { WorkspaceRecords } from "./workspace-records.ts";

/** Interval between two sweeps. The first one is at the start. */
const SWEEP_MS = 60 * 60 * 1_000;

/** `settingsOf`: the settings under which a run was made. It throws if they are gone. */
export async function sweepDeletedRuns(
  folder: string,
  records: Pick<WorkspaceRecords, "sweep">,
  settingsOf: (run: string) => HookSettings,
): Promise<void> {
  const own = recordFolder(folder);
  if (!existsSync(join(own, "key"))) return;
  const deleted: string[] = [];
  for (const { run } of recordedRuns(new ContentStore(own, false)))
    if (await isRunDeleted(settingsOf(run), run)) deleted.push(run);
  await records.sweep(deleted);
}

/** Sweeps now and every hour. Returns how to stop. */
export function startSweeping(...given: Parameters<typeof sweepDeletedRuns>): () => void {
  // A service that is away is asked again an hour later.
  const sweep = () => void sweepDeletedRuns(...given).catch(() => {});
  sweep();
  const timer = setInterval(sweep, SWEEP_MS);
  timer.unref();
  return () => clearInterval(timer);
}
