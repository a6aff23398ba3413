/**
 * An MCP endpoint over HTTP, for every revision: older ones with a session, the newer one without. Who is
 * asking, from where, and for which run is settled here, before any message is looked at.
 */
import { toNodeHandler } from "@modelcontextprotocol/node";
import {
  type AuthInfo,
  classifyInboundRequest,
  createMcpHandler,
  type McpHttpHandler,
  type MessageExtraInfo,
  PROTOCOL_VERSION_META_KEY,
  SUPPORTED_PROTOCOL_VERSIONS,
} from "@modelcontextprotocol/server";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ERROR_CODE_HEADER } from "../../api/row.ts";
import type { Quotas } from "../../app/door/quotas.ts";
import type { Authenticated } from "../../auth/authenticate.ts";
import type { ConflictCause } from "../../kernel/error-codes.ts";
import { invalid, SvcError } from "../../kernel/errors.ts";
import { isJsonObject, type Json } from "../../kernel/json.ts";
import type { Principal } from "../../model/roles.ts";
import type { Logger } from "../../telemetry/log.ts";
import { extraOf, type RequestExtra } from "../request-context.ts";
import type { BoundRun } from "../runs.ts";
import { NEWER_ERA } from "../upstream/link.ts";
import type { OriginGuard } from "./guard.ts";
import { readMessage } from "./session-transport.ts";
import type { McpSession, McpSessions, Opened } from "./sessions.ts";

export interface EndpointParts {
  path: string;
  guard: OriginGuard;
  sessions: McpSessions;
  log: Logger;
  quotas: Quotas | undefined;
  authenticate(authorization: string | undefined): Promise<Authenticated>;
  /** Who holds that credential now; null once it no longer counts. */
  today(credential: Authenticated): Principal | null;
  /** Throws where this principal may not use the endpoint. */
  admit(principal: Principal): void;
  /** Finds the run that a request names. */
  named?(principal: Principal, run_id: string): Promise<BoundRun>;
  open(principal: Principal, run: BoundRun | undefined, era: "legacy" | "modern", method?: string): Opened;
}

declare module "fastify" {
  interface FastifyRequest {
    credential: Authenticated | null;
  }
}

const BATCHES = "2025-03-26";
/** The newer era's stream of what belongs to no request. */
const LISTEN = "subscriptions/listen";

/** Whoever holds the credential, with the authority of this moment; throws where it no longer opens this endpoint. */
function holderNow(parts: EndpointParts, credential: Authenticated): Principal {
  const principal = parts.today(credential);
  if (principal === null) throw new SvcError("unauthenticated", "invalid credential");
  parts.admit(principal);
  return principal;
}

/** For a stream that lasts: whether whoever opened it might open it now. */
function stillAdmitted(parts: EndpointParts, { credential }: FastifyRequest): () => boolean {
  return () => {
    try {
      return holderNow(parts, credential!) !== null;
    } catch {
      return false;
    }
  };
}

export function mountEndpoint(server: FastifyInstance, parts: EndpointParts): McpHttpHandler {
  if (!server.hasRequestDecorator("credential")) server.decorateRequest("credential", null);
  const newer = createMcpHandler(
    ({ authInfo }) => {
      const { principal, run, method } = extraOf(authInfo)!;
      return parts.open(principal, run, "modern", method).server;
    },
    { legacy: "reject", onerror: (error) => parts.log.debug("request refused", { problem: error.message }) },
  );
  const serveNewer = toNodeHandler(newer);
  server.route({
    method: ["GET", "POST", "DELETE"],
    url: parts.path,
    exposeHeadRoute: false,
    // Before the body is read: a stranger's megabyte is not parsed.
    onRequest: async (request) => {
      parts.guard(request.headers);
      const credential = await parts.authenticate(request.headers.authorization);
      parts.admit(credential.principal);
      request.principal = credential.principal;
      parts.quotas?.admit(credential.principal);
      request.credential = credential;
    },
    async handler(request, reply) {
      refuseUnknownVersion(request);
      // A body may take its time, and authority may change meanwhile.
      request.principal = holderNow(parts, request.credential!);
      const run = await runOf(parts, request);
      const auth = authOf(parts, request, run);
      if (!isLegacy(request)) {
        takeOver(reply);
        if (extraOf(auth)!.method === LISTEN) parts.sessions.watch(reply.raw, stillAdmitted(parts, request));
        const raw = Object.assign(request.raw, { auth }) as unknown as Parameters<typeof serveNewer>[0];
        return serveNewer(raw, reply.raw, request.body);
      }
      return serveOlder(parts, request, reply, auth, run);
    },
  });
  return newer;
}

async function runOf(
  parts: EndpointParts,
  { headers, principal }: FastifyRequest,
): Promise<BoundRun | undefined> {
  const id = headers["svc-run-id"];
  if (id === undefined || parts.named === undefined) return undefined;
  return parts.named(principal!, String(id));
}

function authOf(
  parts: EndpointParts,
  { principal: found, credential, body }: FastifyRequest,
  run: BoundRun | undefined,
): AuthInfo {
  const principal = found!;
  const named = isJsonObject(body) ? body["method"] : undefined;
  const method = typeof named === "string" ? named : undefined;
  const extra: RequestExtra = { principal, again: () => holderNow(parts, credential!), run, method };
  return { token: "", clientId: principal.name, scopes: [], extra };
}

