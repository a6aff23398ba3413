/**
 * Converts plain text into a LIKE pattern over ledger lines. The pattern finds every line whose record has the text,
 * and some others, so the caller checks each match. Columns compare byte by byte, so ILIKE folds the case of ASCII
 * letters only; any other character becomes a wildcard.
 */
import { textInLine } from "../query-match.ts";

export function likePattern(text: string): string {
  let pattern = "";
  for (const c of textInLine(text)) {
    if (c === "%" || c === "_" || c === "\\") pattern += `\\${c}`;
    else pattern += c <= "~" ? c : "%";
  }
  return `%${pattern}%`;
}
