/** A command of svc inside this process: what it prints, and the code it ends with. */
import { Command, CommanderError } from "commander";
import type { Exit, Register } from "../../../src/cli/context.ts";
import { type Io, paint } from "../../../src/cli/io.ts";
import { createContext } from "../../../src/cli/open-context.ts";
import { type Env, systemEnv } from "../../../src/kernel/env.ts";
import { messageOf } from "../../../src/kernel/errors.ts";

export interface CommandResult {
  code: Exit;
  out: string;
  err: string;
}

export interface CommandOptions {
  cwd: string;
  env?: Record<string, string>;
  clock?: Env;
}

export async function command(
  register: Register,
  argv: readonly string[],
  options: CommandOptions,
): Promise<CommandResult> {
  let out = "";
  let err = "";
  let code: Exit = 0;
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
    color: paint(false),
    tty: false,
    env: options.env ?? {},
    cwd: options.cwd,
    clock: options.clock ?? systemEnv,
  };
  const done = (exit: Exit) => {
    code = exit;
  };
  const program = new Command("svc").exitOverride().configureOutput({ writeOut: io.out, writeErr: io.err });
  register(program, { ...createContext(io), done });
  for (const child of program.commands) {
    child.exitOverride().configureOutput({ writeOut: io.out, writeErr: io.err });
  }
  try {
    await program.parseAsync(argv, { from: "user" });
  } catch (error) {
    code = 1;
    if (!(error instanceof CommanderError)) io.err(`error: ${messageOf(error)}`);
  }
  return { code, out, err };
}
