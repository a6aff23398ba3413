/** The command `svc` in this process, with a terminal that only remembers; for what needs no child process. */
import { type CommandIo, createPaint } from "../../src/cli/io.ts";
import { runCommandLine } from "../../src/cli/main.ts";
import { type RuntimeEnv, systemEnv } from "../../src/kernel/env.ts";

export interface Spoken {
  code: number;
  out: string;
  err: string;
}

export interface SpeakOptions {
  cwd: string;
  env?: Record<string, string>;
  clock?: RuntimeEnv;
  /** As on a terminal: with colour. */
  tty?: boolean;
  /** The answers of the person at the terminal, in order. */
  answers?: readonly string[];
}

export async function speak(args: readonly string[], options: SpeakOptions): Promise<Spoken> {
  let out = "";
  let err = "";
  const tty = options.tty ?? false;
  const answers = [...(options.answers ?? [])];
  const ask = async (question: string): Promise<string> => {
    out += question;
    if (answers.length === 0) throw new Error(`nobody answers: ${question}`);
    return answers.shift()!;
  };
  const io: CommandIo = {
    out: (text) => {
      out += `${text}\n`;
    },
    err: (text) => {
      err += `${text}\n`;
    },
    write: async (chunk) => {
      out += chunk;
    },
    color: createPaint(tty),
    tty,
    ...(options.answers === undefined ? {} : { ask }),
    env: { PATH: process.env["PATH"], ...options.env },
    cwd: options.cwd,
    clock: options.clock ?? systemEnv,
  };
  const code = await runCommandLine(args, io);
  return { code, out, err };
}
