/**
 * Edits another program's file with a backup. `undoWrite` restores the original byte for byte, provided the file has
 * not changed since.
 */
import { mkdir, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { conflictError, invalidError, notFoundError } from "../../kernel/errors.ts";
import { sha256Hex } from "../../kernel/hash.ts";

interface Note {
  /** Null if there was no file. */
  before: string | null;
  /** Hash of the written text. */
  written: string;
}

const backupOf = (path: string) => `${path}.svc-backup`;

export async function readIfThere(path: string): Promise<string | null> {
  try {
    const bytes = await readFile(path);
    const text = bytes.toString("utf8");
    // A file that cannot be restored byte for byte stays untouched.
    if (!Buffer.from(text).equals(bytes)) throw invalidError(`${path} is not UTF-8 text`);
    return text;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/**
 * Returns the path of the backup, or null if there was no file. A second change keeps the first backup, so that an undo
 * restores the original.
 */
export async function writeWithBackup(path: string, text: string): Promise<string | null> {
  const before = await readIfThere(path);
  const earlier = await readNote(path);
  const unbroken = earlier !== null && before !== null && earlier.written === sha256Hex(before);
  const note: Note = { before: unbroken ? earlier.before : before, written: sha256Hex(text) };
  await mkdir(dirname(path), { recursive: true });
  await replace(backupOf(path), JSON.stringify(note));
  await replace(path, text);
  return note.before === null ? null : backupOf(path);
}

export async function undoWrite(path: string): Promise<"restored" | "removed"> {
  const note = await readNote(path);
  if (note === null) throw notFoundError(`nothing to undo: ${backupOf(path)} does not exist`);
  const now = await readIfThere(path);
  if (now === null || sha256Hex(now) !== note.written) {
    throw conflictError("file_changed", `${path} has changed since; the original is in ${backupOf(path)}`);
  }
  if (note.before === null) await rm(path);
  else await replace(path, note.before);
  await rm(backupOf(path));
  return note.before === null ? "removed" : "restored";
}

/** Writes the text, or removes the file for null, and drops a backup that no longer fits. */
export async function replaceWithoutBackup(path: string, text: string | null): Promise<void> {
  if (text === null) await rm(path);
  else await replace(path, text);
  await rm(backupOf(path), { force: true });
}

async function readNote(path: string): Promise<Note | null> {
  const text = await readIfThere(backupOf(path));
  if (text === null) return null;
  try {
    return JSON.parse(text) as Note;
  } catch {
    return null;
  }
}

/**
 * Replaces the file atomically, so that a client reads either the old or the new text. Keeps symbolic links and modes.
 */
async function replace(path: string, text: string): Promise<void> {
  const target = await realpath(path).catch(() => path);
  const found = await stat(target).catch(() => null);
  const fresh = `${target}.${process.pid}.new`;
  await writeFile(fresh, text, { mode: found === null ? 0o600 : found.mode & 0o777 });
  await rename(fresh, target);
}
