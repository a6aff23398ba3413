/**
 * Compares the journals with the ledger and decides which content is valid. A unit commits with its ledger lines: a
 * block without all of its lines is dropped, together with every block after it. Pure functions; the log carries out
 * the result.
 */
import { isDeepStrictEqual } from "node:util";
import { SvcError } from "../../kernel/errors.ts";
import type { LedgerHead, LedgerRecord } from "../../ledger/record.ts";
import type { CheckpointPosition } from "../journal/checkpoint/checkpoint.ts";
import type { LineInfo, UnitBlock, WithOffset } from "../journal/lines/block.ts";
import { type ParsedJournal, unitsOf } from "../journal/lines/parse-journal.ts";
import type { StoreIntegrity } from "../journal/log.ts";
import type { LedgerScan, ScannedLine } from "./ledger-scan.ts";

export interface ReadJournal {
  generation: number;
  parsed: ParsedJournal;
}

interface KeptJournal<Unit extends UnitBlock = UnitBlock> {
  generation: number;
  units: Unit[];
  /** The offset at which writing continues. */
  end: number;
  crc: number;
}

export interface FileRepair {
  /** Messages for the log, one per change to the files. */
  messages: string[];
  /** The ledger's new end, if bytes must go. Complete lines among them are saved to another file first. */
  ledger_end: number | undefined;
  lost_lines: string[];
  /** A block without documents to append to the journal, so that the journal names the ledger's end again. */
  mark: UnitBlock | undefined;
}

export interface LogRecovery {
  journals: KeptJournal[];
  problem: SvcError | undefined;
  known: StoreIntegrity;
  /** Undefined if the files need no repair. */
  repair: FileRepair | undefined;
}

/** Decides the recovery. `lost` reports a missing journal; the ledger is known to have been durable up to `synced`. */
export function reconcileJournals(
  base: CheckpointPosition,
  journals: readonly ReadJournal[],
  lost: SvcError | undefined,
  scan: LedgerScan,
  synced: number,
): LogRecovery {
  const rotten = rottenLedger(scan);
  const unreliable = lost ?? damagedJournal(journals) ?? disagreement(base, scan, journals);
  // A crash removes only bytes that were not durable yet. These durable ones were removed by hand.
  const cut = scan.end < synced ? truncatedLedger(synced, scan.end) : undefined;
  const problem = rotten ?? unreliable ?? cut;
  if (problem === undefined) return repaired(base, journals, scan);
  if (unreliable === undefined) return readOnlyRecovery(problem, journals);
  // If the ledger is complete, its records are certain. The documents are not.
  const isWhole = rotten === undefined && cut === undefined && scan.torn === 0;
  return isWhole ? ledgerAlone(problem, base, scan) : emptyRecovery(problem, base);
}

/** Read-only recovery: readers see everything in the journals, and the files do not change. */
export function readOnlyRecovery(problem: SvcError, journals: readonly ReadJournal[]): LogRecovery {
  return { journals: journals.map(keepAll), problem, known: "everything", repair: undefined };
}

/** Read-only recovery without any certain content. */
export function emptyRecovery(problem: SvcError, base: CheckpointPosition): LogRecovery {
  return { journals: [emptyJournal(base)], problem, known: "nothing", repair: undefined };
}

function ledgerAlone(problem: SvcError, base: CheckpointPosition, scan: LedgerScan): LogRecovery {
  const unit = unitOf(base, scan.lines);
  const journal = { ...emptyJournal(base), units: unit === undefined ? [] : [unit] };
  return { journals: [journal], problem, known: "ledger", repair: undefined };
}

function emptyJournal(base: CheckpointPosition): KeptJournal {
  return { generation: base.generation + 1, units: [], end: 0, crc: base.crc };
}

/** Returns the ledger lines after that position, as a unit without documents. */
function unitOf(
  at: { head: LedgerHead; size: number },
  lines: readonly ScannedLine[],
): UnitBlock | undefined {
  const last = lines.at(-1);
  if (last === undefined) return undefined;
  let from = at.size;
  const infos = lines.map(({ text, end }) => {
    const info = lineInfo(text, end - from);
    from = end;
    return info;
  });
  const head = { records: at.head.records + lines.length, hash: last.hash };
  return { kind: "unit", head, size: last.end, lines: infos, puts: [], end: true };
}

function repaired(base: CheckpointPosition, journals: readonly ReadJournal[], scan: LedgerScan): LogRecovery {
  const records = base.head.records + scan.lines.length;
  const kept: KeptJournal<WithOffset<UnitBlock>>[] = [];
  let dropped: WithOffset<UnitBlock> | undefined;
  for (const journal of journals) {
    const keep = keepAll(journal);
    const at = keep.units.findIndex((unit) => unit.head.records > records);
    if (at < 0) {
      kept.push(keep);
      continue;
    }
    dropped = keep.units[at]!;
    const before = keep.units[at - 1];
    const header = journal.parsed.items[0]!;
    const end = before ?? header;
    kept.push({ generation: keep.generation, units: keep.units.slice(0, at), end: end.to, crc: end.crc });
    break;
  }
  const repair = planRepair(base, journals, kept, scan, dropped);
  return { journals: kept, problem: undefined, known: "everything", repair };
}

