/** Header lines as the proxy passes them on, and the answers that it writes itself. */
import { type IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { LateError } from "../egress/bounded-body.ts";
import { ERROR_CODE_HEADER } from "../http/api/http-row.ts";
import { INTERNAL_CODE } from "../kernel/error-codes.ts";
import { ERROR_KINDS, messageOf, SvcError } from "../kernel/errors.ts";
import type { ServiceLogger } from "../telemetry/log.ts";

/** Headers of one connection, which no proxy passes on. */
const HOP_HEADERS = new Set([
  "connection",
  "expect",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

export type HeaderLine = readonly [name: string, value: string];

export function headerLines(raw: readonly string[]): HeaderLine[] {
  const lines: HeaderLine[] = [];
  for (let i = 0; i < raw.length; i += 2) lines.push([raw[i]!, raw[i + 1]!]);
  return lines;
}

/** Without the headers of the connection, those that `Connection` names, and the service's own. */
export function endToEnd(raw: readonly string[]): HeaderLine[] {
  const lines = headerLines(raw);
  const named = new Set(
    lines.flatMap(([name, value]) =>
      name.toLowerCase() === "connection" ? value.toLowerCase().split(/[,\s]+/) : [],
    ),
  );
  return lines.filter(([name]) => {
    const lower = name.toLowerCase();
    return !HOP_HEADERS.has(lower) && !named.has(lower) && !lower.startsWith("svc-");
  });
}

export const withoutHeaders = (lines: readonly HeaderLine[], ...names: readonly string[]): HeaderLine[] =>
  lines.filter(([name]) => !names.includes(name.toLowerCase()));

export function headerValue(lines: readonly HeaderLine[], name: string): string | undefined {
  return lines.find(([own]) => own.toLowerCase() === name)?.[1];
}

/** A refusal with headers beyond those of its error. */
export class ProxyRefusal extends SvcError {
  readonly headers: Readonly<Record<string, string>>;
  readonly status: number | undefined;
  constructor(
    code: SvcError["code"],
    message: string,
    { headers = {}, status }: { headers?: Record<string, string>; status?: number } = {},
  ) {
    super(code, message);
    this.headers = headers;
    this.status = status;
  }
}

/** Refuses a request for a proxy credential: missing, wrong, or no longer valid. */
export const credentialRefusal = (message: string): ProxyRefusal =>
  new ProxyRefusal("unauthenticated", message, {
    status: 407,
    headers: { "proxy-authenticate": 'Basic realm="svc proxy", charset="UTF-8"' },
  });

/** Answers with the error body of the service's API. A request whose body was not read ends its connection. */
export function answerError(
  log: ServiceLogger,
  request: IncomingMessage,
  response: ServerResponse,
  error: unknown,
) {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const isKnown = error instanceof SvcError;
  if (!isKnown) log.error("unexpected failure", { error: messageOf(error), stack: (error as Error)?.stack });
  const own = error instanceof ProxyRefusal || error instanceof LateError ? error.status : undefined;
  const status = own ?? (isKnown ? ERROR_KINDS[error.code].http : 500);
  const message = isKnown ? error.message : "internal error; see the proxy's log";
  const body = Buffer.from(`${JSON.stringify({ error: message })}\n`);
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": body.length,
    [ERROR_CODE_HEADER]: isKnown ? error.cause_code : INTERNAL_CODE,
    ...(error instanceof ProxyRefusal ? error.headers : {}),
    ...(request.complete ? {} : { connection: "close" }),
  });
  response.end(request.method === "HEAD" ? undefined : body);
}

/** A response on a bare socket, for CONNECT and upgrades. The connection ends with it. */
export function responseOn(request: IncomingMessage, socket: Socket): ServerResponse {
  const response = new ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once("finish", () => socket.destroySoon());
  return response;
}
