/**
 * Checks the directory for archives. A caller names it, so it is untrusted: archives go only below the configured root
 * and never into the service's own directories, follow no links and overwrite nothing.
 */
import { lstat, mkdir, realpath, rm } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import { invalidError } from "../kernel/errors.ts";

interface ArchivePlace {
  archive_dir: string;
  archive_root: string | null;
  /** The service's directories and files. An archive must not be in or above them. */
  forbidden: readonly string[];
}

function inside(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way === "" || (!way.startsWith(`..${sep}`) && way !== ".." && !way.startsWith("/"));
}

/**
 * Returns the real path of the directory, and creates it on request. Throws an error that explains why the directory
 * cannot be used.
 */
export async function openArchiveFolder(
  { archive_dir, archive_root, forbidden }: ArchivePlace,
  make: boolean,
): Promise<string> {
  if (archive_dir.includes("\0")) throw invalidError("archive_dir: must not hold a NUL character");
  const wanted = resolve(archive_dir);
  const check = async (path: string) => {
    if (archive_root !== null && !inside(path, await real(archive_root))) {
      throw invalidError("archive_dir: must lie under the configured archive_root");
    }
    for (const one of forbidden) {
      const taken = await real(one);
      if (inside(path, taken) || inside(taken, path))
        throw invalidError("archive_dir: must not be a folder of the service itself");
    }
  };
  await check(await real(wanted));
  if (make) await mkdir(wanted, { recursive: true, mode: 0o700 });
  const found = await real(wanted);
  await check(found);
  return found;
}

/** Resolves links as far as the path exists. */
async function real(path: string): Promise<string> {
  const absolute = resolve(path);
  try {
    return await realpath(absolute);
  } catch {
    const parent = dirname(absolute);
    return parent === absolute ? absolute : join(await real(parent), absolute.slice(parent.length));
  }
}

/** Deletes an empty file, which an interrupted writer leaves on file systems without links. It is not an archive. */
export async function removeIfEmpty(path: string): Promise<void> {
  const there = await lstat(path).catch(() => undefined);
  if (there?.isFile() && there.size === 0) await rm(path);
}

export async function isPlainFile(path: string): Promise<boolean> {
  return (await lstat(path)).isFile();
}
