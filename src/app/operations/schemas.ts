/** The shapes of requests and answers that several operations share. */
import * as z from "zod";
import { LIMITS } from "../../kernel/limits.ts";
import { APPROVAL_STATUSES } from "../../model/approval.ts";
import { MODES, OUTCOMES, READERS, RUN_ID_FORM, STEP_STATUSES } from "../../model/run.ts";

export const text = (max: number) =>
  z.string().min(1, "must not be empty").max(max, `at most ${max} characters`);
/** Why a person does something, as it is kept on the ledger: spaces alone say nothing. */
export const personsReason = z
  .string()
  .regex(/\S/, "must not be empty")
  .max(LIMITS.reason_chars, `at most ${LIMITS.reason_chars} characters`);
export const tool = text(LIMITS.tool_chars).meta({ description: "the tool's name as its manifest has it" });
export const anyJson = z.unknown().refine((value) => value !== undefined, "is required");
export const note = z.string().max(LIMITS.note_chars, `at most ${LIMITS.note_chars} characters`);

export const runId = z
  .string()
  .regex(RUN_ID_FORM, "up to 128 letters, digits, '.', '_' or '-', the first of them a letter or digit");
/** The input of an operation on a run as a whole, and of one on a step of it. */
export const ofRun = z.strictObject({ run_id: runId });
export const ofStep = z.strictObject({ run_id: runId, step: z.int().min(0).max(Number.MAX_SAFE_INTEGER) });

/** An id that the service gave out: a well-formed text that is none of them is unknown rather than invalid. */
export const givenId = (form: string) =>
  z.string().regex(/^[\w.:-]{1,128}$/, `must be an id such as ${form}`);

const pageLimit = z.int().min(1).max(LIMITS.page_max);
/** What every listing that can grow takes. */
export const paging = { limit: pageLimit.optional(), cursor: z.string().max(500).optional() };

/** Of an operation that takes or answers nothing. */
export const noFields = z.strictObject({});

export const nullable = <T extends z.ZodType>(type: T) => z.union([type, z.null()]);

export const stepView = z.strictObject({
  step: z.int(),
  tool: z.string(),
  reason: z.string(),
  effect: nullable(z.string()),
  status: z.enum(STEP_STATUSES),
  depends_on: z.array(z.int()),
  compensation_tool: nullable(z.string()),
  handle: nullable(z.string()),
  error: nullable(z.string()),
  manifest_version: nullable(z.string()),
  risk_score: z.int(),
  args_hash: z.string(),
  result_hash: nullable(z.string()),
  intended_ms: z.int(),
  finished_ms: nullable(z.int()),
  before_by: z.enum(READERS).optional(),
  before_hash: z.string().optional(),
  after_hash: z.string().optional(),
  closes_ms: z.int().optional(),
});

export const runView = z.strictObject({
  run_id: z.string(),
  actor: z.string(),
  mode: z.enum(MODES),
  tenant: nullable(z.string()),
  environment: nullable(z.string()),
  reason: nullable(z.string()),
  scope: z.strictObject({ permissions: z.array(z.string()), seal: z.string() }),
  created_ms: z.int(),
  steps: z.array(stepView),
  unresolved: z.array(z.int()),
});

/** What is to be read before the call is made, and told with its outcome. */
export const beforeView = z.strictObject({
  tool: z.string(),
  arguments: z.unknown(),
  max_bytes: z.int().optional(),
  required: z.literal(false).optional(),
});
/** `hints` are there where the policy says what the agent can do instead. */
const why = { reasons: z.array(z.string()), hints: z.array(z.string()).optional() };

export const decisionView = z.union([
  z.strictObject({ decision: z.literal("allow"), step: z.int(), before: beforeView.optional() }),
  z.strictObject({
    decision: z.literal("would_block"),
    step: z.int(),
    ...why,
    before: beforeView.optional(),
  }),
  z.strictObject({ decision: z.literal("block"), ...why }),
]);

export const outcomeView = z.strictObject({ step: z.int(), status: z.enum(OUTCOMES) });

/** How people decided on a request or a plan. */
export const decidedFields = {
  votes: z.array(
    z.strictObject({
      by: z.string(),
      decision: z.enum(["approve", "deny"]),
      note: nullable(z.string()),
      at_ms: z.int(),
      for: nullable(z.string()),
    }),
  ),
  decided_by: nullable(z.string()),
  decided_ms: nullable(z.int()),
  note: nullable(z.string()),
};

export const approvalViewShape = z.strictObject({
  id: z.string(),
  run_id: z.string(),
  tool: z.string(),
  actor: z.string(),
  tenant: nullable(z.string()),
  args_hash: z.string(),
  arg_names: z.array(z.string()),
  reason: z.string(),
  rule: nullable(z.string()),
  status: z.enum(APPROVAL_STATUSES),
  requested_ms: z.int(),
  expires_ms: z.int(),
  approvers: z.strictObject({ groups: z.array(z.string()), quorum: z.int() }),
  ...decidedFields,
  kind: z.enum(["call", "compensation"]),
  step: nullable(z.int()),
  escalated_ms: nullable(z.int()),
  break_glass: z.boolean(),
});

export const haltView = z.strictObject({
  id: z.string(),
  reason: z.string(),
  scope: z.strictObject({
    tool: nullable(z.string()),
    actor: nullable(z.string()),
    tenant: nullable(z.string()),
    environment: nullable(z.string()),
  }),
  by: z.string(),
  created_ms: z.int(),
});
