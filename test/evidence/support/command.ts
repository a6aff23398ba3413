/** A command of svc inside this process: what it prints, and the code it ends with. */
import { Command, CommanderError } from "commander";
import type { ExitCode, RegisterCommand } from "../../../src/cli/context.ts";
import { type CommandIo, createPaint } from "../../../src/cli/io.ts";
import { createContext } from "../../../src/cli/open-context.ts";
import { type RuntimeEnv, systemEnv } from "../../../src/kernel/env.ts";
import { messageOf } from "../../../src/kernel/errors.ts";

export interface CommandResult {
  code: ExitCode;
  out: string;
  err: string;
}

export interface CommandOptions {
  cwd: string;
  env?: Record<string, string>;
  clock?: RuntimeEnv;
}

export async function command(
  register: RegisterCommand,
  argv: readonly string[],
  options: CommandOptions,
): Promise<CommandResult> {
  let out = "";
  let err = "";
  let code: ExitCode = 0;
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
    color: createPaint(false),
    tty: false,
    env: options.env ?? {},
    cwd: options.cwd,
    clock: options.clock ?? systemEnv,
  };
  const done = (exit: ExitCode) => {
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
