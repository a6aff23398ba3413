/**
 * MCP endpoint over HTTP for all protocol revisions: older ones with a session, the newer one without. Principal,
 * origin and run are determined here, before any message is handled.
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
import type { AuthenticatedCaller } from "../../auth/authenticate.ts";
import type { OriginGuard } from "../../auth/origin-guard.ts";
import type { CallerPrincipal } from "../../govern/roles.ts";
import { ERROR_CODE_HEADER } from "../../http/api/http-row.ts";
import type { ConflictCause } from "../../kernel/error-codes.ts";
import { invalidError, SvcError } from "../../kernel/errors.ts";
import { isJsonObject, type JsonValue } from "../../kernel/json/json.ts";
import type { CallerQuotas } from "../../operations/pipeline/quotas.ts";
import type { ServiceLogger } from "../../telemetry/log.ts";
import { extraOf, type RequestExtra } from "../session/request-context.ts";
import type { BoundRun } from "../session/runs.ts";
import { NEWER_PROTOCOL_VERSION } from "../upstream/connection.ts";
import { type ProtectedResource, withChallenge } from "./protected-resource.ts";
import { readMessage } from "./session-transport.ts";
import type { McpSession, McpSessions, OpenedPeer } from "./sessions.ts";

export interface EndpointDeps {
  path: string;
  guard: OriginGuard;
  sessions: McpSessions;
  log: ServiceLogger;
  quotas: CallerQuotas | undefined;
  /** The endpoint as an OAuth resource, for the `Host` of a request. Null without OIDC. */
  resource(host: string | undefined): ProtectedResource | null;
  /** A token for the resource is valid, too. */
  authenticate(authorization: string | undefined, resource?: string): Promise<AuthenticatedCaller>;
  /** Current principal of the credential. Null for an invalid credential. */
  today(credential: AuthenticatedCaller): CallerPrincipal | null;
  /** Throws if this principal is not allowed to use the endpoint. */
  admit(principal: CallerPrincipal): void;
  /** Called with the bearer token of an authenticated caller, unless it is an API key. */
  heard?(credential: AuthenticatedCaller, token: string): void;
  /** Finds the run that a request names. */
  named?(principal: CallerPrincipal, run_id: string): Promise<BoundRun>;
  open(
    principal: CallerPrincipal,
    run: BoundRun | undefined,
    era: "legacy" | "modern",
    method?: string,
  ): OpenedPeer;
}

declare module "fastify" {
  interface FastifyRequest {
    credential: AuthenticatedCaller | null;
  }
}

const BATCHES = "2025-03-26";
/** Stream for notifications outside any request, in the newer protocol version. */
const LISTEN = "subscriptions/listen";

/** Principal of the credential with its current authority. Throws if it can no longer use this endpoint. */
function holderNow(parts: EndpointDeps, credential: AuthenticatedCaller): CallerPrincipal {
  const principal = parts.today(credential);
  if (principal === null) throw new SvcError("unauthenticated", "invalid credential");
  parts.admit(principal);
  return principal;
}

/** Authenticates a caller that this endpoint admits. A refusal says where the caller can sign in. */
function admitted(
  parts: EndpointDeps,
  { authorization, host }: FastifyRequest["headers"],
): Promise<AuthenticatedCaller> {
  const resource = parts.resource(host);
  return withChallenge(resource, authorization !== undefined, async () => {
    const credential = await parts.authenticate(authorization, resource?.url);
    parts.admit(credential.principal);
    return credential;
  });
}

/** Check for a long-lived stream: whether its caller could open it again now. */
function stillAdmitted(parts: EndpointDeps, { credential }: FastifyRequest): () => boolean {
  return () => {
    try {
      return holderNow(parts, credential!) !== null;
    } catch {
      return false;
    }
  };
}

export function mountEndpoint(server: FastifyInstance, parts: EndpointDeps): McpHttpHandler {
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
    // Runs before the body is read, so the body of an unauthenticated caller is never parsed.
    onRequest: async (request) => {
      parts.guard(request.headers);
      const credential = await admitted(parts, request.headers);
      request.principal = credential.principal;
      parts.quotas?.admit(credential.principal);
      request.credential = credential;
      if (credential.kind === "oidc")
        parts.heard?.(credential, request.headers.authorization!.replace(/^\S+ +/, "").trim());
    },
    async handler(request, reply) {
      refuseUnknownVersion(request);
      // The body may arrive slowly, and the caller's authority may change during that time.
      request.principal = await withChallenge(parts.resource(request.headers.host), true, () =>
        holderNow(parts, request.credential!),
      );
      const run = await runOf(parts, request);
      const auth = authOf(parts, request, run);
      if (!isLegacy(request)) {
        takeOver(reply);
        if (extraOf(auth)!.method === LISTEN) parts.sessions.watch(reply.raw, stillAdmitted(parts, request));
        const raw = Object.assign(request.raw, { auth }) as Parameters<typeof serveNewer>[0];
        return serveNewer(raw, reply.raw, request.body);
      }
      return serveOlder(parts, request, reply, auth, run);
    },
  });
  return newer;
}

