/** Governs one request to a named host: its manifest, its intent, the exchange, the outcome, and the answer. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { wasNotSent } from "../egress/exchange.ts";
import { messageOf, SvcError } from "../kernel/errors.ts";
import type { JsonObject } from "../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import { withTimeout } from "../kernel/timeout.ts";
import { type AnswerOutcome, answerOutcome } from "../rules/http/answer-outcome.ts";
import { VALUE_BYTES } from "../rules/http/answer-value.ts";
import {
  graphqlMatch,
  type HttpOrigin,
  type HttpSpec,
  hostText,
  httpRoutes,
  type RouteMatch,
  requestArgs,
} from "../rules/http/routes.ts";
import {
  type HttpProblem,
  type HttpTarget,
  headerProblem,
  isHttpProblem,
  readHttpTarget,
} from "../rules/http/target.ts";
import { AnswerRecord, type CarriedAnswer, carryRequest } from "./carry.ts";
import type { ProxyDeps } from "./deps.ts";
import { gitCall, gitRequest, isOtherGit, readPushReport } from "./git.ts";
import { type AcceptedCall, acceptCall, type ProxyCaller } from "./governed.ts";
import { type SpooledBody, spoolBody } from "./spool.ts";
import { endToEnd, headerValue, ProxyRefusal } from "./wire.ts";

/** A request as the proxy received it. `target` is its path and query. */
export interface ReceivedRequest {
  readonly origin: HttpOrigin;
  readonly target: string;
  readonly caller: ProxyCaller;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

const CODES = { 400: "invalid", 413: "too_large", 415: "unsupported_media" } as const;

export function problemRefusal({ status, problem }: HttpProblem): ProxyRefusal {
  return new ProxyRefusal(CODES[status], problem);
}

/** Checks the lines of a request that is decided by what they say. Throws a refusal. */
export function checkRequest({ request, origin, target }: ReceivedRequest): HttpTarget {
  const problem = headerProblem(request.rawHeaders);
  if (problem !== null) throw problemRefusal(problem);
  const { host } = request.headers;
  if (host === undefined || host.toLowerCase() !== hostText(origin)) {
    const withPort = `${origin.host.includes(":") ? `[${origin.host}]` : origin.host}:${origin.port}`;
    if (host?.toLowerCase() !== withPort)
      throw new ProxyRefusal("invalid", "the Host header is not the host that the request goes to");
  }
  const read = readHttpTarget(target);
  if (isHttpProblem(read)) throw problemRefusal(read);
  return read;
}

const blockedRequest = (text: string) =>
  new ProxyRefusal("forbidden", text, { headers: { "svc-decision": "block" } });

/** The one manifest that the request fits. Throws a refusal. */
function matchRequest(deps: ProxyDeps, received: ReceivedRequest, target: HttpTarget): RouteMatch {
  const { origin, request } = received;
  const found = httpRoutes(deps.rules.manifests()).fitting(origin, request.method!, target);
  const [match] = found;
  if (match === undefined && isOtherGit(target))
    throw blockedRequest("only git's smart HTTP protocol is understood here, without large file storage");
  if (match === undefined)
    throw blockedRequest(
      `no http manifest fits this request to ${origin.host}; add one for its method and path`,
    );
  if (found.length > 1)
    throw blockedRequest(
      `the http manifests of ${found.map(({ route }) => route.tool).join(" and ")} both fit this request`,
    );
  return match;
}

interface ReadTool {
  readonly tool: string;
  /** Undefined for git. */
  readonly http?: HttpSpec | undefined;
}

/** A tool's call, read from a request. */
export interface ReadCall extends ReadTool {
  readonly args: JsonObject;
}

export async function handleGovernedRequest(deps: ProxyDeps, received: ReceivedRequest): Promise<void> {
  const target = checkRequest(received);
  const git = gitRequest(received.origin, received.request.method!, target);
  const fitting = httpRoutes(deps.rules.manifests()).fitting(
    received.origin,
    received.request.method!,
    target,
  );
  if (git !== undefined && fitting.length === 0) {
    const coding = received.request.headers["content-encoding"];
    return governRequest(deps, received, true, (body) => gitCall(git, body, coding));
  }
  if (fitting.length > 0 && fitting.every(({ route }) => route.graphql !== undefined))
    return governRequest(deps, received, false, (body) => graphqlCall(received, fitting, target, body));
  const match = matchRequest(deps, received, target);
  if (match.route.http.websocket === true)
    throw new ProxyRefusal(
      "forbidden",
      `${match.route.tool} opens a WebSocket; the request does not ask for one`,
    );
  const opaque = match.route.http.body === "opaque";
  await governRequest(deps, received, opaque, (body) => {
    const read = requestArgs(match, target, { type: received.request.headers["content-type"], ...body });
    if (isHttpProblem(read)) throw problemRefusal(read);
    return { ...match.route, args: read.args };
  });
}

function graphqlCall(
  { origin, request }: ReceivedRequest,
  fitting: readonly RouteMatch[],
  target: HttpTarget,
  body: ReadBody,
): ReadCall {
  const match = graphqlMatch(fitting, target, { type: request.headers["content-type"], ...body });
  if (match === undefined)
    throw blockedRequest(
      `no http manifest fits this GraphQL operation to ${origin.host}; add one for its field`,
    );
  if ("problem" in match) throw problemRefusal(match);
  return { ...match.route, args: match.args };
}

type ReadBody = Pick<SpooledBody, "bytes" | "sha256" | "content" | "head">;

/** Reads the body, decides the call that `read` makes of it, and carries it out. */
async function governRequest(
  deps: ProxyDeps,
  received: ReceivedRequest,
  opaque: boolean,
  read: (body: ReadBody) => ReadCall,
): Promise<void> {
  const { request, response, caller, origin } = received;
  const length = Number(request.headers["content-length"] ?? 0);
  if (!opaque && length > SERVICE_LIMITS.body_bytes)
    throw new ProxyRefusal(
      "too_large",
      "the body is longer than 1 MB; a tool that takes longer ones has http.body: opaque",
    );
  const coding = request.headers["content-encoding"];
  if (!opaque && coding !== undefined && coding !== "identity")
    throw new ProxyRefusal(
      "unsupported_media",
      "a compressed body cannot be read; send it without content-encoding",
    );
  const gone = new AbortController();
  const onClose = () => {
    if (!response.writableFinished) gone.abort();
  };
  response.once("close", onClose);
  const body = await spoolBody(request, opaque, deps.exchange.bounds);
  try {
    const { tool, args, http } = read(body);
    const reason = `${request.method} ${origin.host}`;
    const call = await acceptCall(deps.rules, caller, { tool, args, reason, gone: gone.signal });
    await carryOut(deps, received, { ...call, tool, http }, body);
  } finally {
    response.removeListener("close", onClose);
    await body.close();
  }
}

async function carryOut(
  deps: ProxyDeps,
  { request, response, origin, target }: ReceivedRequest,
  call: AcceptedCall & ReadTool,
  body: SpooledBody,
): Promise<void> {
  let answer: CarriedAnswer;
  try {
    answer = await carryRequest(deps, {
      origin,
      method: request.method!,
      target,
      headers: endToEnd(request.rawHeaders),
      body,
    });
  } catch (error) {
    await call.end({ status: wasNotSent(error) ? "failed" : "uncertain", error: messageOf(error) });
    throw asBadGateway(error);
  }
  await passAnswer(call, answer, response, {
    is_head: request.method === "HEAD",
    idle_ms: deps.exchange.bounds.idle_ms,
  });
}

function asBadGateway(error: unknown): SvcError {
  return error instanceof SvcError
    ? error
    : new SvcError("delivery_failed", messageOf(error), { cause: error });
}

/** How the call ended. A push can be refused within an answer that succeeds. */
function outcomeOf({ tool, http }: ReadTool, result: JsonObject, content: Buffer | undefined): AnswerOutcome {
  const outcome = answerOutcome(result, http);
  if (outcome.status !== "succeeded" || tool !== "git.push" || result["status"] !== 200) return outcome;
  const report = content === undefined ? null : readPushReport(content);
  if (report === null)
    return { status: "uncertain", error: "the answer does not say what became of the push" };
  if (report.refused.length === 0 || report.changed.length > 0) return { status: "succeeded" };
  return { status: "failed", error: `refused: ${report.refused.join("; ")}` };
}

/** Tells the client what an effect check found. An upstream cannot set it. */
const EFFECT_HEADER = "svc-effect";

interface Passing {
  readonly is_head: boolean;
  /** How long a client may take for one part. */
  readonly idle_ms: number;
}

/**
 * Passes an answer to the client. A short one goes out after its outcome is recorded; of a long or endless one the end
 * does. A client that leaves early or reads nothing ends the reading, and the outcome is that of the status.
 */
async function passAnswer(
  call: AcceptedCall & ReadTool,
  { status, headers: sent, body }: CarriedAnswer,
  response: ServerResponse,
  { is_head, idle_ms }: Passing,
): Promise<void> {
  let headers = sent.filter(([name]) => name.toLowerCase() !== EFFECT_HEADER);
  const type = headerValue(headers, "content-type");
  const record = new AnswerRecord();
  const begin = () => {
    if (!response.headersSent) response.writeHead(status, headers.flat());
  };
  const isStream = /^text\/event-stream\s*(?:;|$)/i.test(type ?? "");
  let held: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      record.add(chunk);
      bytes += chunk.length;
      held.push(chunk);
      if (!isStream && bytes <= VALUE_BYTES) continue;
      begin();
      // The last chunk is held until the outcome is recorded, except in a stream of events, which has no last one.
      const out = isStream ? held.splice(0) : held.splice(0, held.length - 1);
      for (const part of out) await writePart(response, part, idle_ms);
      if (response.destroyed) break;
    }
  } catch (error) {
    await call.end({ status: "uncertain", error: `the answer broke off: ${messageOf(error)}` });
    held = [];
    if (response.headersSent) response.destroy();
    throw asBadGateway(error);
  }
  const result = record.result({ status, headers }, call.http);
  const effect = await call.end({ ...outcomeOf(call, result, record.content), result });
  // The answer passes unchanged: programs repeat a request that seems to have failed.
  if (effect !== undefined) headers = [...headers, [EFFECT_HEADER, effect]];
  const isWhole = !response.headersSent;
  if (isWhole && !is_head && status !== 204 && status !== 304) {
    response.writeHead(status, [
      ...headers.filter(([name]) => name.toLowerCase() !== "content-length").flat(),
      "Content-Length",
      String(bytes),
    ]);
  } else begin();
  for (const part of held) await writePart(response, part, idle_ms);
  response.end();
}

