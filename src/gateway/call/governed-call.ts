/**
 * Governs one `tools/call`: records the intent, calls the upstream, records the outcome, and only then answers the
 * agent.
 *
 * Apart from the read for an approval card, nothing goes upstream without a recorded intent, and no agent data beyond
 * the evaluated and hashed arguments. No answer is returned without a recorded outcome. An unknown result is recorded
 * as unknown.
 */
import { ProtocolError } from "@modelcontextprotocol/server";
import type { z } from "zod";
import type { ApproversGuard } from "../../auth/approvers-guard.ts";
import { pendingApprovalId } from "../../govern/approvals/approval.ts";
import type { BeforeRead } from "../../govern/decide/before-state.ts";
import { observeEffect } from "../../govern/decide/effect-check.ts";
import { AlreadyReportedError, type OutcomeAnswer } from "../../govern/decide/outcome.ts";
import type { IntentDecision } from "../../govern/decide/verdict.ts";
import type { CallerPrincipal } from "../../govern/roles.ts";
import type { OutcomeStatus } from "../../govern/runs/run.ts";
import { ERROR_KINDS, SvcError } from "../../kernel/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { cutText } from "../../kernel/text/truncate.ts";
import type { ServiceApp } from "../../operations/app.ts";
import { dispatchOperation } from "../../operations/pipeline/dispatch.ts";
import type { ApiCaller } from "../../operations/pipeline/operation.ts";
import {
  type BeforeReader,
  type BeforeReading,
  readAfter,
  readBefore,
  readForCard,
} from "../../operations/runs/before-reads.ts";
import {
  submitIntent as intentOp,
  reportStepOutcome as outcomeOp,
  previewIntent,
} from "../../operations/runs/intents-and-outcomes.ts";
import { getSignatures } from "../../operations/signing/signatures.ts";
import type { ReadRequest } from "../../rollback/ports.ts";
import type { ToolRoute } from "../catalog/catalog.ts";
import type { BoundRun, GatewayRuns } from "../session/runs.ts";
import { failureOf, isTimeout } from "../upstream/failure.ts";
import type { UpstreamServer } from "../upstream/upstream.ts";
import type { CallCancellation } from "./cancellation.ts";
import type { InFlightCalls } from "./in-flight-calls.ts";
import { blockedResult, errorText, resultValue, textResult, withMeta, withoutStructured } from "./result.ts";
import type { OwnerOf, UpstreamUndo } from "./rollback.ts";

export interface GovernedCallDeps {
  guard: ApproversGuard | null;
  app: ServiceApp;
  runs: GatewayRuns;
  flights: InFlightCalls;
  /** Reasons to block a call of this route. */
  objections(route: ToolRoute): readonly string[];
  /** Reads through the upstreams, for the `before` key of a manifest. */
  services: { undo: Pick<UpstreamUndo, "readerOver" | "objection"> };
}

interface ToolCall {
  principal: CallerPrincipal;
  run: BoundRun;
  tool: string;
  args: JsonObject;
  /** The agent's text in the reason argument. */
  reason: string | undefined;
  /**
   * The agent's own `_meta`. The gateway reads it and does not forward it. Policies do not evaluate it, and approvals
   * do not cover it.
   */
  meta: JsonObject;
  /** Undefined if no upstream offers the tool. */
  route: ToolRoute | undefined;
  /** Whether an answer may ask the client for input, and the client supports that. */
  rounds: boolean;
  /** The client's capabilities for the upstream, in a `_meta` that the gateway writes. */
  envelope: JsonObject;
  /** The client's answers to the questions of an upstream. */
  input?: JsonObject | undefined;
  cancellation: CallCancellation;
  session: object;
  /** Owner of the connection for the call and its reads. Undefined if all callers share one connection. */
  holder: OwnerOf;
  progress?: ((params: JsonObject) => void) | undefined;
  log(params: JsonObject): void;
  /** Marks a drill, whose call tests its own undo. See Caller. */
  drill?: true;
}

const OUTCOME_TRIES = 4;
const OUTCOME_RETRY_MS = 250;

