/**
 * One `tools/call`, governed: the intent, the upstream's answer, the outcome, and only then the answer to the agent.
 * But for the read that a card shows, nothing is sent upstream without a recorded intent, and nothing of the agent's
 * but the arguments that were judged and hashed; nothing is answered without a recorded outcome, and what is not
 * known is recorded as not known.
 */
import { ProtocolError } from "@modelcontextprotocol/server";
import type { z } from "zod";
import type { App } from "../app/app.ts";
import type { Caller } from "../app/door/operation.ts";
import { perform } from "../app/door/perform.ts";
import { intent as intentOp, outcome as outcomeOp, previewIntent } from "../app/operations/journal.ts";
import type { BeforeRead } from "../engine/before.ts";
import type { Decision } from "../engine/decide/verdict.ts";
import { AlreadyReported } from "../engine/outcome.ts";
import { cutText } from "../kernel/cut.ts";
import { ERRORS, SvcError } from "../kernel/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../kernel/json.ts";
import { LIMITS } from "../kernel/limits.ts";
import { approvalIn } from "../model/approval.ts";
import type { Principal } from "../model/roles.ts";
import type { OutcomeStatus } from "../model/run.ts";
import { type BeforeReading, type Reads, readAfter, readBefore, readForCard } from "./before.ts";
import type { Cancellation } from "./cancellation.ts";
import type { Route } from "./catalog.ts";
import type { Flights } from "./flights.ts";
import { blockedResult, errorText, resultValue, textResult, withMeta, withoutStructured } from "./result.ts";
import type { HolderOf, UpstreamUndo } from "./rollback.ts";
import type { BoundRun, Runs } from "./runs.ts";
import { failureOf, isTimeout } from "./upstream/failure.ts";
import type { Upstream } from "./upstream/upstream.ts";

export interface Governing {
  app: App;
  runs: Runs;
  flights: Flights;
  /** What to hold against a call of this route. */
  objections(route: Route): readonly string[];
  /** Reads through the upstreams, for what a manifest wants known before and after a call. */
  services: { undo: Pick<UpstreamUndo, "readerOver" | "objection"> };
}

interface ToolCall {
  principal: Principal;
  run: BoundRun;
  tool: string;
  args: JsonObject;
  /** What the agent said in the argument that asks for a reason. */
  reason: string | undefined;
  /** The agent's own `_meta`. It is read here and goes no further: no policy judges it, and no approval covers it. */
  meta: JsonObject;
  /** Undefined where no upstream offers the tool. */
  route: Route | undefined;
  /** Whether the client can be asked for input with an answer, and may be. */
  rounds: boolean;
  /** What the upstream has to be told of the client, in the gateway's words. */
  envelope: JsonObject;
  /** What the client answers to an upstream that may ask it. */
  input?: JsonObject | undefined;
  cancellation: Cancellation;
  session: object;
  /** Whose connection to an upstream it and its reads go over; undefined where all share one. */
  holder: HolderOf;
  progress?: ((params: JsonObject) => void) | undefined;
  log(params: JsonObject): void;
  /** The call proves its own undo; see Caller. */
  drill?: true;
}

const OUTCOME_TRIES = 4;
const OUTCOME_RETRY_MS = 250;

export async function governedCall(gateway: Governing, call: ToolCall): Promise<JsonObject> {
  const context = contextOf(gateway, call);
  if (call.route !== undefined) context.objections = gateway.objections(call.route);
  const { decision, reading } = await decide(gateway, call, context);
  const facts: JsonObject = { "svc/run_id": call.run.run_id, "svc/decision": decision.decision };
  if (decision.decision === "block") return blocked(gateway, call, decision, facts);
  facts["svc/step"] = decision.step;
  if (decision.decision === "would_block") Object.assign(facts, whyMeta(decision));
  const end = await executeBetweenReads(gateway, call, decision.before, reading);
  await report(gateway, context, call.run.run_id, decision.step, end);
  if (end.error !== undefined) throw end.error;
  // Our own words on how it ended are no output of the tool, and must not be held against its schema.
  if (end.own === true && declaresOutput(call))
    return withMeta(withoutStructured(end.answer), { ...facts, "svc/status": end.status });
  return withMeta(end.answer, facts);
}

interface Refused {
  reasons: string[];
  hints?: string[] | undefined;
}

function whyMeta({ reasons, hints }: Refused): JsonObject {
  return { "svc/reasons": reasons, ...(hints === undefined ? {} : { "svc/hints": hints }) };
}

function blocked(
  { app }: Governing,
  call: ToolCall,
  { reasons, hints }: Refused,
  facts: JsonObject,
): JsonObject {
  const result = blockedResult(reasons, hints);
  const told = { ...facts, "svc/approval_id": approvalIn(reasons) };
  if (app.settings.blocked_results === "structured" || !declaresOutput(call)) return withMeta(result, told);
  return withMeta(withoutStructured(result), { ...told, ...whyMeta({ reasons, hints }) });
}

function declaresOutput({ route }: ToolCall): boolean {
  return route?.definition["outputSchema"] !== undefined;
}

/** Neither an intent nor an outcome waits for anything that a client could break off. */
const NEVER = new AbortController().signal;
/** Of its own for each call: whoever listens to it is let go with it. */
const never = (): AbortSignal => new AbortController().signal;

function contextOf({ app }: Governing, { principal, meta, drill, route }: ToolCall): Caller {
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
  decision: Decision;
  /** What was read for the card; null where nothing was. */
  reading: BeforeReading | null;
}

