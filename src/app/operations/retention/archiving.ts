/** Archiving a run before retention deletes it: a signed bundle, written once and verified from the disk. */
import { join } from "node:path";
import { runBundle } from "../../../evidence/bundle.ts";
import { createOutFile } from "../../../evidence/out-file.ts";
import type { SigningKey } from "../../../evidence/signing.ts";
import { type BundleReport, verifyBundle } from "../../../evidence/verify-bundle.ts";
import { conflict } from "../../../kernel/errors.ts";
import type { LedgerRecord } from "../../../ledger/record.ts";
import type { RunDoc } from "../../../model/run.ts";
import type { Store } from "../../../port/store.ts";
import type { Archive } from "../../../retention/apply.ts";
import { isPlainFile, openArchiveFolder, removeIfEmpty } from "../../../retention/archive.ts";
import type { App } from "../../app.ts";

const NO_KEY =
  "it is to be archived first, archives are signed, and there is no signing key: set signing_key (SVC_SIGNING_KEY), or give --key to the command";

/** Null where no archive was asked for; why there is none where one was asked for and cannot be made. */
export async function archiver(
  app: App,
  { archive_dir, dry_run }: { archive_dir?: string | undefined; dry_run: boolean },
): Promise<Archive | null | { impossible: string }> {
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
  { core: { store, env } }: App,
  run: RunDoc,
  folder: string,
  signing: SigningKey,
): Promise<string> {
  const path = join(folder, `${run.run_id}.json`);
  const bundle = await runBundle(store, run.run_id, signing, env.now());
  await removeIfEmpty(path);
  const created = await createOutFile(path, [bundle]);
  // One that is there already came from an apply that was interrupted, or it is not ours to touch.
  if (!created && !(await isPlainFile(path)))
    throw conflict("archive_unusable", `${path} is not a plain file`);
  const verdict = await verifyBundle(path, new Map([[signing.key_id, signing]]));
  const problem = verdict.ok
    ? await missing(store, run, verdict.report)
    : `does not verify: ${verdict.problem}`;
  if (problem !== null)
    throw conflict(
      "archive_unusable",
      `the archive at ${path} ${problem}; move it away, and it is made anew next time`,
    );
  return path;
}

/** What the archive has not got of the run as it stands now; null where it holds every record of it. */
async function missing(store: Store, run: RunDoc, archive: BundleReport): Promise<string | null> {
  if (archive.run_id !== run.run_id) return "is of another run";
  const { next_run_seq } = run;
  if (archive.count < next_run_seq)
    return `holds ${archive.count} of the run's ${next_run_seq} records: the run went on since`;
  if (archive.last_seq === null) return null;
  // A record's hash covers the whole ledger before it.
  const [line] = await store.records({ from: archive.last_seq, to: archive.last_seq, limit: 1 });
  const isOurs = line !== undefined && (JSON.parse(line) as LedgerRecord).hash === archive.last_hash;
  return isOurs ? null : "is of another ledger";
}
