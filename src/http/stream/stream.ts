/** `GET /v1/stream`: upgrades a caller's connection to a WebSocket that carries many operations. */
import { type IncomingMessage, type Server, ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import { originGuard } from "../../auth/origin-guard.ts";
import { invalidError } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { STREAM_HEADERS_HEADER } from "../api/http-row.ts";
import { refusalOf } from "../refusal.ts";
import { findAmbiguousHeader } from "../request/ambiguous-headers.ts";
import { STREAM_PATH, StreamConnection, type StreamParts } from "./connection.ts";

/** Messages up to this size are answered that they are too large. A larger one closes the connection. */
const MAX_PAYLOAD = 8 * SERVICE_LIMITS.body_bytes;

export interface MessageStreams {
  /** Answers the messages in progress and closes all connections. */
  close(): Promise<void>;
}

export function serveStreams(server: Server, parts: StreamParts): MessageStreams {
  const guard = originGuard(parts.app.settings);
  const open = new Set<StreamConnection>();
  const sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: MAX_PAYLOAD,
    // A credential in a subprotocol would end up in logs, so none is accepted.
    handleProtocols: () => false,
  });
  sockets.on("headers", (headers, request) => {
    if (request.headers[STREAM_HEADERS_HEADER] !== undefined) headers.push(`${STREAM_HEADERS_HEADER}: 1`);
  });
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (!isForStream(request)) {
      answerWithoutUpgrade(server, request, socket);
      return;
    }
    admit(parts, guard, request).then(
      () =>
        sockets.handleUpgrade(request, socket, head, (accepted) => {
          const connection = new StreamConnection(parts, accepted, socket, request);
          open.add(connection);
          const beat = heartbeat(accepted);
          accepted.once("close", () => {
            beat();
            open.delete(connection);
          });
        }),
      (error) => refuse(parts, socket, error),
    );
  });
  return {
    async close() {
      const all = [...open];
      const forced = setTimeout(() => {
        for (const connection of all) connection.terminate();
      }, SERVICE_LIMITS.drain_ms);
      await Promise.all(all.map((connection) => connection.stop()));
      clearTimeout(forced);
    },
  };
}

const isForStream = ({ url = "", headers }: IncomingMessage): boolean =>
  url.split("?", 1)[0] === STREAM_PATH && headers.upgrade?.toLowerCase() === "websocket";

async function admit(
  { authenticate, isClosing }: StreamParts,
  guard: ReturnType<typeof originGuard>,
  request: IncomingMessage,
): Promise<void> {
  const wrong = findAmbiguousHeader(request);
  if (wrong !== undefined) throw wrong;
  const { authorization, origin } = request.headers;
  await authenticate(authorization);
  if (origin !== undefined) guard(request.headers);
  if (request.url !== STREAM_PATH)
    throw invalidError(`${STREAM_PATH} takes no query; send the credential as a header`);
  if (request.method !== "GET") throw invalidError(`open ${STREAM_PATH} with GET`);
  if (isClosing()) throw invalidError("the server is stopping");
}

/** Closes connections whose other end is gone without a word. Returns a function that ends the checks. */
function heartbeat(socket: import("ws").WebSocket): () => void {
  let alive = true;
  socket.on("pong", () => (alive = true));
  const timer = setInterval(() => {
    if (!alive) socket.terminate();
    alive = false;
    socket.ping();
  }, SERVICE_LIMITS.stream_ping_ms);
  timer.unref();
  return () => clearInterval(timer);
}

function refuse(parts: StreamParts, socket: Duplex, error: unknown): void {
  const { status, headers, body, cause } = refusalOf(parts.app, error);
  const request_id = parts.nextRequestId();
  const text = JSON.stringify(body);
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `x-request-id: ${request_id}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    "connection: close",
    "content-type: application/json; charset=utf-8",
    `content-length: ${Buffer.byteLength(text)}`,
  ];
  socket.on("error", () => {});
  socket.end(`${lines.join("\r\n")}\r\n\r\n${text}`);
  parts.answered?.({
    method: "GET",
    path: STREAM_PATH,
    route: STREAM_PATH,
    status,
    ms: 0,
    principal: null,
    request_id,
    ...cause,
  });
}

/** Answers a request for another protocol, such as HTTP/2, on HTTP/1.1, as RFC 9110 allows. Node then parses no body. */
function answerWithoutUpgrade(server: Server, request: IncomingMessage, socket: Duplex): void {
  const { headers } = request;
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket as Parameters<ServerResponse["assignSocket"]>[0]);
  response.once("finish", () => socket.end());
  socket.on("error", () => {});
  if (headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined) {
    delete headers["transfer-encoding"];
    headers["content-length"] = "0";
  }
  request.push(null);
  server.emit("request", request, response);
}
