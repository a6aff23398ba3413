/**
 * The HTTP surface: fastify as router, one strict body reader, one error shape. Routes are made from the
 * operations; nothing here decides anything.
 */
import { randomBytes } from "node:crypto";
import Fastify, { type FastifyBodyParser, type FastifyInstance, type FastifyReply } from "fastify";
import type { App } from "../app/app.ts";
import { type ERRORS, invalid, SvcError } from "../kernel/errors.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { Principal } from "../model/roles.ts";
import { chatRoutes } from "./chat.ts";
import { ambiguity } from "./headers.ts";
import { performInTurn } from "./in-turn.ts";
import { openRoutes } from "./open-routes.ts";
import { operationRoutes } from "./operation-routes.ts";
import type { HttpParts } from "./parts.ts";
import { readJsonBody } from "./read-body.ts";
import { refusalOf } from "./refusal.ts";
import { answerStraight } from "./straight.ts";
import { discardUnread } from "./unread-body.ts";
import { refuseConnect, refuseUnreadable } from "./unreadable.ts";
import { WholeBodyRequest } from "./whole-body.ts";

declare module "fastify" {
  interface FastifyRequest {
    principal: Principal | null;
    /** When the credential was looked at, by performance.now. */
    admitted_at: number;
  }
}

const UNMEANT_TYPE = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;
const CONSOLE_OFF = "the console is off on this server: set SVC_CONSOLE to open or login";

export function createHttpServer(parts: HttpParts): FastifyInstance {
  const { app, authenticate, answered } = parts;
  const nextRequestId = requestIds();
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
      headersTimeout: LIMITS.header_timeout_ms,
      connectionsCheckingInterval: 2_000,
    } as Record<string, unknown>,
    clientErrorHandler: refuseUnreadable,
    frameworkErrors: (error, _request, reply) => sendError(app, error, reply as FastifyReply),
  });
  server.decorateRequest("principal", null);
  server.decorateRequest("admitted_at", 0);
  readBodiesStrictly(server);
  server.addHook("onRequest", (request, reply, done) => {
    reply.header("x-request-id", request.id);
    done(ambiguity(request.raw));
  });
  server.addHook("onSend", (request, _reply, payload, done) => {
    const discarding = discardUnread(request.raw);
    if (discarding === undefined) done(null, payload);
    else void discarding.then(() => done(null, payload));
  });
  if (answered !== undefined) {
    server.addHook("onResponse", (request, reply, done) => {
      answered({
        method: request.method,
        path: request.url.split("?", 1)[0]!,
        route: request.routeOptions.url ?? "unknown",
        status: reply.statusCode,
        ms: reply.elapsedTime,
        principal: request.principal?.name ?? null,
        request_id: request.id,
      });
      done();
    });
  }
  server.setErrorHandler((error, _request, reply) => sendError(app, error, reply));
  server.setNotFoundHandler(async (request) => {
    // A caller without a credential does not learn which routes exist.
    if (request.url.startsWith("/v1/") || request.url === "/v1")
      await authenticate(request.headers.authorization);
    const path = request.url.split("?", 1)[0]!;
    if (/^\/console(?:\/|$)/.test(path)) throw new SvcError("not_enabled", CONSOLE_OFF);
    throw new SvcError("not_found", `no route ${request.method} ${path}`);
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
  server.server.on("connect", refuseConnect);
  return server;
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

function sendError(app: App, error: unknown, reply: FastifyReply): FastifyReply {
  const { status, headers, body } = refusalOf(app, asSvcError(error) ?? error);
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
