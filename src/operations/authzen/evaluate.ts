/**
 * Decisions over the AuthZEN Authorization API 1.0: the subject is the caller, the action a tool, the properties of the
 * resource its arguments. An evaluation previews the decision and leaves nothing, unless it commits.
 */
import * as z from "zod";
import { pendingApprovalId } from "../../govern/approvals/approval.ts";
import { type CallerPrincipal, hasRole, tenantBinding } from "../../govern/roles.ts";
import { ERROR_KINDS, forbiddenError, invalidError, SvcError } from "../../kernel/errors.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { dispatchOperation } from "../pipeline/dispatch.ts";
import { type ApiCaller, defineOperation, type ResponseOf } from "../pipeline/operation.ts";
import { describeIssues } from "../pipeline/validation-messages.ts";
import { previewIntent, submitIntent } from "../runs/intents-and-outcomes.ts";
import { previewImpact } from "../simulate/impact.ts";
import { publicUrl } from "./public-url.ts";
import {
  accessAction,
  accessContext,
  accessResource,
  accessSubject,
  EVALUATIONS_SEMANTICS,
  type EvaluationInput,
  type EvaluationView,
  evaluationInput,
  evaluationView,
} from "./shapes.ts";
import { taskOf } from "./tasks.ts";

const MAX_EVALUATIONS = 100;
/** Reason of a preview that gives none. No record holds it. */
const PREVIEW_REASON = "preview";

const idempotency_key = z.string().optional();

export const evaluateAccess = defineOperation({
  id: "evaluate_access",
  summary: "Decide a call over AuthZEN; with `context.commit` it is the intent",
  role: "agent",
  any_role: true,
  within_tenant: true,
  input: evaluationInput.extend({ idempotency_key }),
  output: evaluationView,
  errors: { not_found: "unknown run, or another agent's" },
  run: (caller, { idempotency_key: key, ...asked }) => evaluate(caller, asked, key),
});

export const evaluateAccesses = defineOperation({
  id: "evaluate_accesses",
  summary: "Decide up to 100 calls over AuthZEN, in order",
  role: "agent",
  any_role: true,
  within_tenant: true,
  input: z.looseObject({
    subject: accessSubject.optional(),
    action: accessAction.optional(),
    resource: accessResource.optional(),
    context: accessContext.optional(),
    options: z
      .looseObject({
        evaluations_semantic: z
          .enum(EVALUATIONS_SEMANTICS)
          .optional()
          .meta({ description: "which evaluations run; the default is all" }),
      })
      .optional()
      .meta({ description: "options of the standard" }),
    evaluations: z
      .array(z.record(z.string(), z.unknown()))
      .max(MAX_EVALUATIONS, `at most ${MAX_EVALUATIONS} evaluations`)
      .optional()
      .meta({ description: "evaluations; each member replaces the default of its name" }),
  }),
  output: z.union([z.strictObject({ evaluations: z.array(evaluationView) }), evaluationView]),
  async run(caller, { evaluations = [], options, ...defaults }) {
    if (evaluations.length === 0) return evaluate(caller, readEvaluation(defaults));
    const semantic = options?.evaluations_semantic ?? "execute_all";
    const answers: EvaluationView[] = [];
    for (const one of evaluations) {
      const answer = await evaluateOne(caller, { ...defaults, ...one });
      answers.push(answer);
      if (semantic === "deny_on_first_deny" && !answer.decision) break;
      if (semantic === "permit_on_first_permit" && answer.decision) break;
    }
    return { evaluations: answers };
  },
});

/** One evaluation of several. Its failure is a denial with the error, and the others continue. */
async function evaluateOne(caller: ApiCaller, asked: unknown): Promise<EvaluationView> {
  try {
    return await evaluate(caller, readEvaluation(asked));
  } catch (error) {
    if (!(error instanceof SvcError) || error.code === "unavailable") throw error;
    const { message } = error;
    const status = ERROR_KINDS[error.code].http;
    return { decision: false, context: { reasons: [message], error: { status, message } } };
  }
}

function readEvaluation(asked: unknown): EvaluationInput {
  const parsed = evaluationInput.safeParse(asked);
  if (!parsed.success) throw invalidError(describeIssues(parsed.error, "body"));
  return parsed.data;
}

