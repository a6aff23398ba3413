/**
 * Reads the ledger file behind a known position and checks every line: its place in the chain and its
 * own hash. What a crash leaves (a last line without its end, or zeros) is told apart from a line that
 * is whole and wrong.
 */
import type { Head } from "../../ledger/record.ts";
import { verifyLine } from "../logged/line.ts";
import { hasLostSector } from "../logged/parse.ts";

export interface ScannedLine {
  text: string;
  hash: string;
  /** Behind its line break. */
  end: number;
}

export interface LedgerScan {
  lines: ScannedLine[];
  /** Behind the last good line. */
  end: number;
  /** Bytes behind that which are no whole line. */
  torn: number;
  /** The first record whose line is whole and does not verify. */
  bad_seq: number | undefined;
}

/** `bytes` are the ledger from `size` on, where the chain stood at `head`; up to `synced` it was durable. */
export function scanLedger(bytes: Buffer, head: Head, size: number, synced: number): LedgerScan {
  const lines: ScannedLine[] = [];
  let { hash, records } = head;
  let at = 0;
  while (at < bytes.length) {
    const to = bytes.indexOf(0x0a, at);
    if (to < 0) break;
    const text = bytes.toString("utf8", at, to);
    const next = verifyLine(text, hash, records);
    if (next === undefined) {
      const bad_seq = hasLostSector(bytes, at, size) && size + at >= synced ? undefined : records;
      return { lines, end: size + at, torn: bytes.length - at, bad_seq };
    }
    hash = next;
    records++;
    at = to + 1;
    lines.push({ text, hash, end: size + at });
  }
  return { lines, end: size + at, torn: bytes.length - at, bad_seq: undefined };
}
