/** The command `svc` in this process, with a terminal that only remembers; for what needs no child process. */
import { type Io, paint } from "../../src/cli/io.ts";
import { main } from "../../src/cli/main.ts";
import { type Env, systemEnv } from "../../src/kernel/env.ts";

export interface Spoken {
  code: number;
  out: string;
  err: string;
}

export interface SpeakOptions {
  cwd: string;
  env?: Record<string, string>;
  clock?: Env;
  /** As on a terminal: with colour. */
  tty?: boolean;
}

export async function speak(args: readonly string[], options: SpeakOptions): Promise<Spoken> {
  let out = "";
  let err = "";
  const tty = options.tty ?? false;
  const io: Io = {
    out: (text) => {
      out += `${text}\n`;
    },
    err: (text) => {
      err += `${text}\n`;
    },
    write: async (chunk) => {
      out += chunk;
    },
    color: paint(tty),
    tty,
    env: { PATH: process.env["PATH"], ...options.env },
    cwd: options.cwd,
    clock: options.clock ?? systemEnv,
  };
  const code = await main(args, io);
  return { code, out, err };
}
