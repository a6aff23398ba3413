/**
 * Opens the files behind a checkpoint, under the lock: reads the journals and the ledger's tail, lets
 * `reconcile` decide what counts, and does to the files what it decided. O(tail), whatever the ledger's
 * length.
 */
import { join } from "node:path";
import { SvcError } from "../../kernel/errors.ts";
import { EMPTY_HEAD, GENESIS, type Head, splitLine } from "../../ledger/record.ts";
import { encodeItem, JOURNAL_FORMAT, type LineInfo, type UnitBlock } from "../logged/block.ts";
import { type Base, EMPTY_BASE } from "../logged/checkpoint.ts";
import { type Disk, EXISTING_APPEND, errorCode, readRange, syncFolder, writeAll } from "../logged/disk.ts";
import { type LoadedLog, setBack } from "../logged/log.ts";
import { parseJournal } from "../logged/parse.ts";
import { newerSchema } from "../logged/schema.ts";
import type { Cursor } from "./follow.ts";
import { scanLedger } from "./ledger-scan.ts";
import { journalName, journalPath, ledgerPath } from "./paths.ts";
import {
  damagedJournal,
  lineInfo,
  type ReadJournal,
  type Recovery,
  type Repair,
  reconcile,
  refused,
  refusedWhole,
  truncatedLedger,
} from "./recover.ts";
import { isContinued, type LogStanding } from "./standing.ts";

interface LoadParts {
  disk: Disk;
  folder: string;
  base: Base;
  /** How far this process knew the files before, if it did. */
  stood: LogStanding | undefined;
  warn(message: string, fields?: Record<string, unknown>): void;
}

interface OpenJournal extends ReadJournal {
  fd: number;
}

export async function loadFiles(parts: LoadParts): Promise<{ cursor: Cursor; loaded: LoadedLog }> {
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
  { disk, base, stood }: LoadParts,
  ledger_fd: number,
  journals: readonly ReadJournal[],
  missing: SvcError | undefined,
): Recovery {
  const { size } = disk.facts(ledger_fd);
  // Before anything is repaired: what this process knew was neither torn nor unanswered for.
  const isOurs =
    stood === undefined || (isContinued(stood, base, journals) && endsAt(disk, ledger_fd, size, stood));
  if (!isOurs) return refusedWhole(setBack("ledger.jsonl"), base);
  if (!endsAt(disk, ledger_fd, size, base)) {
    const problem =
      size < base.size
        ? truncatedLedger(base.size, size)
        : new SvcError("corrupt", `ledger.jsonl does not verify at record ${base.head.records - 1}`);
    const isWhole = missing === undefined && damagedJournal(journals) === undefined;
    return isWhole ? refused(problem, journals) : refusedWhole(problem, base);
  }
  const synced = knownSynced(journals);
  const scan = scanLedger(readRange(disk, ledger_fd, base.size, size), base.head, base.size, synced);
  return reconcile(base, journals, missing, scan, synced);
}

/** The furthest that any writer knew the ledger to be durable. */
function knownSynced(journals: readonly ReadJournal[]): number {
  let known = 0;
  for (const { parsed } of journals) {
    for (const item of parsed.items)
      if (item.kind === "unit") known = Math.max(known, item.synced?.ledger ?? 0);
  }
  return known;
}

async function openExisting(disk: Disk, path: string): Promise<number> {
  try {
    return await disk.open(path, EXISTING_APPEND);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error;
    throw new SvcError("unavailable", `ledger unavailable: ${path} is missing`, { cause: error });
  }
}

/** Opens and reads every journal behind the checkpoint; answers what is wrong with them, if anything. */
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
        `${journalName(generation)} is missing, and the newest working data with it: restore the data folder from a backup`,
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

/** Whether a line of a ledger that is `size` long ends at that position, and is the one meant. */
function endsAt(disk: Disk, fd: number, size: number, at: { head: Head; size: number }): boolean {
  if (size < at.size) return false;
  if (at.size === 0) return true;
  const bytes = readRange(disk, fd, Math.max(0, at.size - LAST_LINE), at.size);
  const line = bytes.toString("utf8", bytes.lastIndexOf(0x0a, bytes.length - 2) + 1, bytes.length - 1);
  return bytes[bytes.length - 1] === 0x0a && line.includes(`,"hash":"${at.head.hash}"`);
}

/** Does the repairs, closes what is no longer needed, and says where to carry on. */
async function settle(parts: LoadParts, ledger_fd: number, journals: OpenJournal[], verdict: Recovery) {
  const { disk, base } = parts;
  const { repair, problem, known } = verdict;
  const active = verdict.journals[verdict.journals.length - 1];
  const journal_fd = journals.find(({ generation }) => generation === active?.generation)?.fd ?? ledger_fd;
  const kept = verdict.journals.map(({ generation, units }) => ({ generation, units: [...units] }));
  const last = kept.flatMap(({ units }) => units).at(-1);
  let cursor: Cursor = {
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

async function perform(parts: LoadParts, cursor: Cursor, repair: Repair): Promise<Cursor> {
  const { disk, folder, warn } = parts;
  for (const message of repair.messages) warn(message, { folder });
  if (repair.lost_lines.length > 0) {
    // No caller was told of them, yet they are not ours to destroy.
    const aside = join(folder, `cut-${Date.now()}-${cursor.head.records}.jsonl`);
    const fd = await disk.open(aside, "wx");
    try {
      await writeAll(disk, fd, Buffer.from(`${repair.lost_lines.join("\n")}\n`), null);
      await disk.sync(fd);
    } finally {
      await disk.close(fd);
    }
    await syncFolder(disk, folder);
    warn("records taken back were put aside", { file: aside });
  }
  // The journal first: were the ledger cut and this then not done, it would be done at the next start.
  await cutTo(disk, cursor.journal_fd, cursor.journal_size);
  if (repair.ledger_end !== undefined) await cutTo(disk, cursor.ledger_fd, repair.ledger_end);
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
 * Shortens a file for good. Synced before anything is added again: otherwise a power cut could keep the
 * new bytes and bring the rest of the old ones back behind them.
 */
export async function cutTo(disk: Disk, fd: number, size: number): Promise<void> {
  if (disk.facts(fd).size <= size) return;
  await disk.truncate(fd, size);
  await disk.sync(fd);
}

/** Writes a file's bytes over themselves, from `from` to its end, and syncs it. */
export async function rewrite(disk: Disk, path: string, from: number): Promise<void> {
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

/** A ledger without its checkpoint and journals: shown line by line, and refused new ones. */
export function orphanedLedger(disk: Disk, fd: number): { cursor: Cursor; loaded: LoadedLog } {
  const lines: LineInfo[] = [];
  let rest = Buffer.alloc(0);
  let size = 0;
  let hash: string = GENESIS;
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
    "ledger.jsonl has records, but state.db, which holds the working data beside it, is missing: restore both from a backup",
  );
  const cursor: Cursor = {
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
  return { cursor, loaded: { base: EMPTY_BASE, journals, problem, known: "ledger" } };
}

function infoOf(text: string, length: number): LineInfo {
  try {
    return lineInfo(text, length);
  } catch {
    return { length, ts_ms: 0, event: "", actor: "", run_id: undefined, tool: undefined, tenant: null };
  }
}