export async function governedCall(gateway: GovernedCallDeps, call: ToolCall): Promise<JsonObject> {
  const context = contextOf(gateway, call);
  if (call.route !== undefined) context.objections = gateway.objections(call.route);
  const { decision, reading } = await decide(gateway, call, context);
  const facts: JsonObject = { "svc/run_id": call.run.run_id, "svc/decision": decision.decision };
  if (decision.decision === "block") return blocked(gateway, call, decision, facts);
  facts["svc/step"] = decision.step;
  if (decision.decision === "would_block") Object.assign(facts, whyMeta(decision));
  const objection = await unsigned(gateway, call, context, decision);
  const end =
    objection === null ? await executeBetweenReads(gateway, call, decision, reading) : failed(objection);
  const recorded = await report(gateway, context, call.run.run_id, decision.step, end);
  if (recorded?.effect_check !== undefined) facts["svc/effect_check"] = recorded.effect_check;
  if (recorded?.effect_check === "missing")
    return withMeta(withoutEffect(call, end.answer), { ...facts, "svc/status": recorded.status });
  if (end.error !== undefined) throw end.error;
  // Our own text about the result is not tool output, so clients must not validate it by the output schema.
  if (end.own === true && declaresOutput(call))
    return withMeta(withoutStructured(end.answer), { ...facts, "svc/status": end.status });
  return withMeta(end.answer, facts);
}

type AcceptedDecision = Exclude<IntentDecision, { decision: "block" }>;

/** Why the approvers file does not permit the call, or null. */
async function unsigned(
  { guard }: GovernedCallDeps,
  { run, tool, args }: ToolCall,
  context: ApiCaller,
  decision: AcceptedDecision,
): Promise<string | null> {
  if (guard === null) return null;
  const approval_id = decision.decision === "allow" ? decision.approval_id : undefined;
  const evidence = async () =>
    approval_id === undefined ? undefined : dispatchOperation(getSignatures, context, { approval_id });
  return guard.objection({ run_id: run.run_id, tool, args }, evidence);
}

interface Refused {
  reasons: string[];
  hints?: string[] | undefined;
}

function whyMeta({ reasons, hints }: Refused): JsonObject {
  return { "svc/reasons": reasons, ...(hints === undefined ? {} : { "svc/hints": hints }) };
}

function blocked(
  { app }: GovernedCallDeps,
  call: ToolCall,
  { reasons, hints }: Refused,
  facts: JsonObject,
): JsonObject {
  const result = blockedResult(reasons, hints);
  const told = { ...facts, "svc/approval_id": pendingApprovalId(reasons) };
  if (app.settings.blocked_results === "structured" || !declaresOutput(call)) return withMeta(result, told);
  return withMeta(withoutStructured(result), { ...told, ...whyMeta({ reasons, hints }) });
}

function declaresOutput({ route }: ToolCall): boolean {
  return route?.definition["outputSchema"] !== undefined;
}

/** Intents and outcomes never wait for anything that a client could cancel. */
const NEVER = new AbortController().signal;
/** A new signal for each call, so that its listeners are released with the call. */
const never = (): AbortSignal => new AbortController().signal;

function contextOf({ app }: GovernedCallDeps, { principal, meta, drill, route }: ToolCall): ApiCaller {
  const { traceparent } = meta;
  const { inputSchema: input_schema } = route?.definition ?? {};
  const traced = typeof traceparent === "string" ? { traceparent } : {};
  return {
    app,
    principal,
    signal: NEVER,
    reads_by: "gateway",
    ...traced,
    ...(input_schema === undefined ? {} : { input_schema }),
    ...(drill === undefined ? {} : { drill }),
  };
}

interface Decided {
  decision: IntentDecision;
  /** The reading for the card, or null. */
  reading: BeforeReading | null;
}

async function decide(gateway: GovernedCallDeps, call: ToolCall, context: ApiCaller): Promise<Decided> {
  const { run, tool, args, meta } = call;
  const depends_on = meta["svc/depends_on"];
  const reason = reasonOf(call);
  const plain = { run_id: run.run_id, tool, args, reason };
  // Unchecked input of the agent, which the operation validates.
  const input = depends_on === undefined ? plain : { ...plain, depends_on: depends_on as number[] };
  // Sent together, so that the run and its first intent become durable in one commit.
  const opening = run.open();
  const asked = showsBefore(gateway, call)
    ? opening.then(() => decideSeeing(readsOf(gateway, call), context, input))
    : dispatchOperation(intentOp, context, input).then((decision) => ({ decision, reading: null }));
  const [opened, decided] = await Promise.allSettled([opening, asked]);
  if (opened.status === "rejected") throw opened.reason;
  if (decided.status === "fulfilled") return decided.value;
  if (decided.reason instanceof SvcError && decided.reason.code === "not_found")
    await gateway.runs.forget(call.principal, run.run_id);
  throw decided.reason;
}

