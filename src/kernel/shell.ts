/** Words for a shell. */

/** A word that no shell reads anything into. */
export function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
