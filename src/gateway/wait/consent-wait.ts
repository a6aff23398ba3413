/**
 * Asks for a principal's consent before a call of an upstream that needs it, by the mechanism of the client's protocol
 * revision. Opening the link decides nothing. The call is made, decided and recorded only after the consent.
 */
import { ProtocolError, type Server } from "@modelcontextprotocol/server";
import { isPersonal, needsConsent } from "../../config/sections/gateway.ts";
import type { CallerPrincipal } from "../../govern/roles.ts";
import { isJsonObject, type JsonObject } from "../../kernel/json/json.ts";
import type { ServiceApp } from "../../operations/app.ts";
import { type ConnectLink, offerConnectLink } from "../../operations/upstreams/connect.ts";
import { awaitConsent, missingOwnConsent } from "../../operations/upstreams/upstream-access.ts";
import { type GatewayCall, progressOf } from "../call/call-request.ts";
import { textResult, withMeta } from "../call/result.ts";
import type { McpGateway } from "../gateway.ts";
import type { RequestContext } from "../session/request-context.ts";
import { withProgress } from "../tools/progress.ts";
import type { ConnectionOwner } from "../upstream/connection-pool.ts";
import type { UpstreamServer } from "../upstream/upstream.ts";
import { answerTo, inProgressCall, waitMechanism } from "./protocol-wait.ts";
import type { CallTask, TaskRegistry } from "./tasks.ts";
import { handleOf } from "./tasks-2026-07-28.ts";

const QUESTION = "connect";
/** The error of revision 2025-11-25 for a call that needs a page to be opened first. */
const URL_REQUIRED = -32_042;

interface ConsentCall {
  upstream: UpstreamServer;
  /** Name of the tool at the upstream. Null if it is not known. */
  tool: string | null;
  principal: CallerPrincipal;
  context: RequestContext;
  asTask: boolean;
  /** Makes the call within a task, after the consent. */
  inTask(context: RequestContext): Promise<JsonObject>;
}

interface CallBefore extends Pick<ConsentCall, "principal" | "context" | "asTask"> {
  asked: GatewayCall;
  holder(upstream: UpstreamServer): ConnectionOwner | undefined;
  /** Makes the call, with the route that the consent made known. */
  make(context: RequestContext): Promise<JsonObject>;
}

/** What to do with a call: an answer instead of it, or null to make it. */
export async function consentBefore(
  gateway: McpGateway,
  server: Server,
  { asked: { tool, route }, holder, make, ...call }: CallBefore,
): Promise<JsonObject | null> {
  const upstream = route?.upstream ?? gateway.unlistedUpstream(tool);
  if (upstream === undefined) return null;
  const owner = holder(upstream);
  const missing = await askForConsent(gateway.app, server, gateway.tasks, {
    ...call,
    upstream,
    tool: route?.name ?? null,
    inTask: async (apart) => (await gateway.unlistable(upstream, owner)) ?? make(apart),
  });
  return missing ?? (route === undefined ? gateway.unlistable(upstream, owner) : null);
}

async function askForConsent(
  app: ServiceApp,
  server: Server,
  tasks: TaskRegistry,
  call: ConsentCall,
): Promise<JsonObject | null> {
  const { upstream, principal, context } = call;
  if (!isPersonal(upstream.spec) || !needsConsent(upstream.spec)) return null;
  const missing = await missingOwnConsent(app, upstream.spec, principal, call.tool);
  if (missing === null) return null;
  const link = await offerConnectLink(app, upstream.name, principal, missing.scopes);
  if (call.asTask) throw urlRequired(upstream, link);
  const by = waitMechanism(app, server, context);
  const answer = answerTo(context.retried, QUESTION);
  if (by === null || answer === "decline" || answer === "cancel") return linkResult(upstream, link);
  if (by === "task") return asTask(app, tasks, call, link);
  if (by === "rounds") {
    if (answer === null) return inputRequired(upstream, link);
    return (await waitFor(app, call)) ? null : inputRequired(upstream, link);
  }
  return (await askAndWait(app, call, link)) ? null : linkResult(upstream, link);
}

