/** What an agent may ask about itself: its plan of undo, what a call would do, and a decision it waits for. */
import * as z from "zod";
import { getApproval, withdraw } from "../../app/operations/approvals.ts";
import { impactOwn } from "../../app/operations/impact.ts";
import { proposePlan, withdrawPlan } from "../../app/operations/plans.ts";
import { planOwn } from "../../app/operations/rollback.ts";
import { givenId, runId, text, tool as toolName } from "../../app/operations/schemas.ts";
import { cutText } from "../../kernel/cut.ts";
import { invalid, SvcError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/json.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { ApprovalDoc } from "../../model/approval.ts";
import { isPlanId } from "../../model/plan.ts";
import { type OwnTool, operate, ownTool } from "./own-tool.ts";
import { tellingProgress } from "./progress.ts";

const DEFAULT_WAIT_S = 30;
/** Clients give up after a minute as a rule; an answer that says to ask again must come before. */
const LONGEST_WAIT_S = 45;

const planRollback = ownTool({
  name: "svc.plan_rollback",
  description:
    "Show what undoing a run would do, step by step. Changes nothing. Without run_id: the run of this session.",
  role: "agent",
  read_only: true,
  input: z.strictObject({ run_id: runId.optional() }),
  async run(call, { run_id = call.run?.run_id }) {
    if (run_id === undefined) throw invalid("run_id: which run? this connection has none of its own");
    try {
      return await operate(call, planOwn, { run_id });
    } catch (error) {
      // The session's own run is stored with its first call; before that there is nothing to undo.
      const unstored = error instanceof SvcError && error.code === "not_found" && run_id === call.run?.run_id;
      if (unstored) return { run_id, actions: [], fully_reversible: true };
      throw error;
    }
  },
});

export const previewImpactTool = ownTool({
  name: "svc.preview_impact",
  description: "Show what a call would be allowed to do and what it would touch, without making it.",
  role: "agent",
  read_only: true,
  input: z.strictObject({ tool: toolName, arguments: z.record(z.string(), z.unknown()).optional() }),
  async run(call, input) {
    const given = { tool: input.tool, args: (input.arguments ?? {}) as JsonObject };
    const [{ tool, args } = given] = await call.services.asMade([given]);
    return operate(call, impactOwn, { tool, args });
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

/** The offer is used by sending its arguments; they are approved, or wait for the others whose word it needs. */
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
      .describe(
        `How long to wait, ${DEFAULT_WAIT_S} unless given; more than ${LONGEST_WAIT_S} is cut to that.`,
      ),
  }),
  async run(call, { approval_id, seconds = DEFAULT_WAIT_S }) {
    const wait = Math.min(seconds, LONGEST_WAIT_S);
    const approval = await tellingProgress(call.services.app.core.env, call.progress, wait, () =>
      operate(call, getApproval, { approval_id, wait }),
    );
    const next = approval.offer == null || approval.offer.args === null ? NEXT[approval.status] : OFFERED;
    return { ...approval, next: next ?? "" };
  },
});

const withdrawTool = ownTool({
  name: "svc.withdraw",
  description:
    "Take back a request for approval (apr_...) of your own run that has not been decided yet, or a plan (pln_...) that has not ended.",
  role: "agent",
  read_only: false,
  input: z.strictObject({
    approval_id: givenId("apr_<uuid>").optional(),
    plan_id: givenId("pln_<uuid>").optional(),
  }),
  async run(call, { approval_id, plan_id }) {
    const id = approval_id ?? plan_id;
    if (id === undefined || (approval_id !== undefined && plan_id !== undefined))
      throw invalid("approval_id: give the request or the plan to take back, one of them");
    if (plan_id !== undefined || isPlanId(id)) return operate(call, withdrawPlan, { plan_id: id });
    return operate(call, withdraw, { approval_id: id });
  },
});

const proposePlanTool = ownTool({
  name: "svc.propose_plan",
  description:
    "Propose calls before making them, so that a person can decide them together. Then make them in this order, with exactly these arguments.",
  role: "agent",
  read_only: false,
  input: z.strictObject({
    reason: text(LIMITS.reason_chars),
    calls: z
      .array(
        z.strictObject({
          tool: toolName,
          arguments: z.record(z.string(), z.unknown()).optional(),
          args: z
            .record(z.string(), z.unknown())
            .optional()
            .describe("the same as arguments, as the HTTP API spells it"),
          reason: text(LIMITS.reason_chars).optional(),
          depends_on: z.array(z.int().min(0)).max(LIMITS.plan_calls).optional(),
        }),
      )
      .min(1)
      .max(LIMITS.plan_calls),
  }),
  async run(call, { reason, calls }) {
    if (call.run === null)
      throw invalid("run: this connection has no run of its own; name one with Svc-Run-Id");
    const twice = calls.findIndex((one) => one.args !== undefined && one.arguments !== undefined);
    if (twice >= 0) throw invalid(`calls[${twice}]: give arguments or args, one of them`);
    await call.run.open();
    const made = await call.services.asMade(
      calls.map(({ tool, arguments: named, args = named ?? {} }) => ({ tool, args: args as JsonObject })),
    );
    const proposed = calls.map(({ arguments: _, args: __, ...rest }, i) => {
      const { reason: given, ...alone } = made[i]!;
      const said = cutText(given?.trim() ?? "", LIMITS.reason_chars);
      return { ...rest, ...alone, ...(said ? { reason: said } : {}) };
    });
    return operate(call, proposePlan, { run_id: call.run.run_id, reason, calls: proposed });
  },
});

export const AGENT_TOOLS: readonly OwnTool[] = [
  planRollback,
  previewImpactTool,
  awaitApproval,
  withdrawTool,
  proposePlanTool,
];
