/** Writing evidence to a file: it is there whole and on the disk, or not at all. */
import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileError, unreadable } from "../config/files.ts";
import { SvcError } from "../kernel/errors.ts";

export type Parts = AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>;

/** Replaces the file in one step once everything was written; a failure leaves what was there. */
export async function writeOutFile(path: string, parts: Parts): Promise<void> {
  const there = await stat(path).catch(() => undefined);
  const problem = there === undefined ? undefined : unreadable(there, Number.POSITIVE_INFINITY);
  if (problem !== undefined) throw new SvcError("invalid", `${path}: ${problem}`);
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString("hex")}.tmp`);
  const file = await open(temporary, "wx", 0o600).catch((error: unknown) => {
    throw fileError(path, error);
  });
  try {
    await writeAll(file, parts, path);
    await rename(temporary, path);
    await syncFolder(dirname(path));
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
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
