/** Terminal output of commands: plain text, colours only on a terminal, no other control sequences. */
import { createInterface } from "node:readline/promises";
import { type RuntimeEnv, systemEnv } from "../kernel/env.ts";
import { invalidError } from "../kernel/errors.ts";
import { visibleOneLine } from "../kernel/text/escape-invisible.ts";

export interface CommandIo {
  out(text: string): void;
  err(text: string): void;
  /** Writes without a line break. Waits if the reader is slow. */
  write(chunk: string): Promise<void>;
  readonly color: PaintColors;
  readonly tty: boolean;
  /** Asks the person at the terminal; undefined where there is none. */
  readonly ask?: (question: string) => Promise<string>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly clock: RuntimeEnv;
}

const CODES = { red: 31, green: 32, yellow: 33, blue: 34, dim: 2, bold: 1 } as const;
export type PaintColors = { [name in keyof typeof CODES]: (text: string) => string };

export function createPaint(on: boolean): PaintColors {
  const names = Object.keys(CODES) as (keyof typeof CODES)[];
  return Object.fromEntries(
    names.map((name) => [name, (text: string) => (on ? `\u001b[${CODES[name]}m${text}\u001b[0m` : text)]),
  ) as PaintColors;
}

/**
 * Escapes invisible characters, so that text from agents or upstreams cannot move the cursor, fake a line, or look like
 * another text.
 */
export function escapeControls(text: string): string {
  return visibleOneLine(text.replace(/[\n\t]/g, " "));
}

/** Fails once the input ends, because no person can answer any more questions. */
async function askOnTerminal(question: string): Promise<string> {
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  lines.once("SIGINT", () => process.exit(130));
  const closed = new Promise<never>((_, reject) =>
    lines.once("close", () => reject(invalidError("the input ended before every question was answered"))),
  );
  try {
    return await Promise.race([lines.question(question), closed]);
  } finally {
    closed.catch(() => {});
    lines.close();
  }
}

export function processIo(): CommandIo {
  const tty = process.stdout.isTTY === true;
  // Not an error: the reader of a pipe closed it early.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EPIPE") process.exit(process.exitCode ?? 0);
      throw error;
    });
  }
  return {
    out: (text) => void process.stdout.write(`${text}\n`),
    err: (text) => void process.stderr.write(`${text}\n`),
    write: (chunk) =>
      new Promise((resolve) => {
        if (process.stdout.write(chunk)) resolve();
        else process.stdout.once("drain", resolve);
      }),
    color: createPaint(tty && !process.env["NO_COLOR"] && process.env["TERM"] !== "dumb"),
    tty,
    ...(tty && process.stdin.isTTY === true ? { ask: askOnTerminal } : {}),
    env: process.env,
    cwd: process.cwd(),
    clock: systemEnv,
  };
}

/** Pads cells so that columns align. The last column is not padded. */
export function alignColumns(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, visible(cell));
  }
  return rows.map((row) =>
    row
      .map((cell, i) => (i === row.length - 1 ? cell : cell + " ".repeat(widths[i]! - visible(cell))))
      .join("  ")
      .trimEnd(),
  );
}

function visible(text: string): number {
  return text.replace(/\u001b\[\d+m/g, "").length;
}
