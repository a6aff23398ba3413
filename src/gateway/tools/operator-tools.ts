/** Tools of the operator endpoint: list runs and requests, decide, undo, export and halt. */

import * as z from "zod";
import { APPROVAL_STATUSES } from "../../govern/approvals/approval.ts";
import { asJsonObject } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import {
  approveRequest,
  denyRequest,
  getCard,
  listApprovals,
  shownCardHash,
} from "../../operations/approvals/approvals.ts";
import { haltCalls, liftHalts } from "../../operations/halts.ts";
import { approvePlan, denyPlan, getPlan } from "../../operations/plans.ts";
import {
  chosenSteps,
  getRollbackPlan,
  overwriteFields,
  overwriteOf,
  rollbackHere,
} from "../../operations/rollback/rollback.ts";
import { searchRuns } from "../../operations/runs/search.ts";
import { givenId, noteSchema, personsReason, runId } from "../../operations/schemas.ts";
import { textResult } from "../call/result.ts";
import { previewImpactTool } from "./agent-tools.ts";
import { containTool } from "./contain-tool.ts";
import { exportEvidence } from "./evidence-tool.ts";
import { OwnResult, type OwnTool, ownTool, performOperation } from "./own-tool.ts";

const limit = z.int().min(1).max(SERVICE_LIMITS.page_max).optional();
const cursor = z.string().max(1_000).optional();

const listRuns = ownTool({
  name: "svc.list_runs",
  description: "List runs, newest first; attention: true for runs that need attention.",
  role: "auditor",
  read_only: true,
  input: z.strictObject({
    attention: z.boolean().optional(),
    actor: z.string().max(256).optional(),
    limit,
    cursor,
  }),
  run: (call, input) => performOperation(call, searchRuns, input),
});

const listApprovalsTool = ownTool({
  name: "svc.list_approvals",
  description: "List approval requests, newest first; argument names are shown, never values.",
  role: "auditor",
  read_only: true,
  input: z.strictObject({
    status: z.enum(APPROVAL_STATUSES).optional(),
    run_id: runId.optional(),
    limit,
    cursor,
  }),
  run: (call, input) => performOperation(call, listApprovals, input),
});

const decisionInput = z.strictObject({
  approval_id: givenId("apr_<uuid>"),
  note: noteSchema.optional(),
  card_hash: shownCardHash.optional(),
});

const approveAction = ownTool({
  name: "svc.approve_action",
  description: "Approve a request.",
  // A delegate without the role can also decide. The operation checks that.
  role: "auditor",
  read_only: false,
  input: decisionInput,
  run: (call, input) => performOperation(call, approveRequest, input),
});

const denyAction = ownTool({
  name: "svc.deny_action",
  description: "Deny a request; with offer, approve other arguments of the same tool instead.",
  role: "auditor",
  read_only: false,
  input: decisionInput.extend({
    offer: z.strictObject({ args: z.record(z.string(), z.unknown()) }).optional(),
  }),
  run: (call, input) => performOperation(call, denyRequest, input),
});

const showApproval = ownTool({
  name: "svc.show_approval",
  description:
    "Show a request's card: the call with its values, why it needs approval, the risk, and how to undo it. Pass its card_hash to the decision.",
  // Delegates can see the card too. The operation checks whose vote counts.
  role: "auditor",
  read_only: true,
  input: z.strictObject({ approval_id: givenId("apr_<uuid>") }),
  async run(call, input) {
    const card = (await performOperation(call, getCard, input)).read();
    const hash = card.card_hash === null ? "" : `\n\nCard      ${card.card_hash}`;
    return new OwnResult(textResult(`${card.text}${hash}`, asJsonObject(card)));
  },
});

const planRollback = ownTool({
  name: "svc.plan_rollback",
  description:
    "Show what undoing a run would do, step by step; dependents: true adds the calls of other runs that were built on it. Changes nothing.",
  role: "auditor",
  read_only: true,
  input: z.strictObject({
    run_id: runId,
    children: z.boolean().optional(),
    dependents: z.boolean().optional(),
  }),
  run: (call, input) => performOperation(call, getRollbackPlan, input),
});

const executeRollbackTool = ownTool({
  name: "svc.execute_rollback",
  description:
    "Undo the standing steps of a run through the upstream tools, newest first; with names steps of other runs to undo too. Without confirm: true it only shows the plan.",
  role: "operator",
  read_only: false,
  input: z.strictObject({
    run_id: runId,
    confirm: z.boolean().optional(),
    approve_compensations: z.boolean().optional(),
    children: z.boolean().optional(),
    with: chosenSteps.optional(),
    ...overwriteFields,
  }),
  async run(call, { confirm, ...input }) {
    if (confirm === true) return performOperation(call, rollbackHere, input);
    overwriteOf(input.overwrite, input);
    const { run_id, children, with: chosen } = input;
    const asked = { run_id, children, ...(chosen === undefined ? {} : { dependents: true }) };
    return { dry_run: true, plan: await performOperation(call, getRollbackPlan, asked) };
  },
});

const haltTool = ownTool({
  name: "svc.halt",
  description: "Halt: block every new call, everywhere, until it is lifted. Rollbacks keep working.",
  role: "admin",
  read_only: false,
  input: z.strictObject({ reason: personsReason }),
  run: (call, input) => performOperation(call, haltCalls, input),
});

const resumeTool = ownTool({
  name: "svc.resume",
  description: "Lift every halt.",
  role: "admin",
  read_only: false,
  input: z.strictObject({}),
  run: (call) => performOperation(call, liftHalts, {}),
});

/** The same preview for callers who can read everything. */
const operatorPreview: OwnTool = { ...previewImpactTool, role: "auditor" };

const planId = z.strictObject({ plan_id: givenId("pln_<uuid>") });

const showPlan = ownTool({
  name: "svc.show_plan",
  description: "Show a plan call by call, with the cards of the calls that you can decide.",
  role: "auditor",
  read_only: true,
  input: planId,
  run: async (call, input) => (await performOperation(call, getPlan, input)).read(),
});

const planDecision = (name: string, description: string, op: typeof approvePlan) =>
  ownTool({
    name,
    description,
    // A delegate without the role can also decide. The operation checks that.
    role: "auditor",
    read_only: false,
    input: planId.extend({ note: noteSchema.optional(), card_hash: shownCardHash.optional() }),
    run: (call, input) => performOperation(call, op, input),
  });

export const OPERATOR_TOOLS: readonly OwnTool[] = [
  listRuns,
  listApprovalsTool,
  showApproval,
  approveAction,
  denyAction,
  showPlan,
  planDecision("svc.approve_plan", "Approve a plan.", approvePlan),
  planDecision("svc.deny_plan", "Deny a plan.", denyPlan),
  planRollback,
  executeRollbackTool,
  exportEvidence,
  operatorPreview,
  haltTool,
  resumeTool,
  containTool,
];