async function evaluate(
  caller: ApiCaller,
  { subject, action, resource, context = {} }: EvaluationInput,
  idempotency_key?: string,
): Promise<EvaluationView> {
  const { principal } = caller;
  const call = { tool: action.name, args: (resource.properties ?? {}) as JsonValue };
  const isCaller = subject.id === principal.name;
  if (context.commit === true) {
    if (!isCaller) throw notTheCaller("commit");
    return commit(caller, { ...call, ...context, idempotency_key });
  }
  if (isCaller && hasRole(principal, "agent")) return preview(caller, call, context);
  if (!hasRole(principal, "auditor")) throw notTheCaller("evaluate");
  if (context.run_id !== undefined)
    throw invalidError("context.run_id: only the agent of the run can preview in it; omit it");
  return previewFor(caller, { ...call, actor: subject.id, tenant: tenantBinding(principal) });
}

const notTheCaller = (verb: string): SvcError =>
  forbiddenError(`subject.id: you can ${verb} only for yourself; an auditor can preview for others`);

interface AskedCall {
  tool: string;
  args: JsonValue;
}

async function preview(
  caller: ApiCaller,
  call: AskedCall,
  { run_id, reason = PREVIEW_REASON }: NonNullable<EvaluationInput["context"]>,
): Promise<EvaluationView> {
  const { name, acting, tenant } = caller.principal;
  if (run_id === undefined) return previewFor(caller, { ...call, actor: name, acting, tenant });
  const seen = await dispatchOperation(previewIntent, caller, { ...call, run_id, reason });
  return { decision: seen.decision === "allow", context: { reasons: seen.reasons, ...hintsOf(seen) } };
}

async function previewFor(
  { app }: ApiCaller,
  asked: AskedCall & Pick<CallerPrincipal, "acting" | "tenant"> & { actor: string },
): Promise<EvaluationView> {
  const seen = await previewImpact(app, asked);
  return { decision: seen.decision === "allow", context: { reasons: seen.reasons, ...hintsOf(seen) } };
}

const hintsOf = ({ hints }: { hints?: readonly string[] | undefined }) =>
  hints === undefined || hints.length === 0 ? {} : { hints: [...hints] };

interface CommittedCall extends AskedCall {
  run_id?: string | undefined;
  reason?: string | undefined;
  idempotency_key: string | undefined;
}

async function commit(
  caller: ApiCaller,
  { tool, args, run_id, reason, idempotency_key }: CommittedCall,
): Promise<EvaluationView> {
  if (run_id === undefined) throw invalidError("context.run_id: a committed evaluation needs a run");
  if (reason === undefined) throw invalidError("context.reason: a committed evaluation needs a reason");
  const made = await dispatchOperation(submitIntent, caller, {
    run_id,
    tool,
    args,
    reason,
    ...(idempotency_key === undefined ? {} : { idempotency_key }),
  });
  return made.decision === "block" ? denied(caller, made) : permitted(made);
}

type Decided = ResponseOf<typeof submitIntent>;

function permitted(made: Exclude<Decided, { decision: "block" }>): EvaluationView {
  const reasons = made.decision === "allow" ? [] : [...made.reasons];
  const { step, before } = made;
  return { decision: true, context: { reasons, step, ...(before === undefined ? {} : { before }) } };
}

/** A denial that waits for approval names the endpoint to request access at, and the task to poll. */
async function denied(
  caller: ApiCaller,
  { reasons, hints }: Extract<Decided, { decision: "block" }>,
): Promise<EvaluationView> {
  const { app } = caller;
  const said = { reasons: [...reasons], ...hintsOf({ hints }) };
  const id = pendingApprovalId(reasons);
  const approval = id === null ? undefined : await app.core.store.get("approvals", id);
  if (id === null || approval === undefined) return { decision: false, context: said };
  const { task } = taskOf(caller, approval);
  return {
    decision: false,
    context: {
      ...said,
      evaluation_id: id,
      evaluated_at: new Date(app.core.env.now()).toISOString(),
      access_request: {
        requestable: true,
        endpoint: `${publicUrl(app)}/access/v1/requests`,
        reason: "approval_required",
        expires_at: task.expires_at,
      },
      task,
    },
  };
}
