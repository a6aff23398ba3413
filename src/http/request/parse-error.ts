/** Refuses connections whose input cannot be parsed as HTTP, in the same shape as every other error. */
import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { CauseCode } from "../../kernel/error-codes.ts";
import { ERROR_CODE_HEADER } from "../api/http-row.ts";
import type { RefusalCause } from "../refusal.ts";
import { afterPendingResponses } from "./request-order.ts";

/** Logs the refusal and returns the id for the request. */
export type ReportParseError = (status: number, cause: RefusalCause) => string;

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
  tell: ReportParseError,
): void {
  if (error.code === "ECONNRESET" || socket.destroyed) return;
  afterPendingResponses(socket, () => refuse(socket, ANSWERS[error.code ?? ""] ?? UNREADABLE, tell));
}

/** Refuses CONNECT. Without this handler, node drops the connection together with all responses still to be sent. */
export function refuseConnect(socket: Socket, tell: ReportParseError): void {
  socket.on("error", () => {});
  afterPendingResponses(socket, () => refuse(socket, NO_PROXY, tell));
}

function refuse(socket: Socket, [status, cause]: Answer, tell: ReportParseError): void {
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
