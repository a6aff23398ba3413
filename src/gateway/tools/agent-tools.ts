/** Tools for agents: the undo plan of their run, a preview of a call, and waiting for a decision. */
import * as z from "zod";
import type { ApprovalDoc } from "../../govern/approvals/approval.ts";
import { isPlanId } from "../../govern/plans/plan.ts";
import { invalidError, SvcError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { cutText } from "../../kernel/text/truncate.ts";
import { getApproval, withdrawRequest } from "../../operations/approvals/approvals.ts";
import { proposePlan, withdrawPlan } from "../../operations/plans.ts";
import { getOwnRollbackPlan } from "../../operations/rollback/rollback.ts";
import { boundedText, givenId, runId, toolSchema as toolName } from "../../operations/schemas.ts";
import { previewOwnCallImpact } from "../../operations/simulate/impact.ts";
import { connectUpstream } from "../../operations/upstreams/upstreams.ts";
import { type OwnTool, ownTool, performOperation } from "./own-tool.ts";
import { withProgress } from "./progress.ts";

const DEFAULT_WAIT_S = 30;
/** Most clients time out after a minute, so the answer must arrive earlier. */
const LONGEST_WAIT_S = 45;

const planRollback = ownTool({
  name: "svc.plan_rollback",
  description:
    "Show what undoing a run would do, step by step. Changes nothing. Without run_id: the run of this session.",
  role: "agent",
  read_only: true,
  input: z.strictObject({ run_id: runId.optional() }),
  async run(call, { run_id = call.run?.run_id }) {
    if (run_id === undefined) throw invalidError("run_id: required, because this connection has no run");
    try {
      return await performOperation(call, getOwnRollbackPlan, { run_id });
    } catch (error) {
      // The session's run is stored with its first call. Before that there is nothing to undo.
      const unstored = error instanceof SvcError && error.code === "not_found" && run_id === call.run?.run_id;
      if (unstored) return { run_id, actions: [], fully_reversible: true };
      throw error;
    }
  },
});

export const previewImpactTool = ownTool({
  name: "svc.preview_impact",
  description: "Show the decision on a call and what the call would change, without making it.",
  role: "agent",
  read_only: true,
  input: z.strictObject({ tool: toolName, arguments: z.record(z.string(), z.unknown()).optional() }),
  async run(call, input) {
    const given = { tool: input.tool, args: (input.arguments ?? {}) as JsonObject };
    const [{ tool, args } = given] = await call.services.asMade([given]);
    return performOperation(call, previewOwnCallImpact, { tool, args });
  },
});

const NEXT: Partial<Record<ApprovalDoc["status"], string>> = {
  approved: "approved: send the same call again, with the same arguments",
  pending: "still open: ask again, or come back later",
  escalated: "still open: ask again, or come back later",
  denied: "denied: do not repeat the call",
  expired: "expired: repeating the call opens a new request",
  consumed: "already used: repeating the call opens a new request",
};

/** The agent uses the offer by sending its arguments. They are approved, or wait for further votes. */
const OFFERED = "denied, with an offer: send the call with offer.args instead, exactly as they are";

const awaitApproval = ownTool({
  name: "svc.await_approval",
  description: "Wait for a person's decision on an approval request, and answer as soon as there is one.",
  role: "agent",
  read_only: true,
  input: z.strictObject({
    approval_id: givenId("apr_<uuid>"),
    seconds: z
      .int()
      .min(0)
      .optional()
      .describe(`Seconds to wait. Default: ${DEFAULT_WAIT_S}. Longer waits end after ${LONGEST_WAIT_S}.`),
  }),
  async run(call, { approval_id, seconds = DEFAULT_WAIT_S }) {
    const wait = Math.min(seconds, LONGEST_WAIT_S);
    const approval = await withProgress(call.services.app.core.env, call.progress, wait, () =>
      performOperation(call, getApproval, { approval_id, wait }),
    );
    const next = approval.offer == null || approval.offer.args === null ? NEXT[approval.status] : OFFERED;
    return { ...approval, next: next ?? "" };
  },
});

const withdrawTool = ownTool({
  name: "svc.withdraw",
  description:
    "Withdraw a pending approval request (apr_...) of your own run, or a plan (pln_...) that has not ended.",
  role: "agent",
  read_only: false,
  input: z.strictObject({
    approval_id: givenId("apr_<uuid>").optional(),
    plan_id: givenId("pln_<uuid>").optional(),
  }),
  async run(call, { approval_id, plan_id }) {
    const id = approval_id ?? plan_id;
    if (id === undefined || (approval_id !== undefined && plan_id !== undefined))
      throw invalidError("approval_id: give either the request or the plan to withdraw");
    if (plan_id !== undefined || isPlanId(id)) return performOperation(call, withdrawPlan, { plan_id: id });
    return performOperation(call, withdrawRequest, { approval_id: id });
  },
});

const proposePlanTool = ownTool({
  name: "svc.propose_plan",
  description:
    "Propose calls before making them, so that a person can decide them together. Then make them in this order, with exactly these arguments.",
  role: "agent",
  read_only: false,
  input: z.strictObject({
    reason: boundedText(SERVICE_LIMITS.reason_chars),
    calls: z
      .array(
        z.strictObject({
          tool: toolName,
          arguments: z.record(z.string(), z.unknown()).optional(),
          args: z
            .record(z.string(), z.unknown())
            .optional()
            .describe("same as arguments, in the spelling of the HTTP API"),
          reason: boundedText(SERVICE_LIMITS.reason_chars).optional(),
          depends_on: z.array(z.int().min(0)).max(SERVICE_LIMITS.plan_calls).optional(),
        }),
      )
      .min(1)
      .max(SERVICE_LIMITS.plan_calls),
  }),
  async run(call, { reason, calls }) {
    if (call.run === null) throw invalidError("run: this connection has no run; name one with Svc-Run-Id");
    const twice = calls.findIndex((one) => one.args !== undefined && one.arguments !== undefined);
    if (twice >= 0) throw invalidError(`calls[${twice}]: give either arguments or args`);
    await call.run.open();
    const made = await call.services.asMade(
      calls.map(({ tool, arguments: named, args = named ?? {} }) => ({ tool, args: args as JsonObject })),
    );
    const proposed = calls.map(({ arguments: _, args: __, ...rest }, i) => {
      const { reason: given, ...alone } = made[i]!;
      const said = cutText(given?.trim() ?? "", SERVICE_LIMITS.reason_chars);
      return { ...rest, ...alone, ...(said ? { reason: said } : {}) };
    });
    return performOperation(call, proposePlan, { run_id: call.run.run_id, reason, calls: proposed });
  },
});

/** Offered only by a gateway with upstreams that people connect. */
export const connectUpstreamTool = ownTool({
  name: "svc.connect_upstream",
  description:
    "Get a link at which the person connects a tool server that needs consent. Show them the link; it works once, for ten minutes.",
  role: "agent",
  read_only: false,
  input: z.strictObject({ upstream: boundedText(64).describe("Name of the tool server.") }),
  run: (call, input) => performOperation(call, connectUpstream, input),
});

export const AGENT_TOOLS: readonly OwnTool[] = [
  planRollback,
  previewImpactTool,
  awaitApproval,
  withdrawTool,
  proposePlanTool,
  connectUpstreamTool,
];
