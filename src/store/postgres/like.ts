/**
 * Plain text as a LIKE pattern. The columns compare byte by byte, so ILIKE folds the case of ASCII
 * letters only; any other character becomes a wildcard here, and the caller looks again.
 */

interface LikePattern {
  pattern: string;
  /** Whether every line that the pattern finds has the text; otherwise it finds too many, never too few. */
  exact: boolean;
}

/** Undefined for a text that no line can contain. */
export function likePattern(text: string): LikePattern | undefined {
  // A line is JSON: a control character stands in it only in escaped form.
  if (/[\0-\u001f]/.test(text)) return undefined;
  let pattern = "";
  let exact = true;
  for (const c of text) {
    if (c === "%" || c === "_" || c === "\\") pattern += `\\${c}`;
    else if (c <= "~") pattern += c;
    else {
      pattern += "%";
      exact = false;
    }
  }
  return { pattern: `%${pattern}%`, exact };
}
