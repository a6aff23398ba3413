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
import { type ParsedJournal, resolveVoids } from "../logged/parse.ts";
import type { LedgerScan } from "./ledger-scan.ts";

export interface ReadJournal {
  generation: number;
  parsed: ParsedJournal;
}

export interface KeptJournal {
  generation: number;
  units: Placed<UnitBlock>[];
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

export interface Verdict {
  journals: KeptJournal[];
  problem: SvcError | undefined;
  /** Undefined when nothing is to be done. */
  repair: Repair | undefined;
}

export function reconcile(base: Base, journals: readonly ReadJournal[], scan: LedgerScan): Verdict {
  const problem = findProblem(base, journals, scan);
  if (problem !== undefined) {
    // Read-only: what the journals say is shown, nothing is changed.
    return { journals: journals.map(keepAll), problem, repair: undefined };
  }
  const records = base.head.records + scan.lines.length;
  const kept: KeptJournal[] = [];
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
  return { journals: kept, problem: undefined, repair: planRepair(base, journals, kept, scan, dropped) };
}

/** All that a journal says, as far as it can be read. */
export function keepAll({ generation, parsed }: ReadJournal): KeptJournal {
  return { generation, units: resolveVoids(parsed.items), end: parsed.end, crc: parsed.crc };
}

function findProblem(base: Base, journals: readonly ReadJournal[], scan: LedgerScan): SvcError | undefined {
  if (scan.bad_seq !== undefined) {
    return new SvcError("corrupt", `ledger.jsonl does not verify at record ${scan.bad_seq}: run svc verify`);
  }
  for (const { generation, parsed } of journals) {
    const isClosed = generation !== journals[journals.length - 1]!.generation;
    if (parsed.rest === "broken" || (isClosed && parsed.rest !== "none")) {
      return new SvcError("corrupt", `journal-${generation}.jsonl is damaged at byte ${parsed.end}`);
    }
    for (const unit of resolveVoids(parsed.items)) {
      const bad = disagreement(base, scan, unit);
      if (bad === undefined) continue;
      return new SvcError("corrupt", `the journal and ledger.jsonl disagree at record ${bad}`);
    }
  }
  return undefined;
}

/** The record at which a unit and the ledger tell different stories; lines that are missing tell none. */
function disagreement(base: Base, scan: LedgerScan, unit: UnitBlock): number | undefined {
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
  kept: readonly KeptJournal[],
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
    const end = uncovered[uncovered.length - 1]!;
    const head = { records: reached.records + uncovered.length, hash: end.hash };
    let from = last?.size ?? base.size;
    const lines = uncovered.map((line) => {
      const info = lineInfo(line.text, line.end - from);
      from = line.end;
      return info;
    });
    repair.mark = { kind: "unit", head, size: end.end, lines, puts: [], end: true };
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
  const { ts_ms, event, actor, run_id, tool } = JSON.parse(text) as LedgerRecord;
  return { length, ts_ms, event, actor, run_id, tool };
}
