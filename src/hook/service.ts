/**
 * The hook's way to the service: one request per call, over the connection of the resident process or else over HTTP. Opens
 * the run if it does not exist yet.
 */
import { type IncomingMessage, request as plainRequest } from "node:http";
import { isRecord } from "./clients/clients.ts";

interface ServiceAddress {
  server: string;
  key: string;
  /** A connection that stays between calls. */
  stream?: ServiceStream;
}

/** Asks by the `operationId` of a route. */
export interface ServiceStream {
  /** Null if the stream does not take the request. Rejects if the answer was lost. */
  ask(
    request: { operation: string; params: Record<string, string>; body?: object },
    options: { timeout_ms: number; signal?: AbortSignal },
  ): Promise<Reply | null>;
}

/** The routes that the hook uses, by `operationId`. */
export const HOOK_ROUTES = {
  open_run: "POST /v1/runs",
  get_run: "GET /v1/runs/{id}",
  intent: "POST /v1/runs/{id}/intents",
  outcome: "POST /v1/runs/{id}/steps/{n}/outcome",
  give_texts: "POST /v1/runs/{id}/given",
  reconcile: "POST /v1/runs/{id}/reconcile",
  get_approval: "GET /v1/approvals/{id}",
  get_signatures: "GET /v1/approvals/{id}/signatures",
  report_agents: "POST /v1/agents",
} as const;

export interface HookDecision extends AnsweredDecision {
  /** The run that the call was decided in. */
  run_id: string;
}

interface AnsweredDecision {
  decision: "allow" | "would_block" | "block";
  step?: number;
  reasons?: string[];
  hints?: string[];
  before?: unknown;
  /** The signed approval that the call used. */
  approval_id?: unknown;
}

interface Reply {
  status: number;
  body: unknown;
}

/**
 * Timeout of one request. The four requests of a call, and its classification, must finish before clients give up on
 * the hook.
 */
const PATIENCE_MS = 6_000;
/** A decision is a few lines. A longer answer comes from another program. */
const LARGEST_ANSWER = 1_048_576;

export class ServiceUnreachable extends Error {}

export interface RunOpening {
  run_id: string;
  mode: string;
  permissions: readonly string[];
  reason: string;
  /** The session's run, for the run of a sub-agent. */
  parent?: string;
}

export async function requestDecision(
  address: ServiceAddress,
  opening: RunOpening,
  intent: object,
): Promise<HookDecision> {
  const ask = (run: string) => perform(address, "intent", { id: run }, intent);
  let { run_id } = opening;
  let reply = await ask(run_id);
  if (reply.status === 404) {
    run_id = await openRun(address, opening);
    reply = await ask(run_id);
  }
  if (reply.status !== 200) throw refused(reply);
  if (!isDecided(reply.body)) throw new Error(`${address.server} ${STRANGER}`);
  return { ...reply.body, run_id };
}

/** Gives a run texts of its user. A run that takes no more of them keeps those that it has. */
export async function giveTexts(
  address: ServiceAddress,
  opening: RunOpening,
  texts: readonly string[],
): Promise<void> {
  const give = (run: string) => perform(address, "give_texts", { id: run }, { texts });
  let reply = await give(opening.run_id);
  if (reply.status === 404) reply = await give(await openRun(address, opening));
  if (reply.status !== 200 && reply.status !== 413) throw refused(reply);
}

/** Opens the run, and its parent before it. Returns the run to ask in. */
async function openRun(address: ServiceAddress, opening: RunOpening): Promise<string> {
  const { parent, run_id } = opening;
  let opened = await perform(address, "open_run", {}, opening);
  if (parent !== undefined && opened.status === 404) {
    const { parent: _, ...own } = opening;
    await openRun(address, { ...own, run_id: parent });
    opened = await perform(address, "open_run", {}, opening);
  }
  // A run has a maximum of children. Further sub-agents of the session act in its own run.
  if (parent !== undefined && opened.status === 400) return parent;
  // Another call of the same session may have opened the run in the meantime.
  if (opened.status !== 201 && opened.status !== 409) throw refused(opened);
  return run_id;
}

const STRANGER =
  "does not answer like svc: it returned no decision; check the URL (server in the hook's settings)";

function isDecided(body: unknown): body is AnsweredDecision {
  if (!isRecord(body)) return false;
  const { decision, step, reasons } = body;
  if (decision === "block") return Array.isArray(reasons) && reasons.length > 0;
  return (decision === "allow" || decision === "would_block") && Number.isInteger(step);
}

export async function reportOutcome(
  address: ServiceAddress,
  run: string,
  step: number,
  outcome: object,
): Promise<void> {
  const reply = await perform(address, "outcome", { id: run, n: String(step) }, outcome);
  // The outcome was already reported, so nothing is missing.
  if ((reply.status !== 200 && reply.status !== 409) || !isRecord(reply.body)) throw refused(reply);
}

/** Whether the service deleted the run. Throws if it gives no answer that is certain. */
export async function isRunDeleted(address: ServiceAddress, run: string): Promise<boolean> {
  const { status, body } = await perform(address, "get_run", { id: run });
  if (status === 200 && isRecord(body)) return false;
  if (status === 404 && isRecord(body) && body["error"] === `unknown run ${run}`) return true;
  throw refused({ status, body });
}

/** Salt and signatures of a request, for the approvers file. */
export async function readSignatures(address: ServiceAddress, request: string): Promise<unknown> {
  const { status, body } = await perform(address, "get_signatures", { id: request });
  return status === 200 ? body : undefined;
}

