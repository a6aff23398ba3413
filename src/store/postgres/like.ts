/**
 * Plain text as a LIKE pattern. The columns compare byte by byte, so ILIKE folds the case of ASCII
 * letters only; what else is in the text becomes a wildcard here, and the caller looks again.
 */

export interface LikePattern {
  pattern: string;
  /** Whether every line the pattern finds has the text; otherwise it finds too many, never too few. */
  exact: boolean;
}

/** Undefined for a text that no line can contain. */
export function likePattern(text: string): LikePattern | undefined {
  // A line is JSON: a control character stands in it only in escaped form.
  if (/[\0-\u001f]/.test(text)) return undefined;
  let pattern = "%";
  let exact = true;
  for (const c of text) {
    if (c === "%" || c === "_" || c === "\\") pattern += `\\${c}`;
    else if (c <= "~") pattern += c;
    else {
      exact = false;
      if (!pattern.endsWith("%")) pattern += "%";
    }
  }
  // "\%" at the end is an escaped character and not the wildcard.
  if (!/(?:^|[^\\])(?:\\\\)*%$/.test(pattern)) pattern += "%";
  return { pattern, exact };
}
