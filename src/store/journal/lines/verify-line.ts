/** Verifies a single ledger line. */
import { sha256Hex } from "../../../kernel/hash.ts";
import { splitLine } from "../../../ledger/record.ts";

/**
 * Returns the line's hash if it is record `seq` after `prev`, else undefined. Field names inside values do not match,
 * because their quotes are escaped in the text.
 */
export function verifyLine(line: string, prev: string, seq: number): string | undefined {
  const split = splitLine(line);
  if (split === undefined || sha256Hex(split.body) !== split.hash) return undefined;
  if (!split.body.includes(`,"prev":"${prev}"`) || !split.body.includes(`,"seq":${seq},`)) return undefined;
  return split.hash;
}