/** Longest wait of one request that the service allows. */
const WAIT_S = 60;
/** Time for the answer itself. */
const ANSWER_SLACK_MS = 2_000;

/**
 * Waits until a person decides the request. Returns its status, or null if it is still open when the time is over, and
 * if the service cannot say.
 */
export async function awaitApproval(
  address: ServiceAddress,
  request: string,
  ms: number,
  signal: AbortSignal,
): Promise<string | null> {
  const until = performance.now() + ms;
  for (;;) {
    const left = until - performance.now();
    if (left <= 0 || signal.aborted) return null;
    const wait = Math.min(WAIT_S, Math.max(1, Math.floor(left / 1_000)));
    const path = `${pathOf("get_approval", { id: request })}?wait=${wait}`;
    const asked = { method: "GET", path, patience_ms: wait * 1_000 + ANSWER_SLACK_MS, signal } as const;
    // Over HTTP: the service notices when the hook stops waiting.
    const { status, body } = await send(address, asked).catch((error: unknown) => {
      if (signal.aborted) return { status: 0, body: null };
      throw error;
    });
    const found = status === 200 && isRecord(body) ? body["status"] : null;
    if (typeof found !== "string") return null;
    if (!/^(?:pending|escalated)$/.test(found)) return found;
  }
}

/** Reports the coding agents of this machine. */
export async function reportMachine(address: ServiceAddress, agents: readonly object[]): Promise<void> {
  const reply = await perform(address, "report_agents", {}, { agents });
  if (reply.status !== 200) throw refused(reply);
}

/** Reports what a transcript names. A run that does not exist had no call. */
export async function reportCalls(
  address: ServiceAddress,
  run: string,
  source: string,
  calls: readonly object[],
): Promise<void> {
  const reply = await perform(address, "reconcile", { id: run }, { source, calls });
  if (reply.status === 404 && calls.length === 0) return;
  if (reply.status !== 200) throw refused(reply);
}

function refused({ status, body }: Reply): Error {
  const said = isRecord(body) ? body["error"] : undefined;
  if (typeof said === "string") return new Error(`the service answered ${status}: ${said}`);
  return new Error(`the service answered ${status}, but not in the form of svc; check its URL`);
}

interface ServiceRequest {
  method: "GET" | "POST";
  path: string;
  body?: object;
  patience_ms: number;
  /** Ends the request early. */
  signal?: AbortSignal;
}

const pathOf = (operation: keyof typeof HOOK_ROUTES, params: Record<string, string>): string =>
  HOOK_ROUTES[operation]
    .split(" ")[1]!
    .replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name]!));

async function perform(
  address: ServiceAddress,
  operation: keyof typeof HOOK_ROUTES,
  params: Record<string, string>,
  body?: object,
): Promise<Reply> {
  const sent = body === undefined ? {} : { body };
  const told = await address.stream
    ?.ask({ operation, params, ...sent }, { timeout_ms: PATIENCE_MS })
    .catch((error: unknown) => {
      throw new ServiceUnreachable(error instanceof Error ? error.message : String(error));
    });
  if (told != null) return told;
  const method = HOOK_ROUTES[operation].startsWith("GET ") ? "GET" : "POST";
  return send(address, { method, path: pathOf(operation, params), ...sent, patience_ms: PATIENCE_MS });
}

async function send({ server, key }: ServiceAddress, asked: ServiceRequest): Promise<Reply> {
  const { method, path, body, patience_ms, signal } = asked;
  const url = new URL(server + path);
  // Loaded on use, because it costs more than the rest of the hook together.
  const request = url.protocol === "https:" ? (await import("node:https")).request : plainRequest;
  const sent = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
  return new Promise((resolve, reject) => {
    const fail = (why: string) => reject(new ServiceUnreachable(why));
    const call = request(
      url,
      {
        method,
        agent: false,
        // Overrides NODE_TLS_REJECT_UNAUTHORIZED.
        rejectUnauthorized: true,
        headers: {
          authorization: `Bearer ${key}`,
          ...(sent === undefined
            ? {}
            : { "content-type": "application/json", "content-length": sent.length }),
        },
      },
      (answer) => readReply(answer, { resolve, fail, stop: () => void call.destroy() }),
    );
    const stop = (why: string) => {
      fail(why);
      call.destroy();
    };
    // Total time limit, and not an idle timeout: an answer that trickles in could outlast the client's patience.
    setTimeout(() => stop(`no answer within ${patience_ms / 1000} s`), patience_ms).unref();
    signal?.addEventListener("abort", () => stop("the call is over"), { once: true });
    call.on("error", (error: NodeJS.ErrnoException) => fail(error.code ?? error.message));
    call.end(sent);
  });
}

interface ReplyWays {
  resolve(reply: Reply): void;
  fail(why: string): void;
  stop(): void;
}

function readReply(answer: IncomingMessage, { resolve, fail, stop }: ReplyWays): void {
  const parts: Buffer[] = [];
  let size = 0;
  answer.on("data", (part: Buffer) => {
    parts.push(part);
    size += part.length;
    if (size <= LARGEST_ANSWER) return;
    fail(`its answer is longer than ${LARGEST_ANSWER} bytes`);
    stop();
  });
  answer.on("error", (error) => fail(error.message));
  answer.on("end", () => {
    try {
      resolve({ status: answer.statusCode ?? 0, body: JSON.parse(Buffer.concat(parts).toString()) });
    } catch {
      resolve({ status: answer.statusCode ?? 0, body: null });
    }
  });
}
