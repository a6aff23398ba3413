/**
 * Verifies the content of `svc.db` after the checkpoint: the chain of records, the blocks of the journal, and the row
 * with their ends. The cost depends on the tail only, not on the ledger's length.
 */
import { SvcError } from "../../kernel/errors.ts";
import type { LedgerHead, LedgerRecord } from "../../ledger/record.ts";
import type { CheckpointPosition } from "../journal/checkpoint/checkpoint.ts";
import type { LineInfo, UnitBlock } from "../journal/lines/block.ts";
import { parseJournal } from "../journal/lines/parse-journal.ts";
import { verifyLine } from "../journal/lines/verify-line.ts";
import { olderStateError, type StoreIntegrity } from "../journal/log.ts";
import type { HeadRow, LedgerStatements } from "./connections.ts";

interface TailJournal {
  generation: number;
  units: UnitBlock[];
  bytes: number;
}

interface VerifiedTail {
  head: HeadRow;
  journals: TailJournal[];
  problem: SvcError | undefined;
  known: StoreIntegrity;
}

/** Verifies the tail. `last_known` is the last position that this process knew. */
export function verifyTail(
  reader: LedgerStatements,
  base: CheckpointPosition,
  last_known: HeadRow,
): VerifiedTail {
  const head = reader.head();
  if (head === undefined) throw new SvcError("corrupt", "svc.db has no row for the end of its ledger");
  const { journals, end, isWhole, crcs } = readJournals(reader, base, head);
  const nothing = [{ generation: head.generation, units: [], bytes: 0 }];
  if (
    !isContinued(
      reader,
      last_known,
      crcs.get(last_known.n) ?? (head.n === last_known.n ? head.crc : undefined),
      head,
    )
  )
    return { head, journals: nothing, problem: olderStateError("svc.db"), known: "nothing" };
  const rotten = verifyRecords(reader, base, head.head);
  if (isWhole) {
    const problem = rotten ?? (sameHead(end, head.head) ? undefined : disagreement());
    return { head, journals, problem, known: "everything" };
  }
  const problem = new SvcError("corrupt", "the journal in svc.db does not verify: restore it from a backup");
  if (rotten !== undefined) return { head, journals: nothing, problem, known: "nothing" };
  // If the ledger is complete, its records are certain. The documents are not.
  const alone = [{ generation: head.generation, units: [ledgerUnit(reader, base)], bytes: 0 }];
  return { head, journals: alone, problem, known: "ledger" };
}

/** Whether the last known batch and record are still present. */
function isContinued(
  reader: LedgerStatements,
  last_known: HeadRow,
  crc: number | undefined,
  head: HeadRow,
): boolean {
  if (head.n < last_known.n || (crc !== undefined && crc !== last_known.crc)) return false;
  const { records, hash } = last_known.head;
  return records === 0 || reader.ledger(records - 1, 1)[0]?.hash === hash;
}

/** Returns the records after that position, as a unit without documents. */
export function ledgerUnit(reader: LedgerStatements, at: { head: LedgerHead; size: number }): UnitBlock {
  const lines: LineInfo[] = [];
  let { size } = at;
  let { records, hash } = at.head;
  for (;;) {
    const rows = reader.ledger(records, 1_000);
    for (const row of rows) {
      const length = Buffer.byteLength(row.line) + 1;
      const { ts_ms, event, actor, run_id, tool, tenant } = JSON.parse(row.line) as LedgerRecord;
      lines.push({ length, ts_ms, event, actor, run_id, tool, tenant });
      size += length;
      hash = row.hash;
      records = row.seq + 1;
    }
    if (rows.length === 0) break;
  }
  return { kind: "unit", head: { records, hash }, size, lines, puts: [], end: true };
}

function readJournals(reader: LedgerStatements, base: CheckpointPosition, head: HeadRow) {
  const journals: TailJournal[] = [];
  const open = (generation: number): TailJournal => {
    const last = journals[journals.length - 1];
    if (last?.generation === generation) return last;
    const next: TailJournal = { generation, units: [], bytes: 0 };
    journals.push(next);
    return next;
  };
  let { crc } = base;
  let end: LedgerHead = base.head;
  /** The checksum after each batch. */
  const crcs = new Map<number, number>();
  for (const row of reader.journal(-1)) {
    // Skips rows that the checkpoint contains and that are not deleted yet.
    if (row.generation <= base.generation) continue;
    const parsed = parseJournal(Buffer.from(row.block), 0, crc);
    if (parsed.rest !== "none") return { journals, end, isWhole: false, crcs };
    const journal = open(row.generation);
    journal.bytes += row.block.length;
    for (const item of parsed.items) {
      if (item.kind !== "unit") continue;
      journal.units.push(item);
      end = item.head;
    }
    crc = parsed.crc;
    crcs.set(row.n, crc);
  }
  open(head.generation);
  return { journals, end, isWhole: crc === head.crc, crcs };
}

/** Verifies the last record in the checkpoint, and every record after it. */
function verifyRecords(
  reader: LedgerStatements,
  base: CheckpointPosition,
  head: LedgerHead,
): SvcError | undefined {
  let { records, hash } = base.head;
  if (records > 0) {
    const [last] = reader.ledger(records - 1, 1);
    if (last === undefined) return truncated(base, head);
    if (last.hash !== hash || verifyLine(last.line, last.prev, last.seq) !== hash)
      return badRecord(records - 1);
  }
  for (;;) {
    const rows = reader.ledger(records, 1_000);
    for (const { seq, prev, hash: stated, line } of rows) {
      if (seq !== records || prev !== hash || verifyLine(line, prev, seq) !== stated)
        return badRecord(records);
      hash = stated;
      records++;
    }
    if (rows.length === 0) break;
  }
  return sameHead({ records, hash }, head) ? undefined : disagreement();
}

const sameHead = (a: LedgerHead, b: LedgerHead): boolean => a.records === b.records && a.hash === b.hash;

function badRecord(seq: number): SvcError {
  return new SvcError("corrupt", `the ledger in svc.db does not verify at record ${seq}: run svc verify`);
}

function disagreement(): SvcError {
  return new SvcError("corrupt", "the ledger in svc.db does not end where it should: run svc verify");
}

function truncated(base: CheckpointPosition, head: LedgerHead): SvcError {
  return new SvcError(
    "corrupt",
    `the ledger in svc.db has been truncated: ${base.head.records} records were recorded, ${head.records} are left`,
  );
}
