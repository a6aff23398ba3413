/**
 * Opens the files after a checkpoint, under the lock. Reads the journals and the ledger's tail, asks `reconcile` for
 * the valid content, and repairs the files accordingly. The cost depends on the tail only, not on the ledger's length.
 */
import { join } from "node:path";
import { SvcError } from "../../kernel/errors.ts";
import { EMPTY_HEAD, GENESIS_HASH, type LedgerHead, splitLine } from "../../ledger/record.ts";
import { type CheckpointPosition, EMPTY_CHECKPOINT } from "../journal/checkpoint/checkpoint.ts";
import {
  type DiskOps,
  EXISTING_APPEND,
  errorCode,
  readRange,
  syncDirectory,
  writeAll,
} from "../journal/disk.ts";
import { encodeItem, JOURNAL_FORMAT, type LineInfo, type UnitBlock } from "../journal/lines/block.ts";
import { parseJournal } from "../journal/lines/parse-journal.ts";
import { type LoadedLog, olderStateError } from "../journal/log.ts";
import { newerSchema } from "../journal/schema.ts";
import { scanLedger } from "./ledger-scan.ts";
import { isContinued, type LogPosition } from "./log-position.ts";
import { journalName, journalPath, ledgerPath } from "./paths.ts";
import {
  damagedJournal,
  emptyRecovery,
  type FileRepair,
  type LogRecovery,
  lineInfo,
  type ReadJournal,
  readOnlyRecovery,
  reconcileJournals,
  truncatedLedger,
} from "./recover.ts";
import type { LogCursor } from "./tail-reader.ts";

interface LoadParts {
  disk: DiskOps;
  folder: string;
  base: CheckpointPosition;
  /** The last position that this process knew, if any. */
  last_known: LogPosition | undefined;
  warn(message: string, fields?: Record<string, unknown>): void;
}

interface OpenJournal extends ReadJournal {
  fd: number;
}

export async function loadFiles(parts: LoadParts): Promise<{ cursor: LogCursor; loaded: LoadedLog }> {
  const { disk, folder } = parts;
  const ledger_fd = await openExisting(disk, ledgerPath(folder));
  const journals: OpenJournal[] = [];
  try {
    const missing = await openJournals(parts, journals);
    return await settle(parts, ledger_fd, journals, judge(parts, ledger_fd, journals, missing));
  } catch (error) {
    for (const fd of [ledger_fd, ...journals.map(({ fd }) => fd)]) await disk.close(fd).catch(() => {});
    throw error;
  }
}

function judge(
  { disk, base, last_known }: LoadParts,
  ledger_fd: number,
  journals: readonly ReadJournal[],
  missing: SvcError | undefined,
): LogRecovery {
  const { size } = disk.facts(ledger_fd);
  // Checked before any repair. Nothing that this process knew was torn or unacknowledged.
  const isOurs =
    last_known === undefined ||
    (isContinued(last_known, base, journals) && endsAt(disk, ledger_fd, size, last_known));
  if (!isOurs) return emptyRecovery(olderStateError("ledger.jsonl"), base);
  if (!endsAt(disk, ledger_fd, size, base)) {
    const problem =
      size < base.size
        ? truncatedLedger(base.size, size)
        : new SvcError("corrupt", `ledger.jsonl does not verify at record ${base.head.records - 1}`);
    const isWhole = missing === undefined && damagedJournal(journals) === undefined;
    return isWhole ? readOnlyRecovery(problem, journals) : emptyRecovery(problem, base);
  }
  const synced = knownSynced(journals);
  const scan = scanLedger(readRange(disk, ledger_fd, base.size, size), base.head, base.size, synced);
  return reconcileJournals(base, journals, missing, scan, synced);
}

/** The largest ledger size that any writer recorded as durable. */
function knownSynced(journals: readonly ReadJournal[]): number {
  let known = 0;
  for (const { parsed } of journals) {
    for (const item of parsed.items)
      if (item.kind === "unit") known = Math.max(known, item.synced?.ledger ?? 0);
  }
  return known;
}

