/**
 * The one socket of this machine that a confined command sees: it takes hook events of this run and nothing else. The
 * relay hands them to the resident process, with the launcher's evidence that they come from inside.
 */
import { existsSync, lstatSync, rmSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { packageFile } from "../../../child-process/package-files.ts";
import { HOOK_CLIENTS, type HookClient, readEvent, refuseAnswer } from "../../../hook/clients/clients.ts";
import { START_MS, startResident } from "../../../hook/resident/forward.ts";
import { prepareFolder, residentFolder, SOCKET_NAME } from "../../../hook/resident/places.ts";
import {
  CARRIER_PROTOCOL,
  decodeAnswer,
  encodeAnswer,
  encodeConfined,
  MAX_EVENT_BYTES,
} from "../../../hook/resident/protocol.ts";
import type { ConfinedCaller } from "../../../hook/resident/services.ts";
import { invalidError } from "../../../kernel/errors.ts";

const AGAIN_MS = 50;
/** Longest socket path that the system allows. */
const MAX_SOCKET_PATH = 107;
const MAX_CONNECTIONS = 64;
/** Bytes of all events that the relay holds at once. */
const MAX_HELD_BYTES = 67_108_864;
/** Each session leaves a file behind, so the confined side cannot begin any number. */
const MAX_SESSIONS = 200;
const END = 0;

export interface HookRelay {
  /** The socket, to be mounted into the confined side. */
  readonly socket: string;
  /** Where the confined side expects it. */
  readonly place: string;
  /** Removes the socket's path here, so that nothing outside can connect. The mount stays. */
  hide(): void;
  /** Hands over the ends of sessions, whose transcripts are back by then, and stops. */
  close(): Promise<void>;
}

/** Whether hooks of any client have settings in the directory. */
export const hasHooks = (folder: string): boolean =>
  HOOK_CLIENTS.some((client) => existsSync(join(folder, `${client}.json`)));

/** `folder`: the directory of the hooks' settings. `into`: a directory of this run. */
export async function startHookRelay(
  folder: string,
  into: string,
  confined: ConfinedCaller,
): Promise<HookRelay> {
  const target = join(residentFolder(folder), SOCKET_NAME);
  const socket = join(into, SOCKET_NAME);
  if (Math.max(target.length, socket.length) > MAX_SOCKET_PATH)
    throw invalidError(`the path of the hook's socket is longer than ${MAX_SOCKET_PATH} characters`);
  prepareFolder(folder);
  const evidence = encodeConfined(confined);
  const hand = (client: HookClient, event: string) =>
    handOver(folder, target, `${client} ${evidence}`, event);
  const ended = new Map<string, () => Promise<Socket>>();
  const sessions = new Set<string>();
  const held = { bytes: 0 };
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (from) => {
    open.add(from);
    from.once("close", () => open.delete(from));
    from.on("error", () => from.destroy());
    if (open.size > MAX_CONNECTIONS) return void from.destroy();
    readRequest(from, held, (client, event) => {
      const { session, isEnd } = sessionOf(client, event);
      sessions.add(session);
      if (sessions.size > MAX_SESSIONS) {
        sessions.delete(session);
        return refuse(from, `svc run takes the events of ${MAX_SESSIONS} sessions at most`);
      }
      if (isEnd) {
        ended.set(session, () => hand(client, event));
        from.end(encodeAnswer({ code: 0, out: "", err: "" }));
        return;
      }
      hand(client, event).then(
        (to) => joinAnswer(from, to),
        () => refuse(from, "the process that judges calls cannot be reached, so the call is refused"),
      );
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(socket, resolve);
  });
  // The first event finds it ready.
  if ((await reach(target).then((to) => to?.destroy())) === undefined) startJudging(folder);
  return {
    socket,
    place: target,
    hide: () => rmSync(socket, { force: true }),
    async close() {
      server.close();
      for (const one of open) one.destroy();
      for (const handEnd of ended.values()) await handEnd().then(answered, () => {});
    },
  };
}

/** Calls `done` with the one event of the connection. Everything but an event is refused. */
function readRequest(
  from: Socket,
  held: { bytes: number },
  done: (client: HookClient, event: string) => void,
): void {
  const parts: Buffer[] = [];
  let size = 0;
  from.once("close", () => {
    held.bytes -= size;
  });
  const onData = (part: Buffer) => {
    size += part.length;
    held.bytes += part.length;
    if (size > MAX_EVENT_BYTES || held.bytes > MAX_HELD_BYTES) {
      from.off("data", onData);
      return refuse(from, "the calls under way are too large");
    }
    parts.push(part);
    if (part.at(-1) !== END) return;
    from.off("data", onData);
    from.resume();
    const text = Buffer.concat(parts.splice(0)).subarray(0, -1).toString("utf8");
    const cut = text.indexOf("\n");
    const [protocol, verb, client, ...more] = text.slice(0, cut).split(" ");
    const known = HOOK_CLIENTS.find((one) => one === client);
    if (cut < 0 || protocol !== CARRIER_PROTOCOL || verb !== "call" || known === undefined || more.length > 0)
      return refuse(from, "only hook events are taken here");
    done(known, text.slice(cut + 1));
  };
  from.on("data", onData);
}

const refuse = (from: Socket, why: string): void =>
  void from.end(encodeAnswer(refuseAnswer(`svc: ${why}`)), () => from.destroy());

/** An event that cannot be read belongs to no session. The resident process refuses it. */
function sessionOf(client: HookClient, event: string): { session: string; isEnd: boolean } {
  try {
    const read = readEvent(client, JSON.parse(event));
    if (read !== null && typeof read !== "string") return { session: read.session, isEnd: read.session_over };
  } catch {}
  return { session: "", isEnd: false };
}

/** Connects to the resident process, which it starts if there is none, and sends the event. */
async function handOver(folder: string, target: string, subject: string, event: string): Promise<Socket> {
  const until = Date.now() + START_MS;
  for (let isStarted = false; ; ) {
    const to = await reach(target);
    if (to !== null) {
      to.write(`${CARRIER_PROTOCOL} call ${subject}\n${event}\0`);
      return to;
    }
    if (Date.now() > until) throw new Error("the process did not start");
    if (!isStarted) startJudging(folder);
    isStarted = true;
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

const startJudging = (folder: string): void =>
  startResident(folder, fileURLToPath(packageFile("dist/hook/resident/start.js")));

function reach(target: string): Promise<Socket | null> {
  const found = lstatSync(target, { throwIfNoEntry: false });
  if (found?.isSocket() !== true || found.uid !== process.getuid!()) return Promise.resolve(null);
  return new Promise((resolve) => {
    const to = connect(target, () => resolve(to));
    to.once("error", () => resolve(null));
  });
}

function joinAnswer(from: Socket, to: Socket): void {
  to.on("error", () => from.destroy());
  from.once("close", () => to.destroy());
  to.pipe(from);
}

/** Waits for the whole answer of a connection. */
function answered(to: Socket): Promise<void> {
  return new Promise((resolve) => {
    let said = "";
    to.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (decodeAnswer(said) !== null) to.destroy();
    });
    to.once("close", () => resolve());
    to.on("error", () => resolve());
  });
}

/** Mounts that show the confined side the socket where its hook looks for it, and nothing else of the directory. */
export function hookMounts({ socket, place }: HookRelay, home: string): string[] {
  const folder = dirname(dirname(place));
  const above = ancestors(dirname(folder), home);
  return [
    // Each is a mount, because a plain directory could be renamed and replaced.
    ...above.flatMap((path) => ["--tmpfs", path]),
    ...["--dir", folder, "--perms", "0700", "--dir", dirname(place), "--bind", socket, place],
    ...["--remount-ro", dirname(folder)],
  ];
}

/** Directories from the home directory, without it, down to this one. */
function ancestors(path: string, home: string): string[] {
  if (path === home || !path.startsWith(`${home}/`) || basename(path) === "") return [];
  return [...ancestors(dirname(path), home), path];
}
