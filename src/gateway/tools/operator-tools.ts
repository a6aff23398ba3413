/** The operator endpoint: seeing runs and requests, deciding, undoing, exporting, stopping. */
import * as z from "zod";
import { approve, deny, getCard, listApprovals, shownCardHash } from "../../app/operations/approvals.ts";
import { halt, resume } from "../../app/operations/halts.ts";
import { approvePlan, denyPlan, getPlan } from "../../app/operations/plans.ts";
import { overwriteFields, overwriteOf, plan, rollbackHere } from "../../app/operations/rollback.ts";
import { givenId, note, personsReason, runId } from "../../app/operations/schemas.ts";
import { searchRuns } from "../../app/operations/search.ts";
import type { JsonObject } from "../../kernel/json.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { APPROVAL_STATUSES } from "../../model/approval.ts";
import { textResult } from "../result.ts";
import { previewImpactTool } from "./agent-tools.ts";
import { containTool } from "./contain-tool.ts";
import { exportEvidence } from "./evidence-tool.ts";
import { OwnResult, type OwnTool, operate, ownTool } from "./own-tool.ts";

const limit = z.int().min(1).max(LIMITS.page_max).optional();
const cursor = z.string().max(1_000).optional();

const listRuns = ownTool({
  name: "svc.list_runs",
  description: "List runs, newest first; attention: true for those that a person should look at.",
  role: "auditor",
  read_only: true,
  input: z.strictObject({
    attention: z.boolean().optional(),
    actor: z.string().max(256).optional(),
    limit,
    cursor,
  }),
  run: (call, input) => operate(call, searchRuns, input),
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
  run: (call, input) => operate(call, listApprovals, input),
});

const decisionInput = z.strictObject({
  approval_id: givenId("apr_<uuid>"),
  note: note.optional(),
  card_hash: shownCardHash.optional(),
});

const approveAction = ownTool({
  name: "svc.approve_action",
  description: "Approve a request.",
  // A delegate without the role may decide too; the operation checks.
  role: "auditor",
  read_only: false,
  input: decisionInput,
  run: (call, input) => operate(call, approve, input),
});

const denyAction = ownTool({
  name: "svc.deny_action",
  description: "Deny a request; with offer, approve other arguments of the same tool in its place.",
  role: "auditor",
  read_only: false,
  input: decisionInput.extend({
    offer: z.strictObject({ args: z.record(z.string(), z.unknown()) }).optional(),
  }),
  run: (call, input) => operate(call, deny, input),
});

const showApproval = ownTool({
  name: "svc.show_approval",
  description:
    "Show a request's card: what the call would do with which values, why a person is asked, the risk and the way back. Give its card_hash to the decision.",
  // Delegates see it, too; the operation checks whose vote counts.
  role: "auditor",
  read_only: true,
  input: z.strictObject({ approval_id: givenId("apr_<uuid>") }),
  async run(call, input) {
    const card = await operate(call, getCard, input);
    const hash = card.card_hash === null ? "" : `\n\nCard      ${card.card_hash}`;
    return new OwnResult(textResult(`${card.text}${hash}`, card as unknown as JsonObject));
  },
});

const planRollback = ownTool({
  name: "svc.plan_rollback",
  description: "Show what undoing a run would do, step by step. Changes nothing.",
  role: "auditor",
  read_only: true,
  input: z.strictObject({ run_id: runId }),
  run: (call, input) => operate(call, plan, input),
});

const executeRollbackTool = ownTool({
  name: "svc.execute_rollback",
  description:
    "Undo the standing steps of a run through the upstream tools, newest first. Without confirm: true it only shows the plan.",
  role: "operator",
  read_only: false,
  input: z.strictObject({
    run_id: runId,
    confirm: z.boolean().optional(),
    approve_compensations: z.boolean().optional(),
    ...overwriteFields,
  }),
  async run(call, { confirm, ...input }) {
    if (confirm === true) return operate(call, rollbackHere, input);
    overwriteOf(input.overwrite, input);
    return { dry_run: true, plan: await operate(call, plan, { run_id: input.run_id }) };
  },
});

const haltTool = ownTool({
  name: "svc.halt",
  description: "Halt: block every new call, everywhere, until it is lifted. Rollbacks keep working.",
  role: "admin",
  read_only: false,
  input: z.strictObject({ reason: personsReason }),
  run: (call, input) => operate(call, halt, input),
});

const resumeTool = ownTool({
  name: "svc.resume",
  description: "Lift every halt.",
  role: "admin",
  read_only: false,
  input: z.strictObject({}),
  run: (call) => operate(call, resume, {}),
});

/** The same preview, for those who may read anything. */
const operatorPreview: OwnTool = { ...previewImpactTool, role: "auditor" };

const planId = z.strictObject({ plan_id: givenId("pln_<uuid>") });

const showPlan = ownTool({
  name: "svc.show_plan",
  description: "Show a plan call by call, with the cards of those that you may decide.",
  role: "auditor",
  read_only: true,
  input: planId,
  run: (call, input) => operate(call, getPlan, input),
});

const planDecision = (name: string, description: string, op: typeof approvePlan) =>
  ownTool({
    name,
    description,
    // A delegate without the role may decide too; the operation checks.
    role: "auditor",
    read_only: false,
    input: planId.extend({ note: note.optional(), card_hash: shownCardHash.optional() }),
    run: (call, input) => operate(call, op, input),
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