async function openExisting(disk: DiskOps, path: string): Promise<number> {
  try {
    return await disk.open(path, EXISTING_APPEND);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error;
    throw new SvcError("unavailable", `ledger unavailable: ${path} is missing`, { cause: error });
  }
}

/** Opens and reads every journal after the checkpoint. Returns the problem with them, if any. */
async function openJournals(parts: LoadParts, into: OpenJournal[]): Promise<SvcError | undefined> {
  const { disk, folder, base } = parts;
  let { crc } = base;
  for (let generation = base.generation + 1; ; ) {
    let fd: number;
    try {
      fd = await disk.open(journalPath(folder, generation), EXISTING_APPEND);
    } catch (error) {
      if (errorCode(error) !== "ENOENT") throw error;
      return new SvcError(
        "corrupt",
        `${journalName(generation)} is missing, and the newest working data with it: restore the data directory from a backup`,
      );
    }
    const parsed = parseJournal(readRange(disk, fd, 0, disk.facts(fd).size), 0, crc);
    into.push({ generation, fd, parsed });
    const [first] = parsed.items;
    if (first?.kind !== "header" || first.generation !== generation) {
      return new SvcError("corrupt", `${journalName(generation)} does not begin as a journal should`);
    }
    if (first.format > JOURNAL_FORMAT)
      throw newerSchema(journalName(generation), first.format, JOURNAL_FORMAT);
    const last = parsed.items[parsed.items.length - 1]!;
    if (last.kind !== "next") return undefined;
    generation = last.generation;
    crc = last.crc;
  }
}

/** Longer than any line. */
const LAST_LINE = 65_536;

/** Checks that a line of a ledger of length `size` ends at that position, and is the expected one. */
function endsAt(disk: DiskOps, fd: number, size: number, at: { head: LedgerHead; size: number }): boolean {
  if (size < at.size) return false;
  if (at.size === 0) return true;
  const bytes = readRange(disk, fd, Math.max(0, at.size - LAST_LINE), at.size);
  const line = bytes.toString("utf8", bytes.lastIndexOf(0x0a, bytes.length - 2) + 1, bytes.length - 1);
  return bytes[bytes.length - 1] === 0x0a && line.includes(`,"hash":"${at.head.hash}"`);
}

/** Repairs the files, closes unneeded ones, and returns the position to continue from. */
async function settle(parts: LoadParts, ledger_fd: number, journals: OpenJournal[], verdict: LogRecovery) {
  const { disk, base } = parts;
  const { repair, problem, known } = verdict;
  const active = verdict.journals[verdict.journals.length - 1];
  const journal_fd = journals.find(({ generation }) => generation === active?.generation)?.fd ?? ledger_fd;
  const kept = verdict.journals.map(({ generation, units }) => ({ generation, units: [...units] }));
  const last = kept.flatMap(({ units }) => units).at(-1);
  let cursor: LogCursor = {
    ledger_fd,
    ledger_ino: disk.facts(ledger_fd).ino,
    ledger_size: last?.size ?? base.size,
    head: last?.head ?? base.head,
    format: formatOf(journals, active?.generation),
    generation: active?.generation ?? base.generation + 1,
    journal_fd,
    journal_ino: disk.facts(journal_fd).ino,
    journal_size: active?.end ?? 0,
    crc: active?.crc ?? base.crc,
  };
  if (repair !== undefined) {
    cursor = await perform(parts, cursor, repair);
    if (repair.mark !== undefined) kept[kept.length - 1]!.units.push(repair.mark);
  }
  for (const { fd } of journals) if (fd !== journal_fd) await disk.close(fd).catch(() => {});
  return { cursor, loaded: { base, journals: kept, problem, known } satisfies LoadedLog };
}

function formatOf(journals: readonly ReadJournal[], generation: number | undefined): number {
  const [first] = journals.find((journal) => journal.generation === generation)?.parsed.items ?? [];
  return first?.kind === "header" ? first.format : JOURNAL_FORMAT;
}

