/** What is no HTTP at all never reaches a route; it is told so in the same shape as every other mistake. */
import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { ERROR_CODE_HEADER } from "../api/row.ts";
import type { CauseCode } from "../kernel/error-codes.ts";
import { afterAnswers } from "./in-turn.ts";
import type { RefusalCause } from "./refusal.ts";

/** Reports the refusal to the log; answers the id that the request gets. */
export type TellUnreadable = (status: number, cause: RefusalCause) => string;

type Answer = readonly [status: number, cause: RefusalCause];
const answer = (status: number, error: string, code: CauseCode = "not_http"): Answer => [
  status,
  { code, error },
];
const ANSWERS: Readonly<Record<string, Answer>> = {
  ERR_HTTP_REQUEST_TIMEOUT: answer(408, "the request did not arrive in time"),
  HPE_HEADER_OVERFLOW: answer(431, "the request's headers are too large"),
};
const UNREADABLE = answer(400, "the request is not valid HTTP/1.1");
const NO_PROXY = answer(400, "this server is not a proxy; send requests to its own routes");

export function refuseUnreadable(
  error: Error & { code?: string },
  socket: Socket,
  tell: TellUnreadable,
): void {
  if (error.code === "ECONNRESET" || socket.destroyed) return;
  afterAnswers(socket, () => refuse(socket, ANSWERS[error.code ?? ""] ?? UNREADABLE, tell));
}

/** Without this, node drops a connection that asks for a proxy, with all answers that it still owes. */
export function refuseConnect(socket: Socket, tell: TellUnreadable): void {
  socket.on("error", () => {});
  afterAnswers(socket, () => refuse(socket, NO_PROXY, tell));
}

function refuse(socket: Socket, [status, cause]: Answer, tell: TellUnreadable): void {
  if (socket.writable) {
    const body = JSON.stringify({ error: cause.error });
    const head = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      `x-request-id: ${tell(status, cause)}`,
      `${ERROR_CODE_HEADER}: ${cause.code}`,
      "Connection: close",
      `Content-Length: ${Buffer.byteLength(body)}`,
      "Content-Type: application/json; charset=utf-8",
    ];
    socket.write(`${head.join("\r\n")}\r\n\r\n${body}`);
  }
  socket.destroySoon();
}
