/**
 * Reads the ledger file after a known position and verifies each line: its place in the chain and its hash.
 * Distinguishes the traces of a crash (an incomplete last line, or zeros) from a complete line that is wrong.
 */
import type { LedgerHead } from "../../ledger/record.ts";
import { hasLostSector } from "../journal/lines/parse-journal.ts";
import { verifyLine } from "../journal/lines/verify-line.ts";

export interface ScannedLine {
  text: string;
  hash: string;
  /** The offset after the line break. */
  end: number;
}

export interface LedgerScan {
  lines: ScannedLine[];
  /** The offset after the last valid line. */
  end: number;
  /** The number of bytes after it that form no complete line. */
  torn: number;
  /** The first complete record that does not verify. */
  bad_seq: number | undefined;
}

/** Scans `bytes`, the ledger from offset `size` on, after `head`. The ledger was durable up to `synced`. */
export function scanLedger(bytes: Buffer, head: LedgerHead, size: number, synced: number): LedgerScan {
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
