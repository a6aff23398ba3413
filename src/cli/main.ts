/** The `svc` command: parses arguments, runs one command, and turns errors into one line and an exit code. */
import { Command, CommanderError, Help, type Option } from "commander";
import { messageWithLink, ProblemsError, SvcError } from "../kernel/errors.ts";
import { PACKAGE_VERSION } from "../service/version.ts";
import { COMMAND_TABLE } from "./commands/index.ts";
import {
  acceptGlobalOptions,
  type CommandContext,
  commandIndex,
  EXIT_NEEDS_ATTENTION,
  type ExitCode,
  GLOBAL_HEADING,
  globalOptions,
} from "./context.ts";
import { commandExample } from "./examples.ts";
import { commandExitCodes } from "./exit-codes.ts";
import { type CommandIo, escapeControls } from "./io.ts";

export async function runCommandLine(argv: readonly string[], io: CommandIo): Promise<ExitCode> {
  const program = globalOptions(new Command("svc"))
    .enablePositionalOptions()
    .description("Action governance for AI agents: decide, record and undo every call.")
    .version(PACKAGE_VERSION, "-V, --version", "print the version")
    .helpOption("-h, --help", "show help")
    .configureHelp({ groupItems: groupItemsGlobalLast })
    .showHelpAfterError("(add --help for usage)")
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.out(text.trimEnd()),
      writeErr: (text) => io.err(text.trimEnd()),
    })
    .addHelpText("after", EXAMPLES);
  let exit: ExitCode = 0;
  const done = (code: ExitCode) => {
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
    // With any other exit code, a coding agent makes the call anyway.
    return code !== 0 && argv[commandIndex(argv)] === "hook" ? EXIT_NEEDS_ATTENTION : code;
  }
}

/** Loads the called command. All others get only their summary in the help. */
async function addCommands(
  program: Command,
  argv: readonly string[],
  open: () => Promise<CommandContext>,
): Promise<void> {
  const at = commandIndex(argv);
  const called = argv[at] === "help" ? argv[at + 1] : argv[at];
  // A completion script covers all commands.
  const all = called === "completion";
  for (const { name, summary, load } of COMMAND_TABLE) {
    if (all || name === called) (await load())(program, await open());
    else program.command(name).description(summary);
  }
}

/** Full name of a subcommand, such as `approvals list`. */
function wordsOf(command: Command): string {
  const { parent } = command;
  return parent?.parent ? `${wordsOf(parent)} ${command.name()}` : command.name();
}

/** Lists the global options after a command's own options. */
function groupItemsGlobalLast<T extends Command | Option>(
  unsorted: T[],
  visible: T[],
  groupOf: (item: T) => string,
): Map<string, T[]> {
  const groups = new Help().groupItems(unsorted, visible, groupOf);
  const shared = groups.get(GLOBAL_HEADING);
  groups.delete(GLOBAL_HEADING);
  return shared === undefined ? groups : groups.set(GLOBAL_HEADING, shared);
}

/** Copies parser settings to subcommands, since Commander stores them per command, and adds the examples. */
function applyToAll(command: Command): void {
  for (const child of command.commands) {
    child.copyInheritedSettings(command);
    child.exitOverride();
    if (child.commands.length === 0) acceptGlobalOptions(child);
    const exitCodes = commandExitCodes(wordsOf(child));
    if (exitCodes !== undefined) child.addHelpText("after", `\nExit codes: ${exitCodes}`);
    const example = commandExample(wordsOf(child));
    if (example !== undefined) child.addHelpText("after", `\nExample:\n  ${example}`);
    applyToAll(child);
  }
}

function failed(error: unknown, io: CommandIo): ExitCode {
  // Requested help and version output succeed. Help printed after a usage error does not.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 1;
  if (error instanceof ProblemsError) for (const problem of error.problems) io.err(escapeControls(problem));
  else if (error instanceof SvcError) io.err(`error: ${escapeControls(messageWithLink(error))}`);
  else io.err(`error: ${escapeControls(describe(error))}`);
  return 1;
}

const ERRNO: Record<string, string> = {
  ENOENT: "no such file or directory",
  EACCES: "permission denied",
  EISDIR: "is a directory, not a file",
  ENOTDIR: "is not a directory",
};

type AddressError = NodeJS.ErrnoException & { address?: string; port?: number };

const addressInUse = ({ address = "", port }: AddressError): string =>
  `cannot listen on ${address}${port === undefined ? "" : `:${port}`}: the address is already in use. Stop the other program, or pass --port`;

function describe(error: unknown): string {
  const { code, path, message } = error as NodeJS.ErrnoException;
  if (code === "EADDRINUSE") return addressInUse(error as AddressError);
  const known = code === undefined ? undefined : ERRNO[code];
  if (known !== undefined) return path === undefined ? `${known}: ${message}` : `${path}: ${known}`;
  return message ?? String(error);
}

const EXAMPLES = `
Examples:
  svc server -m manifests/ -d data/        start the service
  svc validate manifests/                  check tool manifests
  svc runs -d data/                        list the runs in a data directory
  svc export --run <id> -d data/           print a run's trail
  svc verify -d data/                      verify the ledger

Exit codes: 0 success, 1 failure, 2 a result that needs attention.`;