/** The client's input without its answer to our question, which is not for the upstream. */
export function withoutConsentAnswer(context: RequestContext): RequestContext {
  const responses = context.retried?.["inputResponses"];
  if (!isJsonObject(responses) || !Object.hasOwn(responses, QUESTION)) return context;
  const { [QUESTION]: _, ...inputResponses } = responses;
  const { inputResponses: __, ...rest } = context.retried!;
  const left = Object.keys(inputResponses).length === 0 ? rest : { ...rest, inputResponses };
  return { ...context, retried: Object.keys(left).length === 0 ? undefined : left };
}

const messageFor = ({ name }: UpstreamServer): string =>
  `The tool server ${name} needs your consent. The page shows what it asks for; opening it decides nothing.`;

function linkResult(upstream: UpstreamServer, { url }: ConnectLink): JsonObject {
  const { name } = upstream;
  const text = `nothing was called: the tool server ${name} needs consent first. Ask the person to open this link, which works once within ten minutes, and then make the call again: ${url}`;
  const { structuredContent: _, ...result } = textResult(text, {}, true);
  return withMeta(result, { "svc/connect_url": url, "svc/upstream": name });
}

function urlRequired(upstream: UpstreamServer, { url }: ConnectLink): ProtocolError {
  const elicitation = { mode: "url", message: messageFor(upstream), url, elicitationId: url.slice(-32) };
  return new ProtocolError(URL_REQUIRED, messageFor(upstream), { elicitations: [elicitation] });
}

function questionOf(upstream: UpstreamServer, { url }: ConnectLink): JsonObject {
  const params = { mode: "url", message: messageFor(upstream), url };
  return { [QUESTION]: { method: "elicitation/create", params } };
}

function inputRequired(upstream: UpstreamServer, link: ConnectLink): JsonObject {
  return { resultType: "input_required", inputRequests: questionOf(upstream, link) };
}

/** Waits as long as calls wait for approvals, with progress. */
function waitFor(app: ServiceApp, { upstream, principal, tool, context }: ConsentCall): Promise<boolean> {
  const { wait_ms } = app.settings.approvals;
  const { signal } = context.cancellation;
  const who = { principal: principal.id, tool };
  return withProgress(app.core.env, progressOf(context), Math.ceil(wait_ms / 1_000), () =>
    awaitConsent(app, upstream.spec, who, { wait_ms, signal }),
  );
}

/** Asks a client of 2025-11-25 to open the link, and waits. False if its user declines or does not finish. */
async function askAndWait(app: ServiceApp, call: ConsentCall, { url }: ConnectLink): Promise<boolean> {
  const { context, upstream } = call;
  const over = new AbortController();
  const elicitationId = url.slice(-32);
  const params = { mode: "url", message: messageFor(upstream), url, elicitationId };
  const asked = context
    .ask("elicitation/create", params, { signal: over.signal, timeout: app.settings.approvals.wait_ms })
    .then(({ action }) => (action === "decline" || action === "cancel" ? false : null))
    .catch(() => null);
  const consented = waitFor(app, call);
  const first = await Promise.race([asked, consented]);
  const given = first ?? (await consented);
  over.abort();
  if (given) context.notify("notifications/elicitation/complete", { elicitationId });
  return given;
}

/** Waits in a task, and makes the call there. Null if too many tasks are in progress. */
function asTask(app: ServiceApp, tasks: TaskRegistry, call: ConsentCall, link: ConnectLink): JsonObject {
  const { upstream, principal, context } = call;
  const wait = {
    message: messageFor(upstream),
    wait_ms: app.settings.approvals.wait_ms,
    inputRequests: questionOf(upstream, link),
  };
  const task = tasks.begin(principal, wait, async (task: CallTask) => {
    // The request already has its answer by then, so nothing can be sent on its stream.
    const over = { envelope: undefined, retried: undefined, notify: () => {} };
    const apart = { ...context, ...over, cancellation: task.cancellation };
    const given = await waitFor(app, { ...call, context: apart });
    if (task.cancellation.cancelled) return null;
    if (!given) return linkResult(upstream, link);
    tasks.waits(task, inProgressCall(app, call.tool ?? upstream.name));
    return call.inTask(apart);
  });
  return task === null ? linkResult(upstream, link) : handleOf(task);
}
