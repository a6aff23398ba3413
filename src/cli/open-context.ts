/** Creates the context of a command from its options. */
import { loadSettings } from "../config/load.ts";
import { withQuietLog } from "../config/settings.ts";
import { invalidError } from "../kernel/errors.ts";
import { channelsSchema } from "../notify/channels/table.ts";
import { openStore } from "../store/open.ts";
import { type CommandContext, type CommandFlags, NEEDS_LOCAL_DATA, needsThisMachine } from "./context.ts";
import { canRunWithoutStore, withDetectedStore } from "./data-directory.ts";
import type { CommandIo } from "./io.ts";
import {
  localClient,
  type OperationClient,
  remoteClient,
  serverAddress,
  serverUrl,
} from "./operation-client.ts";

/** Options that name data on this machine. */
const LOCAL_FLAGS = ["manifests", "data", "store", "config"];
/** Schemas of notification channels, which their module defines. */
const CHANNEL_SCHEMAS = { "notifications.channels": channelsSchema };

/** Parts of the command line that the command's action does not receive. */
interface Line {
  /** Global options from before the command. The same option after the command overrides them. */
  before(): CommandFlags;
  /** Name of the command, such as `approvals list`. */
  called(): string;
}

export function createContext(
  io: CommandIo,
  { before, called }: Line = { before: () => ({}), called: () => "" },
): Omit<CommandContext, "done"> {
  const settings = (flags: CommandFlags = {}, own: readonly string[] = []) => {
    const given = before();
    // Settings belong to this machine. `SVC_SERVER` is ignored here; it is for commands that can use a server.
    if ((flags["server"] ?? given["server"]) !== undefined) throw invalidError(needsThisMachine(called()));
    // Pick options by name: an option of another command can share a setting's name and mean something else.
    const chosen = Object.fromEntries([
      ...LOCAL_FLAGS.map((name) => [name, flags[name] ?? given[name]]),
      ...own.map((name) => [name, flags[name]]),
    ]);
    return withDetectedStore(
      loadSettings({ flags: chosen, env: io.env, cwd: io.cwd, schemas: CHANNEL_SCHEMAS }),
    );
  };
  const asked = (flags: CommandFlags) => {
    const given = before();
    const one = (name: string) => (flags[name] ?? given[name]) as string | undefined;
    const local = LOCAL_FLAGS.some((name) => one(name) !== undefined);
    return { server: one("server"), keyFile: one("keyFile"), local };
  };
  const isRemote = (flags: CommandFlags) => serverUrl(asked(flags), io) !== null;
  const openDoor = async (flags: CommandFlags, own?: readonly string[]): Promise<OperationClient> => {
    const as = flags["as"] as string | undefined;
    const address = serverAddress(asked(flags), io);
    if (address === null) {
      const { openApp } = await import("../service/open-app.ts");
      const chosen = settings(flags, own);
      const { data, database_url } = chosen;
      const store = canRunWithoutStore(called(), chosen)
        ? await openStore({ store: "memory", data, database_url, warn: io.err })
        : undefined;
      return localClient(
        await openApp(withQuietLog(chosen), io.clock, store === undefined ? {} : { store }),
        as,
      );
    }
    if (flags["as"] !== undefined)
      throw invalidError("--as: not available on a server, where the key identifies the actor");
    return remoteClient(address, io.clock);
  };
  const withDoor: CommandContext["withDoor"] = async (flags, work, own) => {
    const door = await openDoor(flags, own);
    try {
      return await work(door);
    } finally {
      await door.close();
    }
  };
  const withData: CommandContext["withData"] = (flags, work, own) => {
    if (isRemote(flags)) throw invalidError(NEEDS_LOCAL_DATA);
    return withDoor(flags, work, own);
  };
  return {
    io,
    settings,
    isRemote,
    server: (flags) => serverAddress(asked(flags), io),
    withDoor,
    withData,
    withApp: (flags, work, own) => withData(flags, (door) => work(door.local!), own),
  };
}
