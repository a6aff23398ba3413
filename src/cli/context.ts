/** From command-line options to an open engine; every command takes the same global options. */
import { type Command, Option } from "commander";
import type { App } from "../app/app.ts";
import { loadSettings } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { invalid } from "../kernel/errors.ts";
import { channelsSchema } from "../notify/channels/table.ts";
import { openStore } from "../store/open.ts";
import { doesWithoutStore, withFoundStore } from "./data-folder.ts";
import { type Door, localDoor, remoteDoor, serverAddress } from "./door.ts";
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
  /** The same for what is no operation: it needs the data themselves, and refuses a server. */
  withApp<T>(flags: Flags, work: (app: App) => Promise<T>, own?: readonly string[]): Promise<T>;
}

export type Flags = Record<string, unknown>;
/** Each command file exports one of these. */
export type Register = (program: Command, context: Context) => void;

export const NEEDS_DATA =
  "this command needs the data themselves: run it on the server's machine, with -d <dir>";

/** Options that name data on this machine. */
const LOCAL_FLAGS = ["manifests", "data", "store", "config"];
const GLOBAL_OPTIONS: readonly (readonly [flags: string, about: string])[] = [
  ["-m, --manifests <path>", "tool manifests: a file, a folder or a URL"],
  ["-d, --data <dir>", "data folder"],
  ["--store <kind>", "files, sqlite or postgres"],
  ["--config <file>", "configuration file (default: svc.config.yaml here)"],
  ["--server <url>", "work against this server instead (or SVC_SERVER)"],
  ["--key-file <file>", "file with the key for it (or SVC_TOKEN)"],
];
/** The channels' own schemas live with the channels. */
const CHANNEL_SCHEMAS = { "notifications.channels": channelsSchema };

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

/** The words of the command line that no command sees by itself. */
interface Line {
  /** The global options that stood before the command; one given behind it is the closer word. */
  before(): Flags;
  /** The command, such as `approvals list`. */
  called(): string;
}

export function createContext(
  io: Io,
  { before, called }: Line = { before: () => ({}), called: () => "" },
): Omit<Context, "done"> {
  const settings = (flags: Flags = {}, own: readonly string[] = []) => {
    const given = before();
    // An option of one command may share its name with a setting and mean something else.
    const chosen = Object.fromEntries([
      ...LOCAL_FLAGS.map((name) => [name, flags[name] ?? given[name]]),
      ...own.map((name) => [name, flags[name]]),
    ]);
    return withFoundStore(
      loadSettings({ flags: chosen, env: io.env, cwd: io.cwd, schemas: CHANNEL_SCHEMAS }),
    );
  };
  const server = (flags: Flags) => {
    const given = before();
    const one = (name: string) => (flags[name] ?? given[name]) as string | undefined;
    const local = LOCAL_FLAGS.some((name) => one(name) !== undefined);
    return serverAddress({ server: one("server"), keyFile: one("keyFile"), local }, io);
  };
  const openDoor = async (flags: Flags, own?: readonly string[]): Promise<Door> => {
    const as = flags["as"] as string | undefined;
    const address = server(flags);
    if (address === null) {
      const { openApp } = await import("../app/wiring/open-app.ts");
      const chosen = settings(flags, own);
      const { data, database_url } = chosen;
      const store = doesWithoutStore(called(), chosen)
        ? await openStore({ store: "memory", data, database_url, warn: io.err })
        : undefined;
      return localDoor(await openApp(chosen, io.clock, store === undefined ? {} : { store }), as);
    }
    if (flags["as"] !== undefined) throw invalid("--as: on a server the key says who acts");
    return remoteDoor(address, io.clock);
  };
  const withDoor: Context["withDoor"] = async (flags, work, own) => {
    const door = await openDoor(flags, own);
    try {
      return await work(door);
    } finally {
      await door.close();
    }
  };
  return {
    io,
    settings,
    isRemote: (flags) => server(flags) !== null,
    withDoor,
    withApp(flags, work, own) {
      if (server(flags) !== null) throw invalid(NEEDS_DATA);
      return withDoor(flags, (door) => work(door.local!), own);
    },
  };
}
