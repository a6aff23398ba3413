/** Archives a run before retention deletes it: a signed bundle, written once and verified from disk. */
import { join } from "node:path";
import { createOutFile } from "../../evidence/atomic-file.ts";
import { runBundle } from "../../evidence/bundles/bundle.ts";
import { type BundleReport, verifyBundle } from "../../evidence/bundles/verify-bundle.ts";
import type { SigningKey } from "../../evidence/signing.ts";
import type { StateStore } from "../../govern/port/store.ts";
import type { RunDoc } from "../../govern/runs/run.ts";
import { conflictError } from "../../kernel/errors.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import type { ArchiveRun } from "../../retention/apply.ts";
import { isPlainFile, openArchiveFolder, removeIfEmpty } from "../../retention/archive.ts";
import type { ServiceApp } from "../app.ts";

const NO_KEY =
  "it must be archived first, and archives need a signing key: set signing_key (SVC_SIGNING_KEY), or pass --key to the command";

/** The archive function; null if no archive was requested, or the reason why none can be made. */
export async function createArchiver(
  app: ServiceApp,
  { archive_dir, dry_run }: { archive_dir?: string | undefined; dry_run: boolean },
): Promise<ArchiveRun | null | { impossible: string }> {
  if (archive_dir === undefined) return null;
  const { signing, settings } = app;
  const place = {
    archive_dir,
    archive_root: settings.archive_root,
    forbidden: [
      settings.data,
      settings.manifests,
      settings.policy,
      settings.keys,
      settings.registry.manifests,
      settings.registry.policies,
    ].filter((path): path is string => path !== null && !/^https?:/.test(path)),
  };
  const folder = await openArchiveFolder(place, signing !== null && !dry_run);
  return signing === null ? { impossible: NO_KEY } : (run) => archiveRun(app, run, folder, signing);
}

async function archiveRun(
  { core: { store, env } }: ServiceApp,
  run: RunDoc,
  folder: string,
  signing: SigningKey,
): Promise<string> {
  const path = join(folder, `${run.run_id}.json`);
  const bundle = await runBundle(store, run.run_id, signing, env.now());
  await removeIfEmpty(path);
  const created = await createOutFile(path, bundle);
  // An existing file is from an interrupted apply, or does not belong to us.
  if (!created && !(await isPlainFile(path)))
    throw conflictError("archive_unusable", `${path} is not a plain file`);
  const verdict = await verifyBundle(path, new Map([[signing.key_id, signing]]));
  const problem = verdict.ok
    ? await missing(store, run, verdict.report)
    : `does not verify: ${verdict.problem}`;
  if (problem !== null)
    throw conflictError(
      "archive_unusable",
      `the archive at ${path} ${problem}; move it away, and the next run creates it again`,
    );
  return path;
}

/** Compares the archive with the run's current records. Returns the problem; null if the archive is complete. */
async function missing(store: StateStore, run: RunDoc, archive: BundleReport): Promise<string | null> {
  if (archive.run_id !== run.run_id) return "belongs to another run";
  const { next_run_seq } = run;
  if (archive.count < next_run_seq)
    return `holds ${archive.count} of the run's ${next_run_seq} records: the run has continued since`;
  if (archive.last_seq === null) return null;
  // A record's hash covers the entire ledger before it.
  const [line] = await store.records({ from: archive.last_seq, to: archive.last_seq, limit: 1 });
  const isOurs = line !== undefined && (JSON.parse(line) as LedgerRecord).hash === archive.last_hash;
  return isOurs ? null : "belongs to another ledger";
}
