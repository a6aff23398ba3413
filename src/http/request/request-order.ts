/**
 * Runs the pipelined requests of a connection in order. Each request starts only after the response before it was sent
 * and left the connection open, so no request runs whose response cannot be delivered.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";

/** One request of a connection, from its arrival until its response is sent. */
interface Turn {
  readonly request: IncomingMessage;
  /** The previous request, while it has no response yet. */
  ahead: Turn | undefined;
  /** How many requests of the connection had no response when this one arrived, including this one. */
  readonly waiting: number;
  answered: boolean;
  /** Called after the response is sent, if the connection stays open. */
  proceed: (() => void) | undefined;
}

const LATEST = new WeakMap<Socket, Turn>();

export function runRequestsInOrder(server: Server): void {
  const [perform] = server.listeners("request") as RequestListener[];
  server.removeListener("request", perform!);
  server.on("request", (request, response) => {
    const { socket } = request;
    const { ahead } = arrive(request, response);
    if (ahead === undefined) {
      // The socket is not writable if the previous response announced that it is the last.
      if (socket.writable) perform!(request, response);
    } else if (ahead.waiting < SERVICE_LIMITS.pipelined_requests) {
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
    // Node has ended the connection already if this was its last response.
    if (socket.writable) turn.proceed?.();
  });
  return turn;
}

/** Calls `refuse` for unreadable input after every earlier request has its response. */
export function afterPendingResponses(socket: Socket, refuse: () => void): void {
  const latest = LATEST.get(socket);
  // If the input broke off inside a request, that request gets the refusal itself, after the requests before it.
  const last = latest === undefined || latest.request.complete ? latest : latest.ahead;
  if (last === undefined || last.answered) refuse();
  else last.proceed = refuse;
}
