/** The access request profile of AuthZEN: an approval request as a task, which the caller can poll. */
import * as z from "zod";
import type { ApprovalDoc, ApprovalStatus } from "../../govern/approvals/approval.ts";
import { hasRole } from "../../govern/roles.ts";
import { forbiddenError, invalidError, notFoundError } from "../../kernel/errors.ts";
import { keyedHash } from "../../kernel/hash.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { type ApiCaller, defineOperation } from "../pipeline/operation.ts";
import { publicUrl } from "./public-url.ts";
import {
  accessAction,
  accessContext,
  accessResource,
  accessSubject,
  type TaskStatus,
  type TaskView,
  taskView,
} from "./shapes.ts";

const TASKS: Readonly<Record<ApprovalStatus, TaskStatus>> = {
  pending: "pending",
  escalated: "pending",
  approved: "approved",
  consumed: "approved",
  denied: "denied",
  expired: "expired",
};

/** The task of an approval request. Approved tasks ask the caller to evaluate again. */
export function taskOf({ app }: Pick<ApiCaller, "app">, approval: ApprovalDoc): TaskView {
  const { id, decided_ms, expires_ms } = approval;
  const status = TASKS[approval.status];
  const expires_at = new Date(expires_ms).toISOString();
  const task = {
    id,
    status,
    status_endpoint: `${publicUrl(app)}/access/v1/requests/${id}`,
    expires_at,
  };
  if (status !== "approved") return { task };
  const approved_at = decided_ms === null ? null : new Date(decided_ms).toISOString();
  return { task, result: { mode: "reevaluate", approval: { id, approved_at, approved_until: expires_at } } };
}

/** Loads a request that the caller made. Auditors and above also see those of others. */
async function loadRequest(caller: ApiCaller, id: string): Promise<ApprovalDoc> {
  const { app, principal } = caller;
  const found = await app.core.store.get("approvals", id);
  const isOwn = found?.internal.principal === principal.id;
  if (found === undefined || !(isOwn || hasRole(principal, "auditor")))
    throw notFoundError(`unknown task ${id}`, "unknown_approval");
  return found;
}

export const getAccessRequest = defineOperation({
  id: "get_access_request",
  summary: "Poll the approval of a denied evaluation",
  role: "agent",
  any_role: true,
  within_tenant: true,
  input: z.strictObject({ task_id: z.string() }),
  output: taskView,
  errors: { not_found: "unknown task, or one of another agent" },
  async run(caller, { task_id }) {
    return taskOf(caller, await loadRequest(caller, task_id));
  },
});

export const requestAccess = defineOperation({
  id: "request_access",
  summary: "Get the task of a denied evaluation that waits for approval",
  role: "agent",
  within_tenant: true,
  input: z.looseObject({
    subject: accessSubject,
    action: accessAction,
    resource: accessResource,
    context: accessContext.optional(),
    denial: z
      .looseObject({
        evaluation_id: z.string().meta({ description: "`context.evaluation_id` of the denial" }),
      })
      .meta({ description: "the denied evaluation; its `evaluation_id` names the request" }),
  }),
  output: taskView,
  errors: { not_found: "unknown evaluation, or one of another agent" },
  async run(caller, { subject, action, resource, denial }) {
    const { app, principal } = caller;
    if (subject.id !== principal.name)
      throw forbiddenError("subject.id: you can request access only for yourself");
    const approval = await loadRequest(caller, denial.evaluation_id);
    const run = await app.core.store.get("runs", approval.run_id);
    const args = (resource.properties ?? {}) as JsonValue;
    const isSame =
      run !== undefined &&
      approval.internal.principal === principal.id &&
      approval.tool === action.name &&
      approval.args_hash === keyedHash(run.salt, args);
    if (!isSame)
      throw invalidError("denial.evaluation_id: belongs to an evaluation of another action or resource");
    return taskOf(caller, approval);
  },
});
