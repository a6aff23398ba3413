/**
 * Verifies the end of the ledger against the head row. A writer appends only after a tail that it has read and hashed.
 */
import type pg from "pg";
import { SvcError } from "../../kernel/errors.ts";
import { sha256Hex } from "../../kernel/hash.ts";
import { GENESIS_HASH, splitLine } from "../../ledger/record.ts";
import { type AcknowledgedHead, assertHasAcknowledged } from "./acknowledged-head.ts";

interface TailRow {
  records: string;
  hash: string;
  seq: string | null;
  line: string | null;
  acknowledged: string | null;
}

/**
 * One statement, so that head and tail are from the same moment. Also returns the hash at the position of the newest
 * acknowledged record.
 */
const TAIL = `
  SELECT h.records, h.hash, l.seq, l.line, (SELECT t.hash FROM svc_ledger t WHERE t.seq = $1) AS acknowledged
  FROM svc_head h
  LEFT JOIN LATERAL (SELECT seq, line FROM svc_ledger ORDER BY seq DESC LIMIT 1) l ON true`;

/** Records a valid tail that extends the newest acknowledged record. Otherwise throws `corrupt`. */
export async function assertTail(client: pg.Client, known: AcknowledgedHead): Promise<void> {
  const acknowledged = known.newest;
  const { rows } = await client.query<TailRow>(TAIL, [acknowledged.records - 1]);
  const row = rows[0];
  const problem = row === undefined ? "the head row is missing" : problemOf(row);
  if (row === undefined || problem !== undefined) {
    throw new SvcError("corrupt", `ledger corrupt: ${problem}; appends are refused, see svc verify`);
  }
  const head = { records: Number(row.records), hash: row.hash };
  assertHasAcknowledged(acknowledged, head.records, row.acknowledged);
  known.noteSeen(head, { acknowledged, there: row.acknowledged });
}

function problemOf({ records, hash, seq, line }: TailRow): string | undefined {
  const expected = Number(records) - 1;
  const last = seq === null ? -1 : Number(seq);
  if (last !== expected) return `the head row counts ${records} records and the last one is ${last}`;
  if (line === null)
    return hash === GENESIS_HASH ? undefined : "there are no records and the head is not the start";
  const split = splitLine(line);
  if (split === undefined) return `record ${last} has no hash`;
  if (sha256Hex(split.body) !== split.hash) return `record ${last} does not match its hash`;
  if (split.hash !== hash) return `record ${last} is not the one the head row names`;
  return undefined;
}
