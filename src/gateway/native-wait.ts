/**
 * Waiting for a person by the means of the client's own protocol revision, where `approvals.wait` asks for it: the
 * newer one is answered with a question that holds the card's address and sends the call again, one of 2025-11-25 is
 * asked while its call is under way. Whatever the client answers, only a decision in the console or elsewhere counts;
 * and the call is made by the same way as any other, so that its approval is used once.
 */
import { CLIENT_CAPABILITIES_META_KEY, type Server } from "@modelcontextprotocol/server";
import type { App } from "../app/app.ts";
import { awaitDecision } from "../app/operations/approvals/await-decision.ts";
import { isJsonObject, type JsonObject } from "../kernel/json.ts";
import { type ApprovalDoc, OPEN_APPROVAL } from "../model/approval.ts";
import { consoleLinks } from "../notify/links.ts";
import type { RequestContext } from "./request-context.ts";
import { mintState, type State, type WaitingCall } from "./request-state.ts";
import { textResult, withMeta } from "./result.ts";
import { tellingProgress } from "./tools/progress.ts";

const URL_ELICITATION = "2025-11-25";
export const CARD_QUESTION = "approval";
export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

/** Where a person finds the card; null where there is no such place, or everybody could act there. */
function cardUrl({ settings }: App, approval_id: string): string | null {
  return settings.console.mode === "login" ? consoleLinks(settings.console_url).approval(approval_id) : null;
}

function message({ tool }: WaitingCall): string {
  return `A person has to decide the call of ${tool}. The page shows it; opening the page decides nothing.`;
}

/** How this client can be asked to wait; null where it cannot, or the configuration does not want it. */
export function waitsBy(
  app: App,
  server: Server,
  { envelope }: RequestContext,
): "task" | "rounds" | "elicitation" | null {
  if (app.settings.approvals.wait_ms === 0) return null;
  if (envelope !== undefined) {
    if (declaresTasks(envelope)) return "task";
    return takesUrls(envelope[CLIENT_CAPABILITIES_META_KEY]) ? "rounds" : null;
  }
  const version = server.getNegotiatedProtocolVersion();
  if (version === undefined || version < URL_ELICITATION) return null;
  return takesUrls(server.getClientCapabilities()) ? "elicitation" : null;
}

/** Whether a request of the newer revision says that its client has tasks. */
export function declaresTasks(envelope: JsonObject | undefined): boolean {
  const capabilities = envelope?.[CLIENT_CAPABILITIES_META_KEY];
  const { extensions } = isJsonObject(capabilities) ? capabilities : {};
  return isJsonObject(extensions) && isJsonObject(extensions[TASKS_EXTENSION]);
}

function takesUrls(capabilities: unknown): boolean {
  const { elicitation } = isJsonObject(capabilities as JsonObject) ? (capabilities as JsonObject) : {};
  return isJsonObject(elicitation) && isJsonObject(elicitation["url"]);
}

/** The first half for a client of the newer revision: the question, and what it brings back. Null without an address. */
export function inputRequired(app: App, call: WaitingCall, state: State): JsonObject | null {
  const inputRequests = question(app, call, state.approval_id);
  if (inputRequests === null) return null;
  return { resultType: "input_required", inputRequests, requestState: mintState(app, call, state) };
}

function question(app: App, call: WaitingCall, approval_id: string): JsonObject | null {
  const url = cardUrl(app, approval_id);
  if (url === null) return null;
  const params = { mode: "url", message: message(call), url };
  return { [CARD_QUESTION]: { method: "elicitation/create", params } };
}

/** What a task says of itself while it is under way, and asks of its client. */
export interface CallWait {
  message: string;
  wait_ms: number;
  inputRequests: JsonObject | null;
}

/** A call that waits, whose client shows the card where it can show pages. */
export function waitOf(app: App, call: WaitingCall, approval_id: string, capabilities: unknown): CallWait {
  return {
    message: `a person has to decide the call of ${call.tool} (request ${approval_id})`,
    wait_ms: app.settings.approvals.wait_ms,
    inputRequests: takesUrls(capabilities) ? question(app, call, approval_id) : null,
  };
}

/** A call that waits for no person. */
export function underWay({ settings }: App, tool: string): CallWait {
  const { wait_ms } = settings.approvals;
  return { message: `the call of ${tool} is under way`, wait_ms, inputRequests: null };
}

/** Whether the client says that its person does not want to wait. */
export function declined(input: JsonObject | undefined): boolean {
  const responses = input?.["inputResponses"];
  const answer = isJsonObject(responses) ? responses[CARD_QUESTION] : undefined;
  const action = isJsonObject(answer) ? (answer["action"] ?? nested(answer)) : undefined;
  return action === "decline" || action === "cancel";
}

function nested({ result }: JsonObject): unknown {
  return isJsonObject(result) ? result["action"] : undefined;
}

/** The decision, or the open request at the end of the configured time. */
export function decisionOf(
  app: App,
  { principal }: WaitingCall,
  approval_id: string,
  context: RequestContext,
  progress: ((told: JsonObject) => void) | undefined,
): Promise<ApprovalDoc> {
  const total = Math.ceil(app.settings.approvals.wait_ms / 1_000);
  const mine = (found: ApprovalDoc) => found.internal.principal === principal.id;
  const { signal } = context.cancellation;
  return tellingProgress(app.core.env, progress, total, () =>
    awaitDecision(app, { id: approval_id, wait_s: total, signal, who: principal }, mine),
  );
}

/** Asks a client of 2025-11-25 to show the card, and waits; null where it cannot be shown or is not wanted. */
export async function askAndWait(
  app: App,
  call: WaitingCall,
  approval_id: string,
  context: RequestContext,
  progress: ((told: JsonObject) => void) | undefined,
): Promise<ApprovalDoc | null> {
  const url = cardUrl(app, approval_id);
  if (url === null) return null;
  const over = new AbortController();
  const { wait_ms } = app.settings.approvals;
  const params = { mode: "url", message: message(call), url, elicitationId: approval_id };
  const asked = context
    .ask("elicitation/create", params, { signal: over.signal, timeout: wait_ms })
    .then(({ action }) => (action === "decline" || action === "cancel" ? null : "waits"))
    .catch(() => "waits" as const);
  const decided = decisionOf(app, call, approval_id, context, progress);
  const first = await Promise.race([asked, decided]);
  if (first === null) {
    decided.catch(() => {});
    return null;
  }
  const approval = await decided;
  over.abort();
  if (!OPEN_APPROVAL.has(approval.status))
    context.notify("notifications/elicitation/complete", { elicitationId: approval_id });
  return approval;
}

/** What the agent is told of a request that was decided against it, or ended. */
export function notApproved(approval: ApprovalDoc, run_id: string): JsonObject {
  const { id, status, note } = approval;
  const reason = `request ${id} was ${status}${note === null ? "" : `: ${note}`}; do not repeat the call`;
  const structured = { decision: "block", reasons: [reason], approval_id: id };
  const { structuredContent: _, ...text } = textResult(reason, structured, true);
  return withMeta(text, {
    "svc/run_id": run_id,
    "svc/decision": "block",
    "svc/reasons": [reason],
    "svc/approval_id": id,
  });
}