/** Keeps all readable content of a journal. */
function keepAll({ generation, parsed }: ReadJournal): KeptJournal<WithOffset<UnitBlock>> {
  return { generation, units: unitsOf(parsed.items), end: parsed.end, crc: parsed.crc };
}

function rottenLedger({ bad_seq }: LedgerScan): SvcError | undefined {
  return bad_seq === undefined
    ? undefined
    : new SvcError("corrupt", `ledger.jsonl does not verify at record ${bad_seq}: run svc verify`);
}

export function truncatedLedger(was: number, is: number): SvcError {
  return new SvcError(
    "corrupt",
    `ledger.jsonl has been truncated, or is an older copy: ${was} bytes were recorded, ${is} are left; restore the newest one`,
  );
}

export function damagedJournal(journals: readonly ReadJournal[]): SvcError | undefined {
  for (const { generation, parsed } of journals) {
    const isClosed = generation !== journals[journals.length - 1]!.generation;
    if (parsed.rest === "broken" || (isClosed && parsed.rest !== "none")) {
      return new SvcError(
        "corrupt",
        `journal-${generation}.jsonl is damaged at byte ${parsed.end}: restore the data directory from a backup`,
      );
    }
  }
  return undefined;
}

function disagreement(
  base: CheckpointPosition,
  scan: LedgerScan,
  journals: readonly ReadJournal[],
): SvcError | undefined {
  for (const { parsed } of journals) {
    for (const unit of unitsOf(parsed.items)) {
      const bad = differingRecord(base, scan, unit);
      if (bad === undefined) continue;
      return new SvcError(
        "corrupt",
        `the journal and ledger.jsonl disagree at record ${bad}: restore the data directory from a backup`,
      );
    }
  }
  return undefined;
}

/** Returns the first record that differs between a unit and the ledger. Missing lines do not count. */
function differingRecord(base: CheckpointPosition, scan: LedgerScan, unit: UnitBlock): number | undefined {
  const { records, hash } = unit.head;
  const place = records - base.head.records;
  const last = place === 0 ? { hash: base.head.hash, end: base.size } : scan.lines[place - 1];
  if (last !== undefined) return last.hash === hash && last.end === unit.size ? undefined : records - 1;
  // The ledger ends inside the unit: its existing lines must match.
  const first = place - unit.lines.length;
  const bad = unit.lines.findIndex((stated, i) => {
    const line = scan.lines[first + i];
    if (line === undefined) return false;
    const found = lineInfo(line.text, stated.length);
    return Buffer.byteLength(line.text) + 1 !== stated.length || !isDeepStrictEqual(found, stated);
  });
  return bad < 0 ? undefined : records - unit.lines.length + bad;
}

function planRepair(
  base: CheckpointPosition,
  journals: readonly ReadJournal[],
  kept: readonly KeptJournal<WithOffset<UnitBlock>>[],
  scan: LedgerScan,
  dropped: WithOffset<UnitBlock> | undefined,
): FileRepair | undefined {
  const active = kept[kept.length - 1]!;
  const last = kept.flatMap(({ units }) => units).at(-1);
  const reached: LedgerHead = last?.head ?? base.head;
  const covered = reached.records - base.head.records;
  const uncovered = scan.lines.slice(covered);
  const repair: FileRepair = { messages: [], ledger_end: undefined, lost_lines: [], mark: undefined };

  if (scan.torn > 0) {
    repair.messages.push(`dropped an incomplete last line of ledger.jsonl (${scan.torn} bytes)`);
    repair.ledger_end = scan.end;
  }
  const isJournalCut = dropped !== undefined || journals[journals.length - 1]!.parsed.rest === "torn";
  if (isJournalCut) {
    repair.messages.push(
      `dropped journal entries that ledger.jsonl has no records for, behind record ${reached.records}`,
    );
  }
  if (uncovered.length > 0 && dropped !== undefined) {
    // The last records of a unit are missing. The existing records stay; the unit's documents do not.
    repair.messages.push(
      `kept ${uncovered.length} records of an incomplete request without its working data`,
    );
    repair.mark = unitOf({ head: reached, size: last?.size ?? base.size }, uncovered);
  } else if (uncovered.length > 0) {
    // Never acknowledged, because a response also waits for the journal to be durable.
    repair.ledger_end = last?.size ?? base.size;
    repair.lost_lines = uncovered.map(({ text }) => text);
    repair.messages.push(
      `removed ${uncovered.length} records that were never acknowledged: their journal entry is missing`,
    );
  } else if (isJournalCut || (last !== undefined && !last.end && active.units.at(-1) === last)) {
    // A partly valid batch has no end marker, and readers wait for one.
    repair.mark = {
      kind: "unit",
      head: reached,
      size: last?.size ?? base.size,
      lines: [],
      puts: [],
      end: true,
    };
  }
  const isNothing =
    repair.messages.length === 0 && repair.mark === undefined && repair.ledger_end === undefined;
  return isNothing ? undefined : repair;
}

export function lineInfo(text: string, length: number): LineInfo {
  const { ts_ms, event, actor, run_id, tool, tenant } = JSON.parse(text) as LedgerRecord;
  return { length, ts_ms, event, actor, run_id, tool, tenant };
}