/** Waits for the client to take the part. One that does not is gone. */
async function writePart(response: ServerResponse, part: Buffer, idle_ms: number): Promise<void> {
  if (response.destroyed || response.write(part)) return;
  const taken = new Promise<void>((resolve) => {
    const done = () => {
      response.removeListener("drain", done);
      response.removeListener("close", done);
      resolve();
    };
    response.once("drain", done);
    response.once("close", done);
  });
  await withTimeout(taken, idle_ms, () => response.destroy());
}

/** Governs the opening of a WebSocket. Its messages are passed on unread. */
export async function handleUpgrade(
  deps: ProxyDeps,
  received: ReceivedRequest,
  socket: Socket,
  head: Buffer,
): Promise<void> {
  const { request, caller, origin } = received;
  const target = checkRequest(received);
  if (request.headers.upgrade?.toLowerCase() !== "websocket")
    throw new ProxyRefusal("forbidden", "only WebSocket upgrades are understood here");
  const match = matchRequest(deps, received, target);
  const { tool, http } = match.route;
  if (http.websocket !== true)
    throw new ProxyRefusal(
      "forbidden",
      `WebSocket upgrades need http.websocket: true in the manifest of ${tool}`,
    );
  if (deps.vault.has(origin))
    throw new ProxyRefusal(
      "forbidden",
      "a WebSocket cannot be masked, so a host with a credential opens none",
    );
  const read = requestArgs(match, target, {
    type: undefined,
    bytes: 0,
    sha256: "",
    content: Buffer.alloc(0),
  });
  if (isHttpProblem(read)) throw problemRefusal(read);
  const gone = new AbortController();
  socket.once("close", () => gone.abort());
  const reason = `${request.method} ${origin.host}`;
  const call = await acceptCall(deps.rules, caller, { tool, args: read.args, reason, gone: gone.signal });
  let answer: CarriedAnswer;
  try {
    answer = await carryRequest(deps, {
      origin,
      method: "GET",
      target: received.target,
      headers: [...endToEnd(request.rawHeaders), ["Connection", "Upgrade"], ["Upgrade", "websocket"]],
      body: undefined,
    });
  } catch (error) {
    await call.end({ status: wasNotSent(error) ? "failed" : "uncertain", error: messageOf(error) });
    throw asBadGateway(error);
  }
  const { upgraded, status, headers } = answer;
  if (upgraded === undefined) {
    const { idle_ms } = deps.exchange.bounds;
    return passAnswer({ ...call, tool, http }, answer, received.response, { is_head: false, idle_ms });
  }
  await call.end({ status: "succeeded", result: { status, body: null } });
  const lines = [...headers, ["Connection", "Upgrade"], ["Upgrade", "websocket"]];
  received.response.detachSocket(socket);
  socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.map(([n, v]) => `${n}: ${v}\r\n`).join("")}\r\n`);
  if (upgraded.head.length > 0) socket.write(upgraded.head);
  if (head.length > 0) upgraded.socket.write(head);
  joinSockets(socket, upgraded.socket);
}

/** Passes bytes both ways until either side ends. */
export function joinSockets(a: Socket, b: Socket): void {
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const) {
    from.on("error", () => to.destroy());
    from.once("close", () => to.destroySoon());
    from.pipe(to);
  }
}
