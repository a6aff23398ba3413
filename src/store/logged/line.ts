/** Whether a ledger line is what it says it is. */
import { sha256Hex } from "../../kernel/hash.ts";
import { splitLine } from "../../ledger/record.ts";

/**
 * The line's hash if it is record `seq` behind `prev`, else undefined. Names inside values cannot be
 * mistaken for members: their quotes are escaped in the text.
 */
export function verifyLine(line: string, prev: string, seq: number): string | undefined {
  const split = splitLine(line);
  if (split === undefined || sha256Hex(split.body) !== split.hash) return undefined;
  if (!split.body.includes(`,"prev":"${prev}"`) || !split.body.includes(`,"seq":${seq},`)) return undefined;
  return split.hash;
}