function showsBefore({ app }: GovernedCallDeps, { tool }: ToolCall): boolean {
  return app.core.rules().manifests.active(tool)?.before !== undefined;
}

/** Reads over the call's own connection, because an upstream may keep separate state for each connection. */
function readsOf({ services: { undo } }: GovernedCallDeps, { holder }: ToolCall): BeforeReader {
  return { reader: undo.readerOver(holder), objection: undo.objection };
}

/** Reads the state for the approval card first, if the call has one, and then decides. */
async function decideSeeing(
  reads: BeforeReader,
  context: ApiCaller,
  input: z.input<typeof intentOp.input>,
): Promise<Decided> {
  const { seen, reading } = await readForCard(
    reads,
    await dispatchOperation(previewIntent, context, input),
    never(),
  );
  return { decision: await dispatchOperation(intentOp, { ...context, seen }, input), reading };
}

/** The agent's reason from the reason argument or from `_meta`, or a generic one. */
function reasonOf({ reason: asked, meta, tool }: ToolCall): string {
  const given = asked ?? meta["svc/reason"];
  const reason = typeof given === "string" ? given.trim() : "";
  return cutText(reason === "" ? `tools/call ${tool}` : reason, SERVICE_LIMITS.reason_chars);
}

/** Result of a call: the part to record, and the answer to the agent. */
interface End {
  status: OutcomeStatus;
  result?: JsonValue | undefined;
  /** State before and after the call, if the manifest requires these reads. */
  before?: JsonValue | undefined;
  after?: JsonValue | undefined;
  /** Last answer of the effect check's tool, if it could be read. */
  observed?: JsonValue | undefined;
  text?: string | undefined;
  answer: JsonObject;
  /** Whether the gateway wrote the answer instead of the upstream. */
  own?: true;
  /** The upstream's own error, passed on unchanged. */
  error?: Error | undefined;
}

async function executeBetweenReads(
  gateway: GovernedCallDeps,
  call: ToolCall,
  decision: AcceptedDecision,
  already: BeforeReading | null,
): Promise<End> {
  const end = await executeAfterRead(gateway, call, decision.before, already);
  const { effect_check: check } = decision;
  if (check === undefined || end.status !== "succeeded") return end;
  const { reader, objection } = readsOf(gateway, call);
  const values = { args: call.args, result: end.result, before: end.before };
  const read = async (request: ReadRequest) => {
    const against = await objection([request.tool]);
    if (against !== null) throw new Error(against);
    return reader(request, never());
  };
  return { ...end, observed: await observeEffect(gateway.app.core.env, read, check, values) };
}

async function executeAfterRead(
  gateway: GovernedCallDeps,
  call: ToolCall,
  asked: BeforeRead | undefined,
  already: BeforeReading | null,
): Promise<End> {
  if (asked === undefined) return execute(gateway, call);
  const reads = readsOf(gateway, call);
  const reading = already ?? (await readBefore(reads, asked, never()));
  if ("problem" in reading) return failed(reading.problem);
  const { value: before } = reading;
  const end = await execute(gateway, call);
  if (before === undefined || end.status !== "succeeded") return { ...end, before };
  return { ...end, before, after: await readAfter(reads, asked, never()) };
}

async function execute(gateway: GovernedCallDeps, call: ToolCall): Promise<End> {
  const { route, cancellation, session, progress } = call;
  if (route === undefined) return failed("no upstream offers this tool");
  const { upstream } = route;
  const holder = call.holder(upstream);
  const done = gateway.flights.begin(upstream, { session, holder: holder?.key ?? null, log: call.log });
  try {
    if (cancellation.cancelled) return failed("the call was cancelled before it was sent");
    const params: JsonObject = { ...call.input, arguments: call.args };
    if (Object.keys(call.envelope).length > 0) params["_meta"] = call.envelope;
    const fulfil = holder?.capabilities !== undefined;
    const options = { timeout_ms: upstream.spec.timeout_ms, cancellation, onProgress: progress, fulfil };
    const result = await upstream.callTool(route.name, route.definition, params, options, holder);
    return withoutSecrets(answered(result, call.rounds), upstream);
  } catch (error) {
    return withoutSecrets(unanswered(error, call, upstream.spec.timeout_ms), upstream);
  } finally {
    done();
  }
}

