/** Connections to hosts that no manifest names: one call of `net.connect` each, passed on unread. */
import type { Socket } from "node:net";
import { pipeline } from "node:stream/promises";
import { wasNotSent } from "../egress/exchange.ts";
import { EgressRefusedError } from "../egress/refusal.ts";
import { messageOf } from "../kernel/errors.ts";
import { previewIntent } from "../operations/runs/intents-and-outcomes.ts";
import { type HttpOrigin, hostText } from "../rules/http/routes.ts";
import { headerProblem } from "../rules/http/target.ts";
import type { ProxyDeps } from "./deps.ts";
import { type AcceptedCall, acceptCall, type ProxyCaller } from "./governed.ts";
import { checkRequest, problemRefusal, type ReceivedRequest } from "./governed-request.ts";
import { endToEnd, ProxyRefusal, withoutHeaders } from "./wire.ts";

const CONNECT_TOOL = "net.connect";

/** A call without a decision: the operator named its host when starting the proxy. */
const UNRECORDED: AcceptedCall = { step: -1, end: async () => {} };

/** Connects after the decision. Throws a refusal. */
export async function connectThrough(
  deps: ProxyDeps,
  caller: ProxyCaller,
  { host, port }: HttpOrigin,
  client: Socket,
): Promise<Socket> {
  const gone = new AbortController();
  const onClose = () => gone.abort();
  client.once("close", onClose);
  const call = await acceptConnection(deps, caller, { host, port }, gone.signal);
  client.removeListener("close", onClose);
  try {
    const socket = await deps.exchange.connect(host, port);
    await call.end({ status: "succeeded", result: { connected: true } });
    return socket;
  } catch (error) {
    await call.end({ status: "failed", error: messageOf(error) });
    throw asAnswer(error);
  }
}

const notAllowed = (refusal: string): ProxyRefusal =>
  new ProxyRefusal("forbidden", `${refusal}; --allow-host and allow_hosts can name it`, {
    headers: { "svc-decision": "block" },
  });

/** What the agent reads of a connection that failed after its decision. */
const asAnswer = (error: unknown): unknown =>
  error instanceof EgressRefusedError ? notAllowed(error.refusal.message) : error;

async function acceptConnection(
  deps: ProxyDeps,
  caller: ProxyCaller,
  args: { host: string; port: number },
  gone: AbortSignal,
): Promise<AcceptedCall> {
  // The name is resolved after the decision: a lookup alone can carry data out.
  const refusal = deps.exchange.refusal(args.host);
  if (refusal !== null) throw notAllowed(refusal);
  const reason = `connect to ${args.host}`;
  if (deps.allow_hosts.includes(args.host)) {
    await caller.open();
    const input = { run_id: caller.run_id, tool: CONNECT_TOOL, args, reason };
    const { decision } = await caller.perform(previewIntent, input);
    // The operator named the host at the start, so no approver is asked. Denials, halts and the approvers file hold.
    const isSigned = (await deps.rules.guard?.requires(CONNECT_TOOL)) === true;
    if (decision === "needs_approval" && !isSigned) return UNRECORDED;
  }
  return acceptCall(deps.rules, caller, { tool: CONNECT_TOOL, args, reason, gone });
}

/** Passes one plain request and its answer through. */
export async function passRequest(deps: ProxyDeps, received: ReceivedRequest): Promise<void> {
  const { request, response, origin, caller, target } = received;
  const problem = headerProblem(request.rawHeaders);
  if (problem !== null) throw problemRefusal(problem);
  checkRequest(received);
  const gone = new AbortController();
  const onClose = () => gone.abort();
  response.once("close", onClose);
  const { host, port } = origin;
  const call = await acceptConnection(deps, caller, { host, port }, gone.signal);
  response.removeListener("close", onClose);
  try {
    const length = request.headers["content-length"];
    const isChunked = request.headers["transfer-encoding"] !== undefined;
    const answer = await deps.exchange.send({
      ...origin,
      method: request.method!,
      target,
      headers: [
        ["Host", hostText(origin)],
        ...withoutHeaders(endToEnd(request.rawHeaders), "host"),
        ...(isChunked ? [["Transfer-Encoding", "chunked"]] : []),
      ].flat(),
      body: length !== undefined || isChunked ? request : undefined,
    });
    await call.end({ status: "succeeded", result: { connected: true } });
    response.writeHead(answer.status, endToEnd(answer.headers).flat());
    await pipeline(answer.body, response);
  } catch (error) {
    if (response.headersSent) response.destroy();
    else await call.end({ status: wasNotSent(error) ? "failed" : "uncertain", error: messageOf(error) });
    throw asAnswer(error);
  }
}
