/** From command-line options to an open engine; every command takes the same global options. */
import { type Command, Option } from "commander";
import type { App } from "../app/app.ts";
import { loadSettings } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import type { Principal } from "../model/roles.ts";
import { channelsSchema } from "../notify/channels/table.ts";
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
  /** Opens the store and the rules, runs the work, and closes everything again. */
  withApp<T>(flags: Flags, work: (app: App) => Promise<T>, own?: readonly string[]): Promise<T>;
}

export type Flags = Record<string, unknown>;
/** Each command file exports one of these. */
export type Register = (program: Command, context: Context) => void;

const GLOBAL_FLAGS = ["manifests", "data", "store", "config"];
/** The channels' own schemas live with the channels. */
const CHANNEL_SCHEMAS = { "notifications.channels": channelsSchema };

export function globalOptions(command: Command): Command {
  return command
    .addOption(new Option("-m, --manifests <path>", "tool manifests: a file, a folder or a URL"))
    .addOption(new Option("-d, --data <dir>", "data folder"))
    .addOption(new Option("--store <kind>", "files, sqlite or postgres"))
    .addOption(new Option("--config <file>", "configuration file (default: svc.config.yaml here)"));
}

export function createContext(io: Io): Omit<Context, "done"> {
  const settings = (flags: Flags = {}, own: readonly string[] = []) => {
    // An option of one command may share its name with a setting and mean something else.
    const chosen = Object.fromEntries([...GLOBAL_FLAGS, ...own].map((name) => [name, flags[name]]));
    return loadSettings({ flags: chosen, env: io.env, cwd: io.cwd, schemas: CHANNEL_SCHEMAS });
  };
  return {
    io,
    settings,
    async withApp(flags, work, own) {
      const { openLocalApp } = await import("../app/local.ts");
      const app = await openLocalApp(settings(flags, own), io.clock);
      try {
        return await work(app);
      } finally {
        await app.close();
      }
    },
  };
}

/** Whoever sits at the command line holds the data already, and so acts with every role. */
export function localPrincipal(name = "cli"): Principal {
  return {
    id: `local:${name}`,
    name,
    roles: ["admin"],
    groups: [],
    tenant: null,
    max_permissions: ["*"],
    allow_observe: true,
  };
}
