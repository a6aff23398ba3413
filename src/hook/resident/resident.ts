/**
 * The resident process: one per directory of settings. It decides the events of all clients, keeps the state that
 * outlives a call, and ends after half an hour without one.
 */
import { chmodSync, lstatSync, rmSync, statSync } from "node:fs";
import { connect } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";
import type { SqliteDatabase } from "../../store/journal/connection.ts";
import { HOOK_CLIENTS, type HookClient, refuseAnswer } from "../clients/clients.ts";
import { handleEvent } from "../hook.ts";
import { startSweeping } from "../record/sweep-deleted.ts";
import { createWorkspaceRecords } from "../record/workspace-records.ts";
import { type HookSettings, readSettings } from "../settings.ts";
import { takeLock } from "./lock.ts";
import { prepareFolder, SOCKET_NAME } from "./places.ts";
import { CARRIER_PROTOCOL } from "./protocol.ts";
import { createResidentServer } from "./server.ts";
import { createServiceStreams } from "./service-streams.ts";
import { createServices } from "./services.ts";

const IDLE_MS = 30 * 60 * 1_000;
/** Interval for checking that the socket in the directory is still the process's own. */
const LOOK_MS = 1_000;
/** How long a newcomer waits for the lock of one that is leaving. */
const HANDOVER_MS = 5_000;
const AGAIN_MS = 50;
/** A carrier that connected to the socket before its removal is still answered. */
const LAST_CALLS_MS = 100;

export interface ResidentOptions {
  folder: string;
  version: string;
  /** The file that this process runs. When it changes, the process makes place. */
  program?: string;
  idle_ms?: number;
}

/** `running`: another process of the same version has the place. `ended`: this one served until it was done. */
export type ResidentEnd = "running" | "ended";

export async function runResident(
  options: ResidentOptions,
  onReady: () => void = () => {},
  stop?: AbortSignal,
): Promise<ResidentEnd> {
  const own = prepareFolder(options.folder);
  // A relative socket path is short on every system, however long the directory's is.
  process.chdir(own);
  process.umask(0o077);
  const lock = await takePlace(own, options.version);
  if (lock === null) return "running";
  await serve(options, onReady, stop);
  // The lock ends with the process; closing it earlier would let two work on the same records.
  lock.close();
  return "ended";
}

/** Null if a process of the same version has the place, or another one does not leave it. */
async function takePlace(own: string, version: string): Promise<SqliteDatabase | null> {
  const until = performance.now() + HANDOVER_MS;
  for (;;) {
    const lock = takeLock(own);
    if (lock !== null) return lock;
    if ((await askToLeave(version)) === version || performance.now() > until) return null;
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

/** Asks the process at the socket to leave if it has another version. Null if it does not answer. */
function askToLeave(version: string): Promise<string | null> {
  return new Promise((resolve) => {
    let said = "";
    const socket = connect(SOCKET_NAME, () => socket.write(`${CARRIER_PROTOCOL} replace ${version}\0`));
    socket.setEncoding("utf8").setTimeout(1_000, () => socket.destroy());
    socket.on("data", (text: string) => (said += text));
    socket.on("error", () => resolve(null));
    socket.on("close", () => resolve(said.trim() === "" ? null : said.trim()));
  });
}

async function serve(options: ResidentOptions, onReady: () => void, stop?: AbortSignal): Promise<void> {
  const { folder, version, program, idle_ms = IDLE_MS } = options;
  const services = createServices(folder);
  const records = services.part(createWorkspaceRecords);
  const streams = services.part(createServiceStreams);
  const settingsOf = (client: string): HookSettings => {
    const env = { HOME: process.env["HOME"] || homedir() };
    const settings = readSettings(join(folder, `${client}.json`), env);
    return { ...settings, stream: streams.to(settings) };
  };
  const stopSweeping = startSweeping(folder, records, (run) => settingsOf(clientOfRun(run)));
  const began = identity(program);
  let leaving = false;
  let last = Date.now();
  let done = () => {};
  const finished = new Promise<void>((resolve) => (done = resolve));
  const { server, busy, endHolds } = createResidentServer({
    judge: async (client, event, way) => {
      last = Date.now();
      if (identity(program) !== began) leave();
      if (!(HOOK_CLIENTS as readonly string[]).includes(client))
        return refuseAnswer("svc hook: unknown client");
      return handleEvent(client as HookClient, event, () => settingsOf(client), {
        services,
        records,
        ...way,
      });
    },
    replace(other) {
      if (other !== version) leave();
      return version;
    },
  });
  // With the lock, the process can remove what a killed one left.
  rmSync(SOCKET_NAME, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(SOCKET_NAME, resolve);
  });
  chmodSync(SOCKET_NAME, 0o600);
  const mine = lstatSync(SOCKET_NAME).ino;
  const isMine = () => lstatSync(SOCKET_NAME, { throwIfNoEntry: false })?.ino === mine;
  const look = setInterval(() => {
    if (!isMine() || (busy() + records.open === 0 && Date.now() - last > idle_ms)) leave();
  }, LOOK_MS);
  /** Takes no new call, answers those under way, and ends. */
  function leave(): void {
    if (leaving) return;
    leaving = true;
    clearInterval(look);
    stopSweeping();
    try {
      if (isMine()) rmSync(SOCKET_NAME, { force: true });
    } catch {}
    endHolds();
    setTimeout(() => server.close(done), LAST_CALLS_MS);
  }
  stop?.addEventListener("abort", leave, { once: true });
  onReady();
  await finished;
  await services.close();
}

/** The client that a run's id begins with. */
function clientOfRun(run: string): HookClient {
  const client = HOOK_CLIENTS.find((one) => run.startsWith(`${one}-`));
  if (client === undefined) throw new Error("the run is not a coding agent's");
  return client;
}

/** Changes when the installed program does. */
function identity(program: string | undefined): string {
  const found = program === undefined ? undefined : statSync(program, { throwIfNoEntry: false });
  return found === undefined ? "" : `${found.ino} ${found.size} ${found.mtimeMs}`;
}
