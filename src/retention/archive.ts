/**
 * Where archives may be written. The folder is named by a caller, so it is treated as hostile: never inside the
 * service's own folders, only below the configured root, links are not followed, nothing is overwritten.
 */
import { lstat, mkdir, realpath, rm } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import { invalid } from "../kernel/errors.ts";

interface ArchivePlace {
  archive_dir: string;
  archive_root: string | null;
  /** Folders and files of the service; an archive may not lie in or above them. */
  forbidden: readonly string[];
}

function inside(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way === "" || (!way.startsWith(`..${sep}`) && way !== ".." && !way.startsWith("/"));
}

/** The real folder, made if it is missing and wanted, or an error that says why it may not be used. */
export async function openArchiveFolder(
  { archive_dir, archive_root, forbidden }: ArchivePlace,
  make: boolean,
): Promise<string> {
  if (archive_dir.includes("\0")) throw invalid("archive_dir: must not hold a NUL character");
  const wanted = resolve(archive_dir);
  const check = async (path: string) => {
    if (archive_root !== null && !inside(path, await real(archive_root))) {
      throw invalid("archive_dir: must lie under the configured archive_root");
    }
    for (const one of forbidden) {
      const taken = await real(one);
      if (inside(path, taken) || inside(taken, path))
        throw invalid("archive_dir: must not be a folder of the service itself");
    }
  };
  await check(await real(wanted));
  if (make) await mkdir(wanted, { recursive: true, mode: 0o700 });
  const found = await real(wanted);
  await check(found);
  return found;
}

/** The path with links resolved as far as it exists. */
async function real(path: string): Promise<string> {
  const absolute = resolve(path);
  try {
    return await realpath(absolute);
  } catch {
    const parent = dirname(absolute);
    return parent === absolute ? absolute : join(await real(parent), absolute.slice(parent.length));
  }
}

/** Takes an empty file away: no archive, but what an interrupted writer left where links are not to be had. */
export async function removeIfEmpty(path: string): Promise<void> {
  const there = await lstat(path).catch(() => undefined);
  if (there?.isFile() && there.size === 0) await rm(path);
}

export async function isPlainFile(path: string): Promise<boolean> {
  return (await lstat(path)).isFile();
}
