/**
 * Plain text as a LIKE pattern over lines: it finds every line whose record has the text, and others, so that the caller
 * looks again. The columns compare byte by byte, so ILIKE folds the case of ASCII letters only; any other character becomes a
 * wildcard here.
 */
import { textInLine } from "../query.ts";

export function likePattern(text: string): string {
  let pattern = "";
  for (const c of textInLine(text)) {
    if (c === "%" || c === "_" || c === "\\") pattern += `\\${c}`;
    else pattern += c <= "~" ? c : "%";
  }
  return `%${pattern}%`;
}
