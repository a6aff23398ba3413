/**
 * Answers carriers on the socket. Every connection gets one whole answer within the time limit, or none. A carrier
 * counts anything else as a refusal.
 */
import { createServer, type Server, type Socket } from "node:net";
import { type HookAnswer, refuseAnswer } from "../clients/clients.ts";
import {
  ANSWER_MARGIN_MS,
  ANSWER_MS,
  CARRIER_PROTOCOL,
  decodeConfined,
  encodeAnswer,
  MAX_EVENT_BYTES,
} from "./protocol.ts";
import type { CallContext } from "./services.ts";

const MAX_CALLS = 64;
const END = 0;

interface ResidentServer {
  server: Server;
  /** Connections without an answer yet. */
  busy(): number;
  /** Has held calls answered at once. */
  endHolds(): void;
}

interface Duties {
  judge(client: string, event: string, way: Omit<CallContext, "services" | "records">): Promise<HookAnswer>;
  /** Another version asks for the place. Answers this process's version. */
  replace(version: string): string;
}

export function createResidentServer(duties: Duties): ResidentServer {
  const open = new Set<Socket>();
  const ending = new AbortController();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
    socket.on("error", () => socket.destroy());
    converse(socket, open.size > MAX_CALLS, { ...duties, ending: ending.signal });
  });
  return { server, busy: () => open.size, endHolds: () => ending.abort() };
}

interface Work extends Duties {
  ending: AbortSignal;
}

function converse(socket: Socket, crowded: boolean, duties: Work): void {
  const parts: Buffer[] = [];
  let size = 0;
  // No carrier waits longer for a call than this, so one that stopped sending is cut off.
  const late = setTimeout(() => socket.destroy(), ANSWER_MS);
  socket.once("close", () => clearTimeout(late));
  const onData = (part: Buffer) => {
    size += part.length;
    const whole = part[part.length - 1] === END;
    // Reads on to the end, because a carrier that cannot send misses the reason.
    if (size <= MAX_EVENT_BYTES && !crowded) parts.push(part);
    if (!whole) return;
    clearTimeout(late);
    socket.off("data", onData);
    socket.resume();
    if (crowded)
      return finish(socket, refuseAnswer(`svc: ${MAX_CALLS} calls are under way, so this one is refused`));
    if (size > MAX_EVENT_BYTES)
      return finish(socket, refuseAnswer(`svc: the call is larger than ${MAX_EVENT_BYTES} bytes`));
    const text = Buffer.concat(parts).subarray(0, -1).toString("utf8");
    void answer(socket, text, duties);
  };
  socket.on("data", onData);
}

const finish = (socket: Socket, said: HookAnswer): void => {
  socket.end(encodeAnswer(said), () => socket.destroy());
};

async function answer(socket: Socket, text: string, duties: Work): Promise<void> {
  const cut = text.indexOf("\n");
  const [protocol, verb, subject = "", evidence] = (cut < 0 ? text : text.slice(0, cut)).split(" ");
  if (protocol !== CARRIER_PROTOCOL)
    return finish(socket, refuseAnswer("svc: this hook is of another version; run svc connect again"));
  if (verb === "replace") {
    socket.end(`${duties.replace(subject)}\n`, () => socket.destroy());
    return;
  }
  if (verb !== "call")
    return finish(socket, refuseAnswer("svc: the hook's request is not understood; run svc connect again"));
  const { ending } = duties;
  const confined = evidence === undefined ? undefined : decodeConfined(evidence);
  if (confined === null)
    return finish(socket, refuseAnswer("svc: what svc run says about the call is not understood"));
  const judge = (way: Parameters<Duties["judge"]>[2]) =>
    duties.judge(subject, text.slice(cut + 1), { ...way, confined });
  finish(socket, await inTime(socket, ending, judge));
}

/** Returns the answer, or a refusal when the time is over. The signal then tells the work to stop. */
function inTime(
  socket: Socket,
  ending: AbortSignal,
  judge: (way: Omit<CallContext, "services" | "records">) => Promise<HookAnswer>,
): Promise<HookAnswer> {
  const stop = new AbortController();
  socket.once("close", () => stop.abort());
  return new Promise((resolve) => {
    const over = () => {
      stop.abort();
      resolve(refuseAnswer(`svc: no decision within ${ANSWER_MS / 1_000} s, so the call is refused`));
    };
    let timer = setTimeout(over, ANSWER_MS - ANSWER_MARGIN_MS);
    let watch: NodeJS.Timeout | undefined;
    const extend = (ms: number) => {
      clearTimeout(timer);
      timer = setTimeout(over, ms + ANSWER_MS - ANSWER_MARGIN_MS);
      socket.write(`hold ${Math.ceil(ms / 1_000)}\n`);
      clearInterval(watch);
      watch = setInterval(() => void isHeard(socket), WATCH_MS);
    };
    socket.once("close", () => clearInterval(watch));
    judge({ signal: stop.signal, extend, ending, isAwaited: () => isHeard(socket) })
      .catch((error: unknown) =>
        refuseAnswer(`svc: ${error instanceof Error ? error.message : String(error)}`),
      )
      .then((said) => {
        clearTimeout(timer);
        clearInterval(watch);
        resolve(said);
      });
  });
}

/** Interval for noticing that a held call's carrier is gone: the system reports that only for a write. */
const WATCH_MS = 1_000;

/** Whether the carrier is still there. If not, the socket closes, which aborts the call. */
function isHeard(socket: Socket): Promise<boolean> {
  if (socket.destroyed) return Promise.resolve(false);
  return new Promise((resolve) =>
    socket.write("wait\n", (error) => resolve(error == null && !socket.destroyed)),
  );
}
