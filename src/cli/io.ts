/** What a command may do to the terminal: plain text, colour only for people, nothing that drives it. */
import { type Env, systemEnv } from "../kernel/env.ts";

export interface Io {
  out(text: string): void;
  err(text: string): void;
  /** Writes without a line break and waits while the reader is slow. */
  write(chunk: string): Promise<void>;
  readonly color: Paint;
  readonly tty: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly clock: Env;
}

const CODES = { red: 31, green: 32, yellow: 33, blue: 34, dim: 2, bold: 1 } as const;
export type Paint = { [name in keyof typeof CODES]: (text: string) => string };

export function paint(on: boolean): Paint {
  const names = Object.keys(CODES) as (keyof typeof CODES)[];
  return Object.fromEntries(
    names.map((name) => [name, (text: string) => (on ? `\u001b[${CODES[name]}m${text}\u001b[0m` : text)]),
  ) as Paint;
}

/** Text from elsewhere (agents, upstreams) must not move the cursor or fake a line. */
export function printable(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, (c) =>
    c === "\n" || c === "\t" ? " " : `\\x${c.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
}

export function processIo(): Io {
  const tty = process.stdout.isTTY === true;
  // The reader of a pipe may leave early; that is its right and no error of ours.
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
    color: paint(tty && !process.env["NO_COLOR"] && process.env["TERM"] !== "dumb"),
    tty,
    env: process.env,
    cwd: process.cwd(),
    clock: systemEnv,
  };
}

/** Columns that line up; the last one is not padded. */
export function columns(rows: readonly (readonly string[])[]): string[] {
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
