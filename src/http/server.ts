/**
 * The HTTP surface: fastify as router, one strict body reader, one error shape. The routes come from the operations,
 * and this layer makes no decisions.
 */
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import Fastify, {
  type FastifyBodyParser,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from "fastify";
import type { CallerPrincipal } from "../govern/roles.ts";
import { type ERROR_KINDS, invalidError, notFoundError, SvcError } from "../kernel/errors.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import type { ServiceApp } from "../operations/app.ts";
import { ERROR_CODE_HEADER } from "./api/http-row.ts";
import { CodedResponse } from "./coded-response.ts";
import type { HttpDeps } from "./deps.ts";
import { NO_SCHEMAS } from "./no-schemas.ts";
import { type RefusalCause, refusalOf } from "./refusal.ts";
import { findAmbiguousHeader } from "./request/ambiguous-headers.ts";
import { discardUnread } from "./request/drain-body.ts";
import { handleFastPath } from "./request/fast-path.ts";
import { readJsonBody } from "./request/json-body.ts";
import { type ReportParseError, refuseConnect, refuseUnreadable } from "./request/parse-error.ts";
import { BufferedRequest } from "./request/request-body.ts";
import { runRequestsInOrder } from "./request/request-order.ts";
import { chatRoutes } from "./routes/chat.ts";
import { openRoutes } from "./routes/open-routes.ts";
import { operationRoutes } from "./routes/operation-routes.ts";
import { STREAM_PATH } from "./stream/connection.ts";
import { serveStreams } from "./stream/stream.ts";

declare module "fastify" {
  interface FastifyRequest {
    principal: CallerPrincipal | null;
    /** Time of the credential check, as `performance.now` reports it. */
    admitted_at: number;
    /** Cause of the refusal. Null if the request was not refused. */
    refused: RefusalCause | null;
  }
}

const UNMEANT_TYPE = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;
/** Placeholder facts for a request that could not be parsed. */
const UNREAD = { method: "unknown", path: "unknown", route: "unknown", ms: 0, principal: null };
const CONSOLE_OFF = "the console is off on this server: set SVC_CONSOLE to open or login";

/** While it closes, a connection that is still open gets its answer, and ends with it. */
export function createHttpServer(parts: HttpDeps): FastifyInstance {
  const { app, authenticate, answered } = parts;
  const nextRequestId = requestIds();
  const tellUnreadable: ReportParseError = (status, cause) => {
    const request_id = nextRequestId();
    answered?.({ ...UNREAD, status, request_id, ...cause });
    return request_id;
  };
  let closing = false;
  const server = Fastify({
    ...NO_SCHEMAS,
    bodyLimit: SERVICE_LIMITS.body_bytes,
    logger: false,
    genReqId: nextRequestId,
    routerOptions: { maxParamLength: 1_000 },
    forceCloseConnections: "idle",
    requestTimeout: 30_000,
    keepAliveTimeout: 60_000,
    http: {
      IncomingMessage: BufferedRequest,
      ServerResponse: CodedResponse,
      headersTimeout: SERVICE_LIMITS.header_timeout_ms,
      connectionsCheckingInterval: 2_000,
    } as Record<string, unknown>,
    return503OnClosing: false,
    clientErrorHandler: (error, socket) => refuseUnreadable(error, socket, tellUnreadable),
    frameworkErrors: (error, request, reply) =>
      sendError(app, error, request as FastifyRequest, reply as FastifyReply),
  });
  server.decorateRequest("principal", null);
  server.decorateRequest("admitted_at", 0);
  server.decorateRequest("refused", null);
  readBodiesStrictly(server);
  server.addHook("onRequest", (request, reply, done) => {
    reply.header("x-request-id", chosenRequestId(request) ?? request.id);
    done(findAmbiguousHeader(request.raw));
  });
  server.addHook("onSend", (request, _reply, payload, done) => {
    const discarding = discardUnread(request.raw);
    if (discarding === undefined) done(null, payload);
    else void discarding.then(() => done(null, payload));
  });
  if (answered !== undefined) reportAnswers(server, answered);
  server.setErrorHandler((error, request, reply) => sendError(app, error, request, reply));
  server.setNotFoundHandler(async (request) => {
    // A caller without a credential must not learn which routes exist.
    if (request.url.startsWith("/v1/") || request.url === "/v1")
      await authenticate(request.headers.authorization);
    const path = request.url.split("?", 1)[0]!;
    if (/^\/console(?:\/|$)/.test(path)) throw new SvcError("not_enabled", CONSOLE_OFF);
    throw notFoundError(`no route ${request.method} ${path}`, "unknown_route");
  });
  openRoutes(server, parts);
  operationRoutes(server, parts);
  chatRoutes(server, app, { named: (name) => parts.named?.(name) });
  server.get(STREAM_PATH, async ({ headers }) => {
    await authenticate(headers.authorization);
    throw invalidError(`open ${STREAM_PATH} as a WebSocket: send Upgrade: websocket`);
  });
  const streams = serveStreams(server.server, { ...parts, nextRequestId, isClosing: () => closing });
  server.addHook("preClose", async () => {
    closing = true;
    await streams.close();
  });
  if (parts.router_only !== true)
    handleFastPath(server.server, { ...parts, nextRequestId, isClosing: () => closing });
  runRequestsInOrder(server.server);
  server.server.on("connect", (_request, socket) => refuseConnect(socket as Socket, tellUnreadable));
  return server;
}

/** AuthZEN clients choose the id of a request and expect it back. */
function chosenRequestId({ url, headers }: FastifyRequest): string | undefined {
  const given = headers["x-request-id"];
  const isChosen =
    url.startsWith("/access/v1/") && typeof given === "string" && /^[\w.:-]{1,128}$/.test(given);
  return isChosen ? given : undefined;
}

function reportAnswers(server: FastifyInstance, answered: NonNullable<HttpDeps["answered"]>): void {
  server.addHook("onResponse", (request, reply, done) => {
    answered({
      method: request.method,
      path: request.url.split("?", 1)[0]!,
      route: request.routeOptions.url ?? "unknown",
      status: reply.statusCode,
      ms: reply.elapsedTime,
      principal: request.principal?.name ?? null,
      request_id: request.id,
      ...(request.refused ?? codeIn(reply)),
    });
    done();
  });
}

/** Request ids for the log. A random prefix separates the ids of two processes. */
function requestIds(): () => string {
  const prefix = randomBytes(6).toString("hex");
  let count = 0;
  // Decimal, because V8 writes other bases much slower.
  return () => `req_${prefix}${String(count++).padStart(6, "0")}`;
}

function readBodiesStrictly(server: FastifyInstance): void {
  server.removeAllContentTypeParsers();
  const parse: FastifyBodyParser<Buffer> = (_request, bytes, done) => {
    const refuse = (error: unknown) => done(error as Error);
    try {
      const body = bytes.length === 0 ? undefined : readJsonBody(bytes);
      if (body instanceof Promise) body.then((value) => done(null, value), refuse);
      else done(null, body);
    } catch (error) {
      refuse(error);
    }
  };
  server.addContentTypeParser("application/json", { parseAs: "buffer" }, parse);
  // A missing type, or the type that clients set by default, does not show what the user meant to send.
  server.addContentTypeParser("*", { parseAs: "buffer" }, (request, bytes: Buffer, done) => {
    const type = request.headers["content-type"];
    if (bytes.length === 0 || type === undefined || UNMEANT_TYPE.test(type)) parse(request, bytes, done);
    else done(new SvcError("unsupported_media", "send the body as application/json"));
  });
}

const FASTIFY_CODES: Record<string, [code: keyof typeof ERROR_KINDS, message: string]> = {
  FST_ERR_CTP_BODY_TOO_LARGE: ["too_large", "the request body is over 1 MB"],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ["unsupported_media", "send the body as application/json"],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ["invalid", "the body does not have the stated Content-Length"],
  FST_ERR_CTP_EMPTY_JSON_BODY: ["invalid", "the body is empty"],
  FST_ERR_BAD_URL: ["invalid", "the path is not a valid URL path"],
  FST_ERR_MAX_PARAM_LENGTH: ["invalid", "a part of the path is too long"],
};

/** The code of a response that was sent past the router, such as the MCP SDK's. No message is known for it. */
function codeIn(reply: FastifyReply): { code: string } | undefined {
  const code = reply.statusCode >= 400 ? reply.raw.getHeader(ERROR_CODE_HEADER) : undefined;
  return typeof code === "string" ? { code } : undefined;
}

function sendError(
  app: ServiceApp,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const { status, headers, body, cause } = refusalOf(app, asSvcError(error) ?? error);
  request.refused = cause;
  return reply.code(status).headers(headers).send(body);
}

function asSvcError(error: unknown): SvcError | undefined {
  if (error instanceof SvcError) return error;
  const { code, statusCode } = error as { code?: string; statusCode?: number };
  const mapped = code === undefined ? undefined : FASTIFY_CODES[code];
  if (mapped !== undefined) return new SvcError(mapped[0], mapped[1]);
  if (statusCode === 400) return invalidError("the request could not be read");
  if (statusCode === 414) return invalidError("the path is too long");
  return undefined;
}