async function runOf(
  parts: EndpointDeps,
  { headers, principal }: FastifyRequest,
): Promise<BoundRun | undefined> {
  const id = headers["svc-run-id"];
  if (id === undefined || parts.named === undefined) return undefined;
  return parts.named(principal!, String(id));
}

function authOf(
  parts: EndpointDeps,
  { principal: found, credential, body }: FastifyRequest,
  run: BoundRun | undefined,
): AuthInfo {
  const principal = found!;
  const named = isJsonObject(body) ? body["method"] : undefined;
  const method = typeof named === "string" ? named : undefined;
  const extra: RequestExtra = { principal, again: () => holderNow(parts, credential!), run, method };
  return { token: "", clientId: principal.name, scopes: [], extra };
}

/**
 * Rejects an unknown protocol version with our error body. Newer clients get the newer version's own error from the
 * SDK.
 */
function refuseUnknownVersion({ headers, body }: FastifyRequest): void {
  const version = headers["mcp-protocol-version"];
  if (version === undefined || version === NEWER_PROTOCOL_VERSION || claims(body)) return;
  if (!SUPPORTED_PROTOCOL_VERSIONS.includes(String(version))) {
    const known = [NEWER_PROTOCOL_VERSION, ...SUPPORTED_PROTOCOL_VERSIONS].join(", ");
    throw invalidError(`unsupported protocol version; supported are ${known}`);
  }
}

/**
 * Whether the request belongs to an older revision. The SDK decides if the request has any mark of the newer version.
 */
function isLegacy({ method, headers, body }: FastifyRequest): boolean {
  const single = (name: string) => headers[name] as string | undefined;
  const version = single("mcp-protocol-version");
  if (
    single("mcp-method") === undefined &&
    !(version !== undefined && version >= NEWER_PROTOCOL_VERSION) &&
    !claims(body)
  )
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
    // Members that are undefined are left out, as the SDK requires.
    classifyInboundRequest(given as unknown as Parameters<typeof classifyInboundRequest>[0]).kind === "legacy"
  );
}

function claims(body: unknown): boolean {
  if (Array.isArray(body)) return body.some(claims);
  const meta = isJsonObject(body) && isJsonObject(body["params"]) ? body["params"]["_meta"] : undefined;
  return isJsonObject(meta) && PROTOCOL_VERSION_META_KEY in meta;
}

/** Hands the response over to raw code, together with the headers that are already set. */
function takeOver(reply: FastifyReply): void {
  reply.hijack();
  const headers = reply.getHeaders();
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined) reply.raw.setHeader(name, value);
  }
}

async function serveOlder(
  parts: EndpointDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  auth: AuthInfo,
  run: BoundRun | undefined,
): Promise<unknown> {
  const { headers } = request;
  const id = headers["mcp-session-id"];
  if (request.method === "POST") {
    acceptsBoth(headers.accept);
    const { messages, batch } = messagesOf(request.body as JsonValue | undefined);
    const session = messages.some(isInitialize)
      ? await begin(parts, request, messages.length, id, run)
      : continued(parts, request.principal!, id);
    if (batch && session.version() !== BATCHES)
      throw invalidError("batches are available only in protocol revision 2025-03-26");
    takeOver(reply);
    const extra: MessageExtraInfo = { authInfo: auth };
    if (session.transport.receive(messages, batch, reply.raw, extra))
      return settleCancelled(session, messages);
    const code: ConflictCause = "stream_open";
    reply.raw.writeHead(409, { "content-type": "application/json", [ERROR_CODE_HEADER]: code });
    return void reply.raw.end(
      JSON.stringify({ error: "a request with this id is still in progress in this session" }),
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

function messagesOf(body: JsonValue | undefined) {
  const batch = Array.isArray(body);
  const values = batch ? body : [body];
  const messages = values.map(readMessage);
  if (messages.length === 0 || messages.length > 100)
    throw invalidError("a batch must contain 1 to 100 messages");
  if (messages.some((message) => message === undefined))
    throw invalidError("the body is not a JSON-RPC 2.0 message");
  return { batch, messages: messages.map((message) => message!) };
}

function isInitialize(message: object): boolean {
  return "method" in message && message.method === "initialize" && "id" in message;
}

async function begin(
  parts: EndpointDeps,
  request: FastifyRequest,
  messages: number,
  session: string | string[] | undefined,
  run: BoundRun | undefined,
): Promise<McpSession> {
  if (messages > 1) throw invalidError("initialize must be the only message");
  if (session !== undefined)
    throw invalidError("this session is already initialized; initialize without Mcp-Session-Id");
  return parts.sessions.open(
    request.principal!,
    () => true,
    () => parts.open(request.principal!, run, "legacy"),
  );
}

function continued(
  parts: EndpointDeps,
  principal: CallerPrincipal,
  id: string | string[] | undefined,
): McpSession {
  if (id === undefined) throw invalidError("Mcp-Session-Id header is required; initialize first");
  return parts.sessions.find(String(id), principal);
}

/** A cancelled request gets no answer, so its exchange must be released. */
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
