/** From command-line options to settings and an open engine. */
import { loadSettings } from "../config/load.ts";
import { quiet } from "../config/settings.ts";
import { invalid } from "../kernel/errors.ts";
import { channelsSchema } from "../notify/channels/table.ts";
import { openStore } from "../store/open.ts";
import { type Context, type Flags, NEEDS_DATA, needsThisMachine } from "./context.ts";
import { doesWithoutStore, withFoundStore } from "./data-folder.ts";
import { type Door, localDoor, remoteDoor, serverAddress, serverUrl } from "./door.ts";
import type { Io } from "./io.ts";

/** Options that name data on this machine. */
const LOCAL_FLAGS = ["manifests", "data", "store", "config"];
/** The channels' own schemas live with the channels. */
const CHANNEL_SCHEMAS = { "notifications.channels": channelsSchema };

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
    // Settings are those of this machine. That a variable names a server is meant for the commands that ask one.
    if ((flags["server"] ?? given["server"]) !== undefined) throw invalid(needsThisMachine(called()));
    // An option of one command may share its name with a setting and mean something else.
    const chosen = Object.fromEntries([
      ...LOCAL_FLAGS.map((name) => [name, flags[name] ?? given[name]]),
      ...own.map((name) => [name, flags[name]]),
    ]);
    return withFoundStore(
      loadSettings({ flags: chosen, env: io.env, cwd: io.cwd, schemas: CHANNEL_SCHEMAS }),
    );
  };
  const asked = (flags: Flags) => {
    const given = before();
    const one = (name: string) => (flags[name] ?? given[name]) as string | undefined;
    const local = LOCAL_FLAGS.some((name) => one(name) !== undefined);
    return { server: one("server"), keyFile: one("keyFile"), local };
  };
  const isRemote = (flags: Flags) => serverUrl(asked(flags), io) !== null;
  const openDoor = async (flags: Flags, own?: readonly string[]): Promise<Door> => {
    const as = flags["as"] as string | undefined;
    const address = serverAddress(asked(flags), io);
    if (address === null) {
      const { openApp } = await import("../app/wiring/open-app.ts");
      const chosen = settings(flags, own);
      const { data, database_url } = chosen;
      const store = doesWithoutStore(called(), chosen)
        ? await openStore({ store: "memory", data, database_url, warn: io.err })
        : undefined;
      return localDoor(await openApp(quiet(chosen), io.clock, store === undefined ? {} : { store }), as);
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
  const withData: Context["withData"] = (flags, work, own) => {
    if (isRemote(flags)) throw invalid(NEEDS_DATA);
    return withDoor(flags, work, own);
  };
  return {
    io,
    settings,
    isRemote,
    withDoor,
    withData,
    withApp: (flags, work, own) => withData(flags, (door) => work(door.local!), own),
  };
}
