/**
 * The HTTP surface: fastify as router, one strict body reader, one error shape. Routes are made from the
 * operations; nothing here decides anything.
 */
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import Fastify, {
  type FastifyBodyParser,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from "fastify";
import { ERROR_CODE_HEADER } from "../api/row.ts";
import type { App } from "../app/app.ts";
import { type ERRORS, invalid, notFound, SvcError } from "../kernel/errors.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { Principal } from "../model/roles.ts";
import { chatRoutes } from "./chat.ts";
import { CodedResponse } from "./coded-response.ts";
import { ambiguity } from "./headers.ts";
import { performInTurn } from "./in-turn.ts";
import { openRoutes } from "./open-routes.ts";
import { operationRoutes } from "./operation-routes.ts";
import type { HttpParts } from "./parts.ts";
import { readJsonBody } from "./read-body.ts";
import { type RefusalCause, refusalOf } from "./refusal.ts";
import { answerStraight } from "./straight.ts";
import { discardUnread } from "./unread-body.ts";
import { refuseConnect, refuseUnreadable, type TellUnreadable } from "./unreadable.ts";
import { WholeBodyRequest } from "./whole-body.ts";

declare module "fastify" {
  interface FastifyRequest {
    principal: Principal | null;
    /** When the credential was looked at, by performance.now. */
    admitted_at: number;
    /** Why it was refused, once it was. */
    refused: RefusalCause | null;
  }
}

const UNMEANT_TYPE = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;
/** Of a request that could not be read, none of these is known. */
const UNREAD = { method: "unknown", path: "unknown", route: "unknown", ms: 0, principal: null };
const STOPPING = new SvcError("unavailable", "the server is stopping; send the request again", {
  cause_code: "server_stopping",
});
const CONSOLE_OFF = "the console is off on this server: set SVC_CONSOLE to open or login";

export function createHttpServer(parts: HttpParts): FastifyInstance {
  const { app, authenticate, answered } = parts;
  const nextRequestId = requestIds();
  const tellUnreadable: TellUnreadable = (status, cause) => {
    const request_id = nextRequestId();
    answered?.({ ...UNREAD, status, request_id, ...cause });
    return request_id;
  };
  let closing = false;
  const server = Fastify({
    bodyLimit: LIMITS.body_bytes,
    logger: false,
    genReqId: nextRequestId,
    routerOptions: { maxParamLength: 1_000 },
    forceCloseConnections: "idle",
    requestTimeout: 30_000,
    connectionTimeout: 0,
    keepAliveTimeout: 60_000,
    http: {
      IncomingMessage: WholeBodyRequest,
      ServerResponse: CodedResponse,
      headersTimeout: LIMITS.header_timeout_ms,
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
    reply.header("x-request-id", request.id);
    done(closing ? STOPPING : ambiguity(request.raw));
  });
  server.addHook("onSend", (request, _reply, payload, done) => {
    const discarding = discardUnread(request.raw);
    if (discarding === undefined) done(null, payload);
    else void discarding.then(() => done(null, payload));
  });
  if (answered !== undefined) reportAnswers(server, answered);
  server.setErrorHandler((error, request, reply) => sendError(app, error, request, reply));
  server.setNotFoundHandler(async (request) => {
    // A caller without a credential does not learn which routes exist.
    if (request.url.startsWith("/v1/") || request.url === "/v1")
      await authenticate(request.headers.authorization);
    const path = request.url.split("?", 1)[0]!;
    if (/^\/console(?:\/|$)/.test(path)) throw new SvcError("not_enabled", CONSOLE_OFF);
    throw notFound(`no route ${request.method} ${path}`, "unknown_route");
  });
  openRoutes(server, parts);
  operationRoutes(server, parts);
  chatRoutes(server, app, { named: (name) => parts.named?.(name) });
  server.addHook("preClose", (done) => {
    closing = true;
    done();
  });
  if (parts.router_only !== true)
    answerStraight(server.server, { ...parts, nextRequestId, isClosing: () => closing });
  performInTurn(server.server);
  server.server.on("connect", (_request, socket) => refuseConnect(socket as Socket, tellUnreadable));
  return server;
}

function reportAnswers(server: FastifyInstance, answered: NonNullable<HttpParts["answered"]>): void {
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

/** The log names every request by its id; a random prefix keeps two processes apart. */
function requestIds(): () => string {
  const prefix = randomBytes(6).toString("hex");
  let count = 0;
  return () => `req_${prefix}${(count++).toString(36).padStart(6, "0")}`;
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
  // The type that a client fills in by itself, or none, says nothing of what its user meant to send.
  server.addContentTypeParser("*", { parseAs: "buffer" }, (request, bytes: Buffer, done) => {
    const type = request.headers["content-type"];
    if (bytes.length === 0 || type === undefined || UNMEANT_TYPE.test(type)) parse(request, bytes, done);
    else done(new SvcError("unsupported_media", "send the body as application/json"));
  });
}

const FASTIFY_CODES: Record<string, [code: keyof typeof ERRORS, message: string]> = {
  FST_ERR_CTP_BODY_TOO_LARGE: ["too_large", "the request body is over 1 MB"],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ["unsupported_media", "send the body as application/json"],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ["invalid", "the body does not have the stated Content-Length"],
  FST_ERR_CTP_EMPTY_JSON_BODY: ["invalid", "the body is empty"],
  FST_ERR_BAD_URL: ["invalid", "the path is not a valid URL path"],
  FST_ERR_MAX_PARAM_LENGTH: ["invalid", "a part of the path is too long"],
};

/** Of an answer that was sent past the router, such as the MCP SDK's, no more is known. */
function codeIn(reply: FastifyReply): { code: string } | undefined {
  const code = reply.statusCode >= 400 ? reply.raw.getHeader(ERROR_CODE_HEADER) : undefined;
  return typeof code === "string" ? { code } : undefined;
}

function sendError(app: App, error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { status, headers, body, cause } = refusalOf(app, asSvcError(error) ?? error);
  request.refused = cause;
  return reply.code(status).headers(headers).send(body);
}

function asSvcError(error: unknown): SvcError | undefined {
  if (error instanceof SvcError) return error;
  const { code, statusCode } = error as { code?: string; statusCode?: number };
  const mapped = code === undefined ? undefined : FASTIFY_CODES[code];
  if (mapped !== undefined) return new SvcError(mapped[0], mapped[1]);
  if (statusCode === 400) return invalid("the request could not be read");
  if (statusCode === 414) return invalid("the path is too long");
  return undefined;
}
