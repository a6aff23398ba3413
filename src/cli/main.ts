/** The command `svc`: parses, runs one command, and turns every failure into one clear line and a code. */
import { Command, CommanderError } from "commander";
import { VERSION } from "../app/wiring/version.ts";
import { ProblemsError, SvcError } from "../kernel/errors.ts";
import { COMMANDS } from "./commands/index.ts";
import {
  ATTENTION,
  type Context,
  calledCommand,
  type Exit,
  globalOptions,
  tolerateGlobalOptions,
} from "./context.ts";
import { type Io, printable } from "./io.ts";

export async function main(argv: readonly string[], io: Io): Promise<Exit> {
  const program = globalOptions(new Command("svc"))
    .enablePositionalOptions()
    .description("Action governance for AI agents: decide every call, record it, take it back.")
    .version(VERSION, "-V, --version", "print the version")
    .helpOption("-h, --help", "show help")
    .showHelpAfterError("(add --help for what this command takes)")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.out(text.trimEnd()),
      writeErr: (text) => io.err(text.trimEnd()),
    })
    .addHelpText("after", EXAMPLES);
  let exit: Exit = 0;
  const done = (code: Exit) => {
    exit = code;
  };
  let called = "";
  const line = { before: () => program.opts(), called: () => called };
  try {
    await addCommands(program, argv, async () => {
      const { createContext } = await import("./open-context.ts");
      return { ...createContext(io, line), done };
    });
    applyToAll(program);
    program.hook("preAction", (_, action) => {
      called = wordsOf(action);
    });
    await program.parseAsync(argv, { from: "user" });
    return exit;
  } catch (error) {
    const code = failed(error, io);
    // A coding agent goes ahead with its call on any other code.
    return code !== 0 && argv[calledCommand(argv)] === "hook" ? ATTENTION : code;
  }
}

/** The command that is called comes with its code and its context; the others only with their line of the help. */
async function addCommands(
  program: Command,
  argv: readonly string[],
  open: () => Promise<Context>,
): Promise<void> {
  const at = calledCommand(argv);
  const called = argv[at] === "help" ? argv[at + 1] : argv[at];
  // A completion script is made from all of them.
  const all = called === "completion";
  for (const { name, summary, load } of COMMANDS) {
    if (all || name === called) (await load())(program, await open());
    else program.command(name).description(summary);
  }
}

/** `approvals list`, as it was called. */
function wordsOf(command: Command): string {
  const { parent } = command;
  return parent?.parent ? `${wordsOf(parent)} ${command.name()}` : command.name();
}

/** Commander keeps these per command; ours are the same for all. */
function applyToAll(command: Command): void {
  for (const child of command.commands) {
    child.copyInheritedSettings(command);
    child.exitOverride();
    if (child.commands.length === 0) tolerateGlobalOptions(child);
    applyToAll(child);
  }
}

function failed(error: unknown, io: Io): Exit {
  // Help and the version that were asked for end well; help that a mistake brought up does not.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 1;
  if (error instanceof ProblemsError) for (const problem of error.problems) io.err(printable(problem));
  else if (error instanceof SvcError) io.err(`error: ${printable(error.message)}`);
  else io.err(`error: ${printable(describe(error))}`);
  return 1;
}

const ERRNO: Record<string, string> = {
  ENOENT: "no such file or folder",
  EACCES: "permission denied",
  EISDIR: "is a folder, not a file",
  ENOTDIR: "is not a folder",
  EADDRINUSE: "the address is already in use",
};

function describe(error: unknown): string {
  const { code, path, message } = error as NodeJS.ErrnoException;
  const known = code === undefined ? undefined : ERRNO[code];
  if (known !== undefined) return path === undefined ? `${known}: ${message}` : `${path}: ${known}`;
  return message ?? String(error);
}

const EXAMPLES = `
Examples:
  svc server -m manifests/ -d data/        start the service
  svc validate manifests/                  check tool manifests
  svc runs -d data/                        list the runs of a data folder
  svc export --run <id> -d data/           print a run's trail
  svc verify -d data/                      check the ledger's chain

Exit codes: 0 success, 1 failure, 2 a result that needs attention.`;
