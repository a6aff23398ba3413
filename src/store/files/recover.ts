/**
 * Holds the journals against the ledger and decides what counts. The ledger line commits a unit: a
 * block whose lines are not all there is dropped, and every block behind it. Pure; the log does what is
 * decided here.
 */
import { isDeepStrictEqual } from "node:util";
import { SvcError } from "../../kernel/errors.ts";
import type { Head, LedgerRecord } from "../../ledger/record.ts";
import type { LineInfo, Placed, UnitBlock } from "../logged/block.ts";
import type { Base } from "../logged/checkpoint.ts";
import type { Knowledge } from "../logged/log.ts";
import { type ParsedJournal, unitsOf } from "../logged/parse.ts";
import type { LedgerScan, ScannedLine } from "./ledger-scan.ts";

export interface ReadJournal {
  generation: number;
  parsed: ParsedJournal;
}

interface KeptJournal<Unit extends UnitBlock = UnitBlock> {
  generation: number;
  units: Unit[];
  /** Where it is carried on with. */
  end: number;
  crc: number;
}

export interface Repair {
  /** What is done to the files, in words for the log. */
  messages: string[];
  /** The ledger's new end, if bytes of it must go; whole lines among them are put aside first. */
  ledger_end: number | undefined;
  lost_lines: string[];
  /** A block without documents to add to the journal, so that it names the ledger's end again. */
  mark: UnitBlock | undefined;
}

export interface Recovery {
  journals: KeptJournal[];
  problem: SvcError | undefined;
  known: Knowledge;
  /** Undefined when nothing is to be done. */
  repair: Repair | undefined;
}

/** `lost`: a journal that is missing; `synced`: how far the ledger is known to have been durable. */
export function reconcile(
  base: Base,
  journals: readonly ReadJournal[],
  lost: SvcError | undefined,
  scan: LedgerScan,
  synced: number,
): Recovery {
  const rotten = rottenLedger(scan);
  const unreliable = lost ?? damagedJournal(journals) ?? disagreement(base, scan, journals);
  // A crash takes what was not yet durable. What was durable, a hand has taken.
  const cut = scan.end < synced ? truncatedLedger(synced, scan.end) : undefined;
  const problem = rotten ?? unreliable ?? cut;
  if (problem === undefined) return repaired(base, journals, scan);
  if (unreliable === undefined) return refused(problem, journals);
  // Whole by itself, the ledger says what was recorded; nothing says what the documents were.
  const isWhole = rotten === undefined && cut === undefined && scan.torn === 0;
  return isWhole ? ledgerAlone(problem, base, scan) : refusedWhole(problem, base);
}

/** Read-only: what the journals say is known and shown, and nothing is changed. */
export function refused(problem: SvcError, journals: readonly ReadJournal[]): Recovery {
  return { journals: journals.map(keepAll), problem, known: "everything", repair: undefined };
}

/** Nothing that could be shown is certain. */
export function refusedWhole(problem: SvcError, base: Base): Recovery {
  return { journals: [emptyJournal(base)], problem, known: "nothing", repair: undefined };
}

function ledgerAlone(problem: SvcError, base: Base, scan: LedgerScan): Recovery {
  const unit = unitOf(base, scan.lines);
  const journal = { ...emptyJournal(base), units: unit === undefined ? [] : [unit] };
  return { journals: [journal], problem, known: "ledger", repair: undefined };
}

function emptyJournal(base: Base): KeptJournal {
  return { generation: base.generation + 1, units: [], end: 0, crc: base.crc };
}

/** Lines of the ledger behind that position, as a unit without documents. */
function unitOf(at: { head: Head; size: number }, lines: readonly ScannedLine[]): UnitBlock | undefined {
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

function repaired(base: Base, journals: readonly ReadJournal[], scan: LedgerScan): Recovery {
  const records = base.head.records + scan.lines.length;
  const kept: KeptJournal<Placed<UnitBlock>>[] = [];
  let dropped: Placed<UnitBlock> | undefined;
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

/** All that a journal says, as far as it can be read. */
function keepAll({ generation, parsed }: ReadJournal): KeptJournal<Placed<UnitBlock>> {
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
        `journal-${generation}.jsonl is damaged at byte ${parsed.end}: restore the data folder from a backup`,
      );
    }
  }
  return undefined;
}

function disagreement(base: Base, scan: LedgerScan, journals: readonly ReadJournal[]): SvcError | undefined {
  for (const { parsed } of journals) {
    for (const unit of unitsOf(parsed.items)) {
      const bad = differingRecord(base, scan, unit);
      if (bad === undefined) continue;
      return new SvcError(
        "corrupt",
        `the journal and ledger.jsonl disagree at record ${bad}: restore the data folder from a backup`,
      );
    }
  }
  return undefined;
}

/** The record at which a unit and the ledger tell different stories; lines that are missing tell none. */
function differingRecord(base: Base, scan: LedgerScan, unit: UnitBlock): number | undefined {
  const { records, hash } = unit.head;
  const place = records - base.head.records;
  const last = place === 0 ? { hash: base.head.hash, end: base.size } : scan.lines[place - 1];
  if (last !== undefined) return last.hash === hash && last.end === unit.size ? undefined : records - 1;
  // Cut short: those of its lines that are there must be its own.
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
  base: Base,
  journals: readonly ReadJournal[],
  kept: readonly KeptJournal<Placed<UnitBlock>>[],
  scan: LedgerScan,
  dropped: Placed<UnitBlock> | undefined,
): Repair | undefined {
  const active = kept[kept.length - 1]!;
  const last = kept.flatMap(({ units }) => units).at(-1);
  const reached: Head = last?.head ?? base.head;
  const covered = reached.records - base.head.records;
  const uncovered = scan.lines.slice(covered);
  const repair: Repair = { messages: [], ledger_end: undefined, lost_lines: [], mark: undefined };

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
    // The end of a unit's records is missing: what is on the ledger stays, the unit's documents do not.
    repair.messages.push(
      `kept ${uncovered.length} records of an incomplete request without its working data`,
    );
    repair.mark = unitOf({ head: reached, size: last?.size ?? base.size }, uncovered);
  } else if (uncovered.length > 0) {
    // Never acknowledged: an answer waits for the journal to be durable, too.
    repair.ledger_end = last?.size ?? base.size;
    repair.lost_lines = uncovered.map(({ text }) => text);
    repair.messages.push(
      `took ${uncovered.length} records back that were never acknowledged: their journal entry is missing`,
    );
  } else if (isJournalCut || (last !== undefined && !last.end && active.units.at(-1) === last)) {
    // A batch of which only some units count has no end of its own; readers wait for one.
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
