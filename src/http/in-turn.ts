/**
 * A client may send requests without waiting for the answers before them. Each is performed once the answer before it was
 * sent and left the connection open, so that no request is performed whose answer can no longer be sent.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { LIMITS } from "../kernel/limits.ts";

/** One request of a connection, from its arrival until its answer is sent. */
interface Turn {
  readonly request: IncomingMessage;
  /** The request ahead of it while that one has no answer yet. */
  ahead: Turn | undefined;
  /** How many requests of the connection had no answer when this one came. */
  readonly waiting: number;
  answered: boolean;
  /** Done once the answer was sent, where the connection stays open. */
  proceed: (() => void) | undefined;
}

const LATEST = new WeakMap<Socket, Turn>();

export function performInTurn(server: Server): void {
  const [perform] = server.listeners("request") as RequestListener[];
  server.removeListener("request", perform!);
  server.on("request", (request, response) => {
    const { socket } = request;
    const { ahead } = arrive(request, response);
    if (ahead === undefined) {
      // Not where the answer before it said that it is the last one.
      if (socket.writable) perform!(request, response);
    } else if (ahead.waiting < LIMITS.pipelined_requests) {
      ahead.proceed = () => perform!(request, response);
    } else {
      socket.pause();
      ahead.proceed = () => socket.destroySoon();
    }
  });
}

function arrive(request: IncomingMessage, response: ServerResponse): Turn {
  const { socket } = request;
  const latest = LATEST.get(socket);
  const ahead = latest === undefined || latest.answered ? undefined : latest;
  const waiting = ahead === undefined ? 1 : ahead.waiting + 1;
  const turn: Turn = { request, ahead, waiting, answered: false, proceed: undefined };
  LATEST.set(socket, turn);
  response.once("finish", () => {
    turn.answered = true;
    turn.ahead = undefined;
    // Node has ended the connection by now where this was its last answer.
    if (socket.writable) turn.proceed?.();
  });
  return turn;
}

/** Does `refuse` to what could not be read, once every request before it has its answer. */
export function afterAnswers(socket: Socket, refuse: () => void): void {
  const latest = LATEST.get(socket);
  // What broke off in the middle of a request is that request: it is refused itself, after those ahead of it.
  const last = latest === undefined || latest.request.complete ? latest : latest.ahead;
  if (last === undefined || last.answered) refuse();
  else last.proceed = refuse;
}