/** Removes the upstream's URL and credentials from an error before it is recorded. */
function withoutSecrets(end: End, upstream: UpstreamServer): End {
  return end.text === undefined ? end : { ...end, text: upstream.hide(end.text) };
}

function answered(result: JsonObject, rounds: boolean): End {
  if (result["resultType"] === "input_required") {
    // The call did not run. The client's repeated call with the input counts as a new call.
    if (rounds) return { status: "failed", text: "the tool asks for input before it runs", answer: result };
    return failed("the tool asks for input, which its upstream's passthrough does not allow");
  }
  if (result["isError"] === true) return { status: "failed", text: errorText(result), answer: result };
  return { status: "succeeded", result: resultValue(result), answer: result };
}

function unanswered(error: unknown, call: ToolCall, timeout_ms: number): End {
  const name = `upstream ${call.route?.upstream.name}`;
  if (call.cancellation.cancelled) return uncertain("the call was cancelled while it was in progress");
  if (isTimeout(error)) return uncertain(`${name} did not answer within ${timeout_ms} ms`);
  const failure = failureOf(error);
  if (failure.kind === "not_sent") return failed(`nothing was sent to ${name}: ${failure.message}`);
  if (failure.kind === "unknown") return uncertain(`${name}: ${failure.message}`);
  const { code, message, data } = failure;
  return { status: "failed", text: message, answer: {}, error: new ProtocolError(code, message, data) };
}

function failed(text: string): End {
  const answer = textResult(text, { status: "failed", error: text }, true);
  return { status: "failed", text, answer, own: true };
}

function uncertain(text: string): End {
  const told = `The outcome of this call is not known (${text}). It may or may not have taken effect. It is recorded as uncertain until an operator resolves it.`;
  const answer = textResult(told, { status: "uncertain", error: text }, true);
  return { status: "uncertain", text, answer, own: true };
}

/** The answer of a tool that reported success without its effect. The agent still sees what the tool said. */
function withoutEffect(call: ToolCall, answer: JsonObject): JsonObject {
  const text = `The tool answered with success, but a read of the state does not show what it reported. It may have done nothing, or something else. The call is recorded as uncertain until an operator resolves it. The tool's own answer follows.`;
  const { content } = answer;
  const said = { ...answer, content: [{ type: "text", text }, ...(Array.isArray(content) ? content : [])] };
  return { ...(declaresOutput(call) ? withoutStructured(said) : said), isError: true };
}

/** Records the outcome and retries on failure, because the upstream call cannot be repeated. */
async function report(
  { app }: GovernedCallDeps,
  context: ApiCaller,
  run_id: string,
  step: number,
  end: End,
): Promise<OutcomeAnswer | undefined> {
  const { env } = app.core;
  // The operation inspects no more of the text. A shorter cut could leave half a value at the end.
  const error = end.text?.slice(0, SERVICE_LIMITS.error_read_chars);
  const { status, result, before, after, observed } = end;
  const input = { run_id, step, status, result, error, before, after, observed };
  for (let attempt = 1; ; attempt++) {
    try {
      return await dispatchOperation(outcomeOp, context, input);
    } catch (error) {
      // An earlier attempt succeeded after all, or an operator resolved the step. Any other conflict leaves the step
      // open.
      if (error instanceof AlreadyReportedError) return undefined;
      const code = error instanceof SvcError ? error.code : undefined;
      if (code !== "unavailable" || attempt >= OUTCOME_TRIES) throw unrecorded(run_id, step, end, error);
      await env.sleep(OUTCOME_RETRY_MS * 2 ** (attempt - 1));
    }
  }
}

function unrecorded(run_id: string, step: number, end: End, error: unknown): Error {
  const { rpc } = ERROR_KINDS[error instanceof SvcError ? error.code : "unavailable"];
  const text = `the call ended as ${end.status}, but its outcome could not be recorded; step ${step} of run ${run_id} is unresolved`;
  return new ProtocolError(rpc, text, { run_id, step });
}

export function isToolCallParams(params: unknown): params is JsonObject & { name: string } {
  return isJsonObject(params) && typeof params["name"] === "string" && params["name"] !== "";
}
