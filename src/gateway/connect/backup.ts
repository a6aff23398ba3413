/**
 * Writing another program's file with a way back: what was there is kept beside it, and undoing restores it
 * to the byte, but only while the file was not changed since.
 */
import { mkdir, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { conflict, invalid, notFound } from "../../kernel/errors.ts";
import { sha256Hex } from "../../kernel/hash.ts";

interface Note {
  /** Null where there was no file. */
  before: string | null;
  /** The hash of what was written. */
  written: string;
}

const backupOf = (path: string) => `${path}.svc-backup`;

export async function readIfThere(path: string): Promise<string | null> {
  try {
    const bytes = await readFile(path);
    const text = bytes.toString("utf8");
    // What cannot be written back to the byte is not touched.
    if (!Buffer.from(text).equals(bytes)) throw invalid(`${path} is not UTF-8 text`);
    return text;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

/**
 * Answers where the text that was there before lies, or null where there was no file. A second change keeps the first
 * backup: undo leads back to the beginning.
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
  if (note === null) throw notFound(`there is nothing to undo: no ${backupOf(path)}`);
  const now = await readIfThere(path);
  if (now === null || sha256Hex(now) !== note.written) {
    throw conflict(
      "file_changed",
      `${path} was changed since; what was there before is in ${backupOf(path)}`,
    );
  }
  if (note.before === null) await rm(path);
  else await replace(path, note.before);
  await rm(backupOf(path));
  return note.before === null ? "removed" : "restored";
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

/** Whole or not at all: a client that reads it meanwhile sees one of the two. Links and modes stay. */
async function replace(path: string, text: string): Promise<void> {
  const target = await realpath(path).catch(() => path);
  const found = await stat(target).catch(() => null);
  const fresh = `${target}.${process.pid}.new`;
  await writeFile(fresh, text, { mode: found === null ? 0o600 : found.mode & 0o777 });
  await rename(fresh, target);
}
