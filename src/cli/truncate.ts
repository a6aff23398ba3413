/** Truncates text to the width of the terminal. Output to a pipe is never truncated. */
import { type CommandIo, escapeControls } from "./io.ts";

const NARROWEST = 40;
const USUAL = 80;

/** Width of the terminal in columns, or infinity for other outputs. */
export function terminalWidth({ tty, env }: CommandIo): number {
  if (!tty) return Number.POSITIVE_INFINITY;
  const given = Number(env["COLUMNS"]);
  const columns = Number.isInteger(given) && given > 0 ? given : (process.stdout.columns ?? USUAL);
  return Math.max(NARROWEST, columns);
}

/** Returns the text as one printable line, truncated to the width. */
export function truncateLine(text: string, width: number): string {
  const line = escapeControls(text);
  return line.length <= width ? line : `${line.slice(0, Math.max(0, width - 1))}…`;
}

/** Formats a count: `1 call`, `12 calls`, `1,240 calls`. */
export function formatCount(n: number, what: string): string {
  return `${n.toLocaleString("en-US")} ${what}${n === 1 ? "" : "s"}`;
}

/** Formats a list: `a, b, c and 4 more`. */
export function joinWithMore(names: readonly string[], all: number, most = 3): string {
  const shown = names.slice(0, most).map(escapeControls).join(", ");
  return all > Math.min(most, names.length)
    ? `${shown} and ${all - Math.min(most, names.length)} more`
    : shown;
}
