/** Archiving a run before retention deletes it: a signed bundle, written once and verified from the disk. */
import { join } from "node:path";
import { runBundle } from "../evidence/bundle.ts";
import { verifyBundle } from "../evidence/verify-bundle.ts";
import { SvcError } from "../kernel/errors.ts";
import type { Archive } from "../retention/apply.ts";
import { createArchiveFile, isPlainFile, openArchiveFolder } from "../retention/archive.ts";
import type { App } from "./app.ts";

/** Null where no archive was asked for; an error where one was asked for and cannot be made. */
export async function archiver(app: App, archive_dir: string | undefined): Promise<Archive | null> {
  if (archive_dir === undefined) return null;
  const { signing, settings, core } = app;
  if (signing === null)
    throw new SvcError("invalid", "archive_dir: archives are signed, and no signing key is configured");
  const folder = await openArchiveFolder({
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
  });
  return async (run_id) => {
    const path = join(folder, `${run_id}.json`);
    const created = await createArchiveFile(
      path,
      await runBundle(core.store, run_id, signing, core.env.now()),
    );
    // One that is there already came from an apply that was interrupted, or it is not ours to touch.
    if (!created && !(await isPlainFile(path))) throw new SvcError("conflict", `${path} is not a plain file`);
    const verdict = await verifyBundle(path, new Map([[signing.key_id, signing]]));
    if (!verdict.ok)
      throw new SvcError("conflict", `the archive at ${path} does not verify: ${verdict.problem}`);
    if (verdict.report.run_id !== run_id)
      throw new SvcError("conflict", `the archive at ${path} is of another run`);
    return path;
  };
}
