/** What is no HTTP at all never reaches a route; it is told so in the same shape as every other mistake. */
import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { afterAnswers } from "./in-turn.ts";

const ANSWERS: Readonly<Record<string, [status: number, message: string]>> = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, "the request did not arrive in time"],
  HPE_HEADER_OVERFLOW: [431, "the request's headers are too large"],
};
const UNREADABLE: [status: number, message: string] = [400, "the request is not valid HTTP/1.1"];

export function refuseUnreadable(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === "ECONNRESET" || socket.destroyed) return;
  const [status, message] = ANSWERS[error.code ?? ""] ?? UNREADABLE;
  afterAnswers(socket, () => refuse(socket, status, message));
}

/** A server that is no proxy; without this, node drops the connection with all answers that it still owes. */
export function refuseConnect(_request: unknown, socket: Socket): void {
  socket.on("error", () => {});
  afterAnswers(socket, () =>
    refuse(socket, 400, "this server is not a proxy; send requests to its own routes"),
  );
}

function refuse(socket: Socket, status: number, message: string): void {
  if (socket.writable) {
    const body = JSON.stringify({ error: message });
    socket.write(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\nContent-Type: application/json; charset=utf-8\r\n\r\n${body}`,
    );
  }
  socket.destroySoon();
}