async function decide(gateway: Governing, call: ToolCall, context: Caller): Promise<Decided> {
  const { run, tool, args, meta } = call;
  const depends_on = meta["svc/depends_on"];
  const reason = reasonOf(call);
  const plain = { run_id: run.run_id, tool, args, reason };
  // Whatever the agent wrote there: the operation checks it.
  const input = depends_on === undefined ? plain : { ...plain, depends_on: depends_on as number[] };
  // Asked for together: the run and its first intent are made durable in one step.
  const opening = run.open();
  const asked = showsBefore(gateway, call)
    ? opening.then(() => decideSeeing(readsOf(gateway, call), context, input))
    : perform(intentOp, context, input).then((decision) => ({ decision, reading: null }));
  const [opened, decided] = await Promise.allSettled([opening, asked]);
  if (opened.status === "rejected") throw opened.reason;
  if (decided.status === "fulfilled") return decided.value;
  if (decided.reason instanceof SvcError && decided.reason.code === "not_found")
    await gateway.runs.forget(call.principal, run.run_id);
  throw decided.reason;
}

function showsBefore({ app }: Governing, { tool }: ToolCall): boolean {
  return app.core.rules().manifests.active(tool)?.before !== undefined;
}

/** Over the very connection of the call: what an upstream keeps for another one is not what the call changes. */
function readsOf({ services: { undo } }: Governing, { holder }: ToolCall): Reads {
  return { reader: undo.readerOver(holder), objection: undo.objection };
}

/** What the card of the call shows to be there is read first, where it has one. */
async function decideSeeing(
  reads: Reads,
  context: Caller,
  input: z.input<typeof intentOp.input>,
): Promise<Decided> {
  const { seen, reading } = await readForCard(reads, await perform(previewIntent, context, input), never());
  return { decision: await perform(intentOp, { ...context, seen }, input), reading };
}

/** In the agent's words where it said why: among the arguments where it is asked there, else beside them. */
function reasonOf({ reason: asked, meta, tool }: ToolCall): string {
  const given = asked ?? meta["svc/reason"];
  const reason = typeof given === "string" ? given.trim() : "";
  return cutText(reason === "" ? `tools/call ${tool}` : reason, LIMITS.reason_chars);
}

/** How a call ended: what is recorded, and what the agent gets. */
interface End {
  status: OutcomeStatus;
  result?: Json | undefined;
  /** What was there before the call and after it, where its manifest asks. */
  before?: Json | undefined;
  after?: Json | undefined;
  text?: string | undefined;
  answer: JsonObject;
  /** Whether the answer is the gateway's and not the upstream's. */
  own?: true;
  /** The upstream's own error, handed on as it is. */
  error?: Error | undefined;
}

async function executeBetweenReads(
  gateway: Governing,
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

async function execute(gateway: Governing, call: ToolCall): Promise<End> {
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

/** What is recorded of an error does not hold the address or the credentials of the upstream that told it. */
function withoutSecrets(end: End, upstream: Upstream): End {
  return end.text === undefined ? end : { ...end, text: upstream.hide(end.text) };
}

function answered(result: JsonObject, rounds: boolean): End {
  if (result["resultType"] === "input_required") {
    // The call did not run; when the client repeats it with the input, that is a call of its own.
    if (rounds) return { status: "failed", text: "the tool asks for input before it runs", answer: result };
    return failed("the tool asks for input, which its upstream's passthrough does not allow");
  }
  if (result["isError"] === true) return { status: "failed", text: errorText(result), answer: result };
  return { status: "succeeded", result: resultValue(result), answer: result };
}

function unanswered(error: unknown, call: ToolCall, timeout_ms: number): End {
  const name = `upstream ${call.route?.upstream.name}`;
  if (call.cancellation.cancelled) return uncertain("the call was cancelled while it was under way");
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
  const told = `The outcome of this call is not known (${text}). It may or may not have taken effect; it is recorded as uncertain, for a person to resolve.`;
  const answer = textResult(told, { status: "uncertain", error: text }, true);
  return { status: "uncertain", text, answer, own: true };
}

/** Tries more than once: what was done upstream cannot be asked again. */
async function report(
  { app }: Governing,
  context: Caller,
  run_id: string,
  step: number,
  end: End,
): Promise<void> {
  const { env } = app.core;
  // More of it is not looked at; less would leave half a value at its end.
  const error = end.text?.slice(0, LIMITS.error_read_chars);
  const { status, result, before, after } = end;
  const input = { run_id, step, status, result, error, before, after };
  for (let attempt = 1; ; attempt++) {
    try {
      await perform(outcomeOp, context, input);
      return;
    } catch (error) {
      // An earlier try arrived after all, or an operator was faster. Any other conflict left the step open.
      if (error instanceof AlreadyReported) return;
      const code = error instanceof SvcError ? error.code : undefined;
      if (code !== "unavailable" || attempt >= OUTCOME_TRIES) throw unrecorded(run_id, step, end, error);
      await env.sleep(OUTCOME_RETRY_MS * 2 ** (attempt - 1));
    }
  }
}

function unrecorded(run_id: string, step: number, end: End, error: unknown): Error {
  const { rpc } = ERRORS[error instanceof SvcError ? error.code : "unavailable"];
  const text = `the call ended as ${end.status}, but its outcome could not be recorded; step ${step} of run ${run_id} is unresolved`;
  return new ProtocolError(rpc, text, { run_id, step });
}

export function isToolCallParams(params: unknown): params is JsonObject & { name: string } {
  return isJsonObject(params) && typeof params["name"] === "string" && params["name"] !== "";
}