/** The newer era has a way of its own to say so, for those who speak it; everybody else gets our error body. */
function refuseUnknownVersion({ headers, body }: FastifyRequest): void {
  const version = headers["mcp-protocol-version"];
  if (version === undefined || version === NEWER_ERA || claims(body)) return;
  if (!SUPPORTED_PROTOCOL_VERSIONS.includes(String(version))) {
    const known = [NEWER_ERA, ...SUPPORTED_PROTOCOL_VERSIONS].join(", ");
    throw invalid(`unsupported protocol version; supported are ${known}`);
  }
}

/** The SDK decides; it is asked only where a request claims anything of the newer era. */
function isLegacy({ method, headers, body }: FastifyRequest): boolean {
  const single = (name: string) => headers[name] as string | undefined;
  const version = single("mcp-protocol-version");
  if (single("mcp-method") === undefined && !(version !== undefined && version >= NEWER_ERA) && !claims(body))
    return true;
  const request = {
    httpMethod: method,
    protocolVersionHeader: version,
    mcpMethodHeader: single("mcp-method"),
    mcpNameHeader: single("mcp-name"),
    body,
  };
  const given = Object.fromEntries(Object.entries(request).filter(([, value]) => value !== undefined));
  return (
    classifyInboundRequest(given as unknown as Parameters<typeof classifyInboundRequest>[0]).kind === "legacy"
  );
}

function claims(body: unknown): boolean {
  if (Array.isArray(body)) return body.some(claims);
  const meta = isJsonObject(body) && isJsonObject(body["params"]) ? body["params"]["_meta"] : undefined;
  return isJsonObject(meta) && PROTOCOL_VERSION_META_KEY in meta;
}

/** From here on the response is written by hand; what was already set on the reply goes with it. */
function takeOver(reply: FastifyReply): void {
  reply.hijack();
  const headers = reply.getHeaders();
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined) reply.raw.setHeader(name, value);
  }
}

async function serveOlder(
  parts: EndpointParts,
  request: FastifyRequest,
  reply: FastifyReply,
  auth: AuthInfo,
  run: BoundRun | undefined,
): Promise<unknown> {
  const { headers } = request;
  const id = headers["mcp-session-id"];
  if (request.method === "POST") {
    acceptsBoth(headers.accept);
    const { messages, batch } = messagesOf(request.body as Json | undefined);
    const session = messages.some(isInitialize)
      ? await begin(parts, request, messages.length, id, run)
      : continued(parts, request.principal!, id);
    if (batch && session.version() !== BATCHES)
      throw invalid("batches belong to protocol revision 2025-03-26 alone");
    takeOver(reply);
    const extra: MessageExtraInfo = { authInfo: auth };
    if (session.transport.receive(messages, batch, reply.raw, extra))
      return settleCancelled(session, messages);
    const code: ConflictCause = "stream_open";
    reply.raw.writeHead(409, { "content-type": "application/json", [ERROR_CODE_HEADER]: code });
    return void reply.raw.end(
      JSON.stringify({ error: "a request with this id is still under way in this session" }),
    );
  }
  if (id === undefined)
    return reply.code(405).header("allow", "POST").send({ error: "only POST is served without a session" });
  const session = continued(parts, request.principal!, id);
  if (request.method === "DELETE") {
    await session.server.close();
    return reply.code(200).send();
  }
  if (!headers.accept?.includes("text/event-stream")) throw notAcceptable("text/event-stream");
  session.stillValid = stillAdmitted(parts, request);
  takeOver(reply);
  if (session.transport.openStream(reply.raw)) return undefined;
  reply.raw.writeHead(409, { "content-type": "application/json" });
  return void reply.raw.end(JSON.stringify({ error: "this session already has an event stream" }));
}

function messagesOf(body: Json | undefined) {
  const batch = Array.isArray(body);
  const values = batch ? body : [body];
  const messages = values.map(readMessage);
  if (messages.length === 0 || messages.length > 100) throw invalid("a batch holds 1 to 100 messages");
  if (messages.some((message) => message === undefined))
    throw invalid("the body is not a JSON-RPC 2.0 message");
  return { batch, messages: messages.map((message) => message!) };
}

function isInitialize(message: object): boolean {
  return "method" in message && message.method === "initialize" && "id" in message;
}

async function begin(
  parts: EndpointParts,
  request: FastifyRequest,
  messages: number,
  session: string | string[] | undefined,
  run: BoundRun | undefined,
): Promise<McpSession> {
  if (messages > 1) throw invalid("initialize must come alone");
  if (session !== undefined)
    throw invalid("this session is already initialized; initialize without Mcp-Session-Id");
  return parts.sessions.open(
    request.principal!,
    () => true,
    () => parts.open(request.principal!, run, "legacy"),
  );
}

function continued(
  parts: EndpointParts,
  principal: Principal,
  id: string | string[] | undefined,
): McpSession {
  if (id === undefined) throw invalid("Mcp-Session-Id header is required; initialize first");
  return parts.sessions.find(String(id), principal);
}

/** A cancelled request gets no answer, so its exchange has to be let go. */
function settleCancelled(session: McpSession, messages: readonly object[]): void {
  for (const message of messages) {
    if (!("method" in message) || message.method !== "notifications/cancelled") continue;
    const { requestId } = ((message as { params?: unknown }).params ?? {}) as { requestId?: string | number };
    if (requestId !== undefined) session.transport.settle(requestId);
  }
}

function acceptsBoth(accept: string | undefined): void {
  if (accept?.includes("application/json") && accept.includes("text/event-stream")) return;
  throw notAcceptable("both application/json and text/event-stream");
}

function notAcceptable(what: string): SvcError {
  return new SvcError("invalid", `the Accept header must allow ${what}`);
}