async function perform(parts: LoadParts, cursor: LogCursor, repair: FileRepair): Promise<LogCursor> {
  const { disk, folder, warn } = parts;
  for (const message of repair.messages) warn(message, { folder });
  if (repair.lost_lines.length > 0) {
    // Never acknowledged, but this process must not destroy them.
    const aside = join(folder, `cut-${Date.now()}-${cursor.head.records}.jsonl`);
    const fd = await disk.open(aside, "wx");
    try {
      await writeAll(disk, fd, Buffer.from(`${repair.lost_lines.join("\n")}\n`), null);
      await disk.sync(fd);
    } finally {
      await disk.close(fd);
    }
    await syncDirectory(disk, folder);
    warn("saved the removed records to another file", { file: aside });
  }
  // A crash between the two cuts is safe: the next start does the rest.
  await truncateFile(disk, cursor.journal_fd, cursor.journal_size);
  if (repair.ledger_end !== undefined) await truncateFile(disk, cursor.ledger_fd, repair.ledger_end);
  let after = cursor;
  if (repair.mark !== undefined) {
    const { text, crc } = encodeItem(repair.mark, cursor.crc);
    await writeAll(disk, cursor.journal_fd, Buffer.from(text), null);
    const { head, size } = repair.mark;
    after = {
      ...cursor,
      head,
      ledger_size: size,
      journal_size: cursor.journal_size + Buffer.byteLength(text),
      crc,
    };
  }
  await disk.sync(cursor.journal_fd);
  await disk.sync(cursor.ledger_fd);
  return after;
}

/**
 * Truncates a file durably. The sync must come before any append: otherwise a power cut could keep the new bytes and
 * restore old ones after them.
 */
export async function truncateFile(disk: DiskOps, fd: number, size: number): Promise<void> {
  if (disk.facts(fd).size <= size) return;
  await disk.truncate(fd, size);
  await disk.sync(fd);
}

/** Rewrites a file's bytes in place, from `from` to its end, and syncs it. */
export async function rewriteFile(disk: DiskOps, path: string, from: number): Promise<void> {
  const fd = await disk.open(path, "r+");
  try {
    const { size } = disk.facts(fd);
    await writeAll(disk, fd, readRange(disk, fd, from, size), from);
    await disk.sync(fd);
  } finally {
    await disk.close(fd);
  }
}

const CHUNK = 1_048_576;

/** Opens a ledger without its checkpoint and journals, read-only. */
export function orphanedLedger(disk: DiskOps, fd: number): { cursor: LogCursor; loaded: LoadedLog } {
  const lines: LineInfo[] = [];
  let rest = Buffer.alloc(0);
  let size = 0;
  let hash: string = GENESIS_HASH;
  for (let at = 0; ; ) {
    const bytes = readRange(disk, fd, at, at + CHUNK);
    if (bytes.length === 0) break;
    at += bytes.length;
    const chunk = Buffer.concat([rest, bytes]);
    let from = 0;
    for (let to = chunk.indexOf(0x0a); to >= 0; to = chunk.indexOf(0x0a, from)) {
      const text = chunk.toString("utf8", from, to);
      lines.push(infoOf(text, to + 1 - from));
      hash = splitLine(text)?.hash ?? hash;
      from = to + 1;
    }
    size += from;
    rest = chunk.subarray(from);
  }
  const head = { records: lines.length, hash };
  const unit: UnitBlock = { kind: "unit", head, size, lines, puts: [], end: true };
  const problem = new SvcError(
    "corrupt",
    "ledger.jsonl has records, but state.db, which holds its working data, is missing: restore both from a backup",
  );
  const cursor: LogCursor = {
    ledger_fd: fd,
    ledger_ino: disk.facts(fd).ino,
    ledger_size: size,
    head: EMPTY_HEAD,
    format: JOURNAL_FORMAT,
    generation: 1,
    journal_fd: fd,
    journal_ino: disk.facts(fd).ino,
    journal_size: 0,
    crc: 0,
  };
  const journals = [{ generation: 1, units: [unit] }];
  return { cursor, loaded: { base: EMPTY_CHECKPOINT, journals, problem, known: "ledger" } };
}

function infoOf(text: string, length: number): LineInfo {
  try {
    return lineInfo(text, length);
  } catch {
    return { length, ts_ms: 0, event: "", actor: "", run_id: undefined, tool: undefined, tenant: null };
  }
}
