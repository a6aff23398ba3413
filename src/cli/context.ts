/** What every command is given, and the global options that each takes. Light: `svc --help` loads no more than this. */
import { type Command, Option } from "commander";
import type { App } from "../app/app.ts";
import type { Settings } from "../config/settings.ts";
import type { Door } from "./door.ts";
import type { Io } from "./io.ts";

/** A command's result: the exit code it ends with. */
export type Exit = 0 | 1 | 2;
export const ATTENTION: Exit = 2;

export interface Context {
  io: Io;
  /** Sets the exit code of the command that is running; 0 unless said otherwise. */
  done(code: Exit): void;
  /** The settings under the global options and those further ones that the command names as its own. */
  settings(flags?: Flags, own?: readonly string[]): Settings;
  /** Whether the options name a server. */
  isRemote(flags: Flags): boolean;
  /** Opens the door that the options name, runs the work, and closes everything again. */
  withDoor<T>(flags: Flags, work: (door: Door) => Promise<T>, own?: readonly string[]): Promise<T>;
  /** The same for what needs the data themselves: a server is refused. */
  withData<T>(flags: Flags, work: (door: Door) => Promise<T>, own?: readonly string[]): Promise<T>;
  /** And for what is no operation. */
  withApp<T>(flags: Flags, work: (app: App) => Promise<T>, own?: readonly string[]): Promise<T>;
}

export type Flags = Record<string, unknown>;
/** Each command file exports one of these. */
export type Register = (program: Command, context: Context) => void;

export const NEEDS_DATA =
  "this command needs the data themselves: run it on the server's machine, with -d <dir>";
const NEEDS_FILES = "this command works on files of this machine: leave out --server";
/** What looks at files and at no data: by the words of the command. */
const ON_FILES = new Set(["init", "validate", "policy check", "policy test", "config show", "config check"]);

/** Why the command takes no server. */
export const needsThisMachine = (command: string): string =>
  ON_FILES.has(command) ? NEEDS_FILES : NEEDS_DATA;

export const PORT_OPTION = "port to listen on (default: 8787)";
export const HOST_OPTION = "address to bind (default: 127.0.0.1)";

const GLOBAL_OPTIONS: readonly (readonly [flags: string, about: string])[] = [
  ["-m, --manifests <path>", "tool manifests: a file, a folder or a URL"],
  ["-d, --data <dir>", "data folder (default: data)"],
  ["--store <kind>", "files, sqlite or postgres (default: files)"],
  ["--config <file>", "configuration file (default: svc.config.yaml here)"],
  ["--server <url>", "work against this server instead (or SVC_SERVER)"],
  ["--key-file <file>", "file with the key for it (or SVC_TOKEN)"],
];

export function globalOptions(command: Command): Command {
  for (const [flags, about] of GLOBAL_OPTIONS) command.addOption(new Option(flags, about));
  return command;
}

/** A command that has no use for a global option takes it all the same; scripts give them to every command. */
export function tolerateGlobalOptions(command: Command): void {
  for (const [flags, about] of GLOBAL_OPTIONS) {
    const option = new Option(flags, about).hideHelp();
    if (!command.options.some(({ long }) => long === option.long)) command.addOption(option);
  }
}

/** The first word that is a command: global options, each with its value, may stand before it. */
export function calledCommand(argv: readonly string[]): number {
  const valued = new Set(GLOBAL_OPTIONS.flatMap(([flags]) => flags.replace(/ <.*/, "").split(", ")));
  let at = 0;
  while (at < argv.length && argv[at]!.startsWith("-")) at += valued.has(argv[at]!) ? 2 : 1;
  return at;
}
