/**
 * Waits for approval by the mechanism of the client's protocol revision, if `approvals.wait` is set. A newer client
 * gets a question with the URL of the card and sends the call again. A client of 2025-11-25 is asked while its call is
 * open.
 *
 * The client's answer decides nothing; only a recorded decision counts. The call then takes the same path as any other,
 * so its approval is used once.
 */
import { CLIENT_CAPABILITIES_META_KEY, type Server } from "@modelcontextprotocol/server";
import { type ApprovalDoc, OPEN_APPROVAL_STATUSES } from "../../govern/approvals/approval.ts";
import { isJsonObject, type JsonObject } from "../../kernel/json/json.ts";
import { consoleLinks } from "../../notify/links.ts";
import type { ServiceApp } from "../../operations/app.ts";
import { awaitDecision } from "../../operations/approvals/await-decision.ts";
import { textResult, withMeta } from "../call/result.ts";
import type { RequestContext } from "../session/request-context.ts";
import { mintState, type WaitingCall, type WaitState } from "../session/request-state.ts";
import { withProgress } from "../tools/progress.ts";

const URL_ELICITATION = "2025-11-25";
export const CARD_QUESTION = "approval";
export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

/** URL of the card for an approver. Null if the console is off or needs no login. */
function cardUrl({ settings }: ServiceApp, approval_id: string): string | null {
  return settings.console.mode === "login" ? consoleLinks(settings.console_url).approval(approval_id) : null;
}

function message({ tool }: WaitingCall): string {
  return `The call of ${tool} needs a person's decision. The page shows the call; opening the page decides nothing.`;
}

/** Mechanism by which this client can wait. Null if it has none, or the configuration disables waiting. */
export function waitMechanism(
  app: ServiceApp,
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

/** Whether a request of the newer revision declares the tasks extension. */
export function declaresTasks(envelope: JsonObject | undefined): boolean {
  const capabilities = envelope?.[CLIENT_CAPABILITIES_META_KEY];
  const { extensions } = isJsonObject(capabilities) ? capabilities : {};
  return isJsonObject(extensions) && isJsonObject(extensions[TASKS_EXTENSION]);
}

function takesUrls(capabilities: unknown): boolean {
  const { elicitation } = isJsonObject(capabilities as JsonObject) ? (capabilities as JsonObject) : {};
  return isJsonObject(elicitation) && isJsonObject(elicitation["url"]);
}

/**
 * First answer to a client of the newer revision, with the question and the state to send back. Null without a card
 * URL.
 */
export function inputRequired(app: ServiceApp, call: WaitingCall, state: WaitState): JsonObject | null {
  const inputRequests = question(app, call, state.approval_id);
  if (inputRequests === null) return null;
  return { resultType: "input_required", inputRequests, requestState: mintState(app, call, state) };
}

function question(app: ServiceApp, call: WaitingCall, approval_id: string): JsonObject | null {
  const url = cardUrl(app, approval_id);
  if (url === null) return null;
  const params = { mode: "url", message: message(call), url };
  return { [CARD_QUESTION]: { method: "elicitation/create", params } };
}

/** Status message of a task in progress, and its question to the client. */
export interface CallWait {
  message: string;
  wait_ms: number;
  inputRequests: JsonObject | null;
}

/** Wait of a call that needs approval. Shows the card if the client can show pages. */
export function approvalWait(
  app: ServiceApp,
  call: WaitingCall,
  approval_id: string,
  capabilities: unknown,
): CallWait {
  return {
    message: `the call of ${call.tool} waits for a person's decision (request ${approval_id})`,
    wait_ms: app.settings.approvals.wait_ms,
    inputRequests: takesUrls(capabilities) ? question(app, call, approval_id) : null,
  };
}

/** Wait of a call that needs no approval. */
export function inProgressCall({ settings }: ServiceApp, tool: string): CallWait {
  const { wait_ms } = settings.approvals;
  return { message: `the call of ${tool} is in progress`, wait_ms, inputRequests: null };
}

/** Whether the client reports that its user does not want to wait. */
export function declinesToWait(input: JsonObject | undefined, question: string = CARD_QUESTION): boolean {
  const action = answerTo(input, question);
  return action === "decline" || action === "cancel";
}

/** The client's answer to a question, such as `accept`. Null without one. */
export function answerTo(input: JsonObject | undefined, question: string): string | null {
  const responses = input?.["inputResponses"];
  const answer = isJsonObject(responses) ? responses[question] : undefined;
  const action = isJsonObject(answer) ? (answer["action"] ?? nested(answer)) : undefined;
  return typeof action === "string" ? action : null;
}

function nested({ result }: JsonObject): unknown {
  return isJsonObject(result) ? result["action"] : undefined;
}

/** The decision, or the open request when the configured time has passed. */
export function decisionOf(
  app: ServiceApp,
  { principal }: WaitingCall,
  approval_id: string,
  context: RequestContext,
  progress: ((told: JsonObject) => void) | undefined,
): Promise<ApprovalDoc> {
  const total = Math.ceil(app.settings.approvals.wait_ms / 1_000);
  const mine = (found: ApprovalDoc) => found.internal.principal === principal.id;
  const { signal } = context.cancellation;
  return withProgress(app.core.env, progress, total, () =>
    awaitDecision(app, { id: approval_id, wait_s: total, signal, who: principal }, mine),
  );
}

/** Asks a client of 2025-11-25 to show the card, and waits. Null if the client cannot show it or the user declines. */
export async function askAndWait(
  app: ServiceApp,
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
  if (!OPEN_APPROVAL_STATUSES.has(approval.status))
    context.notify("notifications/elicitation/complete", { elicitationId: approval_id });
  return approval;
}

/** Answer to the agent after its request was denied or expired. */
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
