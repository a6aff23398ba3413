/** Quoting for shell commands. */

/** Quotes a word so that the shell takes it literally. */
export function quoteForShell(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
