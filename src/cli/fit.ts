/** Text that fits a line of the terminal; into a pipe everything goes whole. */
import { type Io, printable } from "./io.ts";

const NARROWEST = 40;
const USUAL = 80;

/** How many columns a line has; endless where the output is no screen. */
export function columnsOf({ tty, env }: Io): number {
  if (!tty) return Number.POSITIVE_INFINITY;
  const given = Number(env["COLUMNS"]);
  const columns = Number.isInteger(given) && given > 0 ? given : (process.stdout.columns ?? USUAL);
  return Math.max(NARROWEST, columns);
}

/** One harmless line of at most so many characters. */
export function fitted(text: string, width: number): string {
  const line = printable(text);
  return line.length <= width ? line : `${line.slice(0, Math.max(0, width - 1))}…`;
}

/** `1 call`, `12 calls`, `1,240 calls`. */
export function count(n: number, what: string): string {
  return `${n.toLocaleString("en-US")} ${what}${n === 1 ? "" : "s"}`;
}

/** `a, b, c and 4 more` */
export function some(names: readonly string[], all: number, most = 3): string {
  const shown = names.slice(0, most).map(printable).join(", ");
  return all > Math.min(most, names.length)
    ? `${shown} and ${all - Math.min(most, names.length)} more`
    : shown;
}
