/** Writing evidence to a file: it is there whole and on the disk, or not at all. */
import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, link, open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileError, unreadable } from "../config/files.ts";
import { SvcError } from "../kernel/errors.ts";

export type Parts = AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>;

/** Replaces the file in one step once everything was written; a failure leaves what was there. */
export async function writeOutFile(path: string, parts: Parts): Promise<void> {
  const there = await stat(path).catch(() => undefined);
  const problem = there === undefined ? undefined : unreadable(there, Number.POSITIVE_INFINITY);
  if (problem !== undefined) throw new SvcError("invalid", `${path}: ${problem}`);
  await throughTemporary(path, parts, (temporary) => rename(temporary, path));
}

/**
 * The same where nothing may be replaced: false where the name is taken, and what is there stays. The name
 * appears with everything in it, so that whoever is killed on the way leaves nothing under it.
 */
export function createOutFile(path: string, parts: Parts, linkFile = link): Promise<boolean> {
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

/** What file systems answer that know one name for a file only. */
const NO_LINKS: ReadonlySet<string | undefined> = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"]);

/** Killed in between, it leaves an empty file. */
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

/** Writes all of it, durable, under a name of its own; `place` then gives it the name that was asked for. */
async function throughTemporary<T>(
  path: string,
  parts: Parts,
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

async function writeAll(file: FileHandle, parts: Parts, path: string): Promise<void> {
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

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
