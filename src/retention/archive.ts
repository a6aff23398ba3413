/**
 * Where archives may be written. The folder is named by a caller, so it is treated as hostile: never inside the
 * service's own folders, only below the configured root, links are not followed, nothing is overwritten.
 */
import { constants } from "node:fs";
import { lstat, mkdir, open, realpath } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import { invalid } from "../kernel/errors.ts";

export interface ArchivePlace {
  archive_dir: string;
  archive_root: string | null;
  /** Folders and files of the service; an archive may not lie in or above them. */
  forbidden: readonly string[];
}

function inside(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way === "" || (!way.startsWith(`..${sep}`) && way !== ".." && !way.startsWith("/"));
}

/** The real folder, made if it was missing, or an error that says why it may not be used. */
export async function openArchiveFolder({
  archive_dir,
  archive_root,
  forbidden,
}: ArchivePlace): Promise<string> {
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
  await mkdir(wanted, { recursive: true, mode: 0o700 });
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

/** Creates the file with the text, durable; an existing one is answered with false and left alone. */
export async function createArchiveFile(path: string, text: string): Promise<boolean> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  let handle: Awaited<ReturnType<typeof open>>;
  try {
    handle = await open(path, flags, 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  const folder = await open(dirname(path), constants.O_RDONLY);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
  return true;
}

export async function isPlainFile(path: string): Promise<boolean> {
  return (await lstat(path)).isFile();
}
