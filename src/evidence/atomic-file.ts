/** Writes evidence files atomically: the file is complete and durable, or does not exist. */
import { randomBytes } from "node:crypto";
import { type FileHandle, link, open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileError, syncFolder, unreadableReason } from "../config/files.ts";
import { SvcError } from "../kernel/errors.ts";

export type OutFileParts = AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>;

/** Replaces the file in one step after all content is written. A failure leaves the old file. */
export async function writeOutFile(path: string, parts: OutFileParts): Promise<void> {
  const there = await stat(path).catch(() => undefined);
  const problem = there === undefined ? undefined : unreadableReason(there, Number.POSITIVE_INFINITY);
  if (problem !== undefined) throw new SvcError("invalid", `${path}: ${problem}`);
  await throughTemporary(path, parts, (temporary) => rename(temporary, path));
}

/**
 * Like `writeOutFile`, but never replaces a file: returns false if the name is taken. The name appears together with
 * its full content, so a killed process leaves nothing under it.
 */
export function createOutFile(path: string, parts: OutFileParts, linkFile = link): Promise<boolean> {
  return throughTemporary(path, parts, async (temporary) => {
    try {
      await linkFile(temporary, path);
      return true;
    } catch (error) {
      if (codeOf(error) === "EEXIST") return false;
      if (!NO_LINKS.has(codeOf(error))) throw fileError(path, error);
      return claimThenRename(temporary, path);
    }
  });
}

/** Errors of file systems without hard links. */
const NO_LINKS: ReadonlySet<string | undefined> = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"]);

/** For file systems without hard links. A process killed in between leaves an empty file. */
async function claimThenRename(temporary: string, path: string): Promise<boolean> {
  try {
    await (await open(path, "wx", 0o600)).close();
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw fileError(path, error);
  }
  await rename(temporary, path);
  return true;
}

const codeOf = (error: unknown): string | undefined => (error as NodeJS.ErrnoException).code;

/** Writes all content durably under a temporary name; `place` then moves it to the requested name. */
async function throughTemporary<T>(
  path: string,
  parts: OutFileParts,
  place: (temporary: string) => Promise<T>,
): Promise<T> {
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString("hex")}.tmp`);
  const file = await open(temporary, "wx", 0o600).catch((error: unknown) => {
    throw fileError(path, error);
  });
  try {
    await writeAll(file, parts, path);
    const placed = await place(temporary);
    await syncFolder(dirname(path));
    return placed;
  } finally {
    await rm(temporary, { force: true }).catch(() => undefined);
  }
}

async function writeAll(file: FileHandle, parts: OutFileParts, path: string): Promise<void> {
  try {
    for await (const part of parts) {
      await file.writeFile(part).catch((error: unknown) => {
        throw fileError(path, error);
      });
    }
    await file.sync();
  } finally {
    await file.close();
  }
}
