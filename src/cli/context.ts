/** Context that every command receives, and the global options. Kept light: `svc --help` loads no more than this. */
import { type Command, Option } from "commander";
import type { LoadedSettings } from "../config/settings.ts";
import type { ServiceApp } from "../operations/app.ts";
import type { CommandIo } from "./io.ts";
import type { OperationClient, ServerAddress } from "./operation-client.ts";

/** Exit code of a command. */
export type ExitCode = 0 | 1 | 2;
export const EXIT_NEEDS_ATTENTION: ExitCode = 2;

export interface CommandContext {
  io: CommandIo;
  /** Sets the exit code of the running command. The default is 0. */
  done(code: ExitCode): void;
  /** Loads the settings from the global options and from those options that the command lists in `own`. */
  settings(flags?: CommandFlags, own?: readonly string[]): LoadedSettings;
  /** Whether the options name a server. */
  isRemote(flags: CommandFlags): boolean;
  /** The server that the options name, with its key; null for local data. */
  server(flags: CommandFlags): ServerAddress | null;
  /** Opens the local data or the server that the options name, runs the work, and closes everything again. */
  withDoor<T>(
    flags: CommandFlags,
    work: (door: OperationClient) => Promise<T>,
    own?: readonly string[],
  ): Promise<T>;
  /** Like `withDoor`, for commands that need local data. Throws if the options name a server. */
  withData<T>(
    flags: CommandFlags,
    work: (door: OperationClient) => Promise<T>,
    own?: readonly string[],
  ): Promise<T>;
  /** Like `withData`, for commands that need the app instead of single operations. */
  withApp<T>(flags: CommandFlags, work: (app: ServiceApp) => Promise<T>, own?: readonly string[]): Promise<T>;
}

export type CommandFlags = Record<string, unknown>;
/** Function that each command file exports to add its command. */
export type RegisterCommand = (program: Command, context: CommandContext) => void;

export const NEEDS_LOCAL_DATA =
  "this command needs local data: run it on the server's machine, with -d <dir>";
const NEEDS_FILES = "this command works on local files: omit --server";
/** Commands that work on files and need no data. */
const ON_FILES = new Set([
  "init",
  "validate",
  "policy new",
  "policy check",
  "policy test",
  "config show",
  "config check",
]);

/** Error for a command that does not accept `--server`. */
export const needsThisMachine = (command: string): string =>
  ON_FILES.has(command) ? NEEDS_FILES : NEEDS_LOCAL_DATA;

export const PORT_OPTION = "port to listen on (default: 8787)";
export const HOST_OPTION = "address to bind (default: 127.0.0.1)";

const GLOBAL_OPTIONS: readonly (readonly [flags: string, about: string])[] = [
  ["-m, --manifests <path>", "tool manifests: a file, a directory or a URL"],
  ["-d, --data <dir>", "data directory (default: data)"],
  ["--store <kind>", "files, sqlite or postgres (default: files)"],
  ["--config <file>", "configuration file (default: svc.config.yaml)"],
  ["--server <url>", "use this server instead of local data (or SVC_SERVER)"],
  ["--key-file <file>", "file with the server's key (or SVC_TOKEN)"],
];

/** Heading of the global options in the help. */
export const GLOBAL_HEADING = "Global options:";

export function globalOptions(command: Command): Command {
  for (const [flags, about] of GLOBAL_OPTIONS)
    command.addOption(new Option(flags, about).helpGroup(GLOBAL_HEADING));
  return command;
}

/** Accepts global options on commands that do not use them, because scripts pass them to every command. */
export function acceptGlobalOptions(command: Command): void {
  for (const [flags, about] of GLOBAL_OPTIONS) {
    const option = new Option(flags, about).hideHelp();
    if (!command.options.some(({ long }) => long === option.long)) command.addOption(option);
  }
}

/** Returns the index of the command's name. Global options and their values may come before it. */
export function commandIndex(argv: readonly string[]): number {
  const valued = new Set(GLOBAL_OPTIONS.flatMap(([flags]) => flags.replace(/ <.*/, "").split(", ")));
  let at = 0;
  while (at < argv.length && argv[at]!.startsWith("-")) at += valued.has(argv[at]!) ? 2 : 1;
  return at;
}
