/** Request and response schemas shared by several operations. */
import * as z from "zod";
import {
  EFFECT_FINDINGS,
  OUTCOME_STATUSES,
  RUN_ID_FORM,
  RUN_MODES,
  STATE_READERS,
  STEP_STATUSES,
} from "../govern/runs/run.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import { nullableSchema } from "../rules/nullable-schema.ts";

export const boundedText = (max: number) =>
  z.string().min(1, "must not be empty").max(max, `at most ${max} characters`);
/** The reason a person gives, as recorded on the ledger. It cannot be blank. */
export const personsReason = z
  .string()
  .regex(/\S/, "must not be empty")
  .max(SERVICE_LIMITS.reason_chars, `at most ${SERVICE_LIMITS.reason_chars} characters`);
export const toolSchema = boundedText(SERVICE_LIMITS.tool_chars).meta({
  description: "the tool's name as its manifest has it",
});
export const anyJson = z.unknown().refine((value) => value !== undefined, "is required");
export const noteSchema = z
  .string()
  .max(SERVICE_LIMITS.note_chars, `at most ${SERVICE_LIMITS.note_chars} characters`);

export const runId = z
  .string()
  .regex(RUN_ID_FORM, "up to 128 letters, digits, '.', '_' or '-', the first of them a letter or digit");
/** Input of an operation on a run, and of one on a step. */
export const ofRun = z.strictObject({ run_id: runId });
export const ofStep = z.strictObject({ run_id: runId, step: z.int().min(0).max(Number.MAX_SAFE_INTEGER) });

/** An id issued by the service. A well-formed text that is not such an id is unknown rather than invalid. */
export const givenId = (form: string) =>
  z.string().regex(/^[\w.:-]{1,128}$/, `must be an id such as ${form}`);

const pageLimit = z.int().min(1).max(SERVICE_LIMITS.page_max);
/** Paging input of every listing that can grow. */
export const pagingFields = { limit: pageLimit.optional(), cursor: z.string().max(500).optional() };

/** Schema of an empty input or response. */
export const noFields = z.strictObject({});

export const stepView = z.strictObject({
  step: z.int(),
  tool: z.string(),
  reason: z.string(),
  effect: nullableSchema(z.string()),
  status: z.enum(STEP_STATUSES),
  depends_on: z.array(z.int()),
  compensation_tool: nullableSchema(z.string()),
  handle: nullableSchema(z.string()),
  error: nullableSchema(z.string()),
  manifest_version: nullableSchema(z.string()),
  risk_score: z.int(),
  args_hash: z.string(),
  result_hash: nullableSchema(z.string()),
  intended_ms: z.int(),
  finished_ms: nullableSchema(z.int()),
  before_by: z.enum(STATE_READERS).optional(),
  before_hash: z.string().optional(),
  after_hash: z.string().optional(),
  effect_check: z.enum(EFFECT_FINDINGS).optional(),
  effect_check_by: z.enum(STATE_READERS).optional(),
  closes_ms: z.int().optional(),
  line: z
    .string()
    .optional()
    .meta({ description: "the manifest's sentence on the call; absent if the manifest has none" }),
});

/** A text of a person: when it was added, and its length. */
export const givenView = z.strictObject({ at_ms: z.int(), chars: z.int() });

export const runView = z.strictObject({
  run_id: z.string(),
  actor: z.string(),
  /** Those who act for the actor, outermost first; absent if it acts itself. */
  acting: z.array(z.string()).optional(),
  mode: z.enum(RUN_MODES),
  tenant: nullableSchema(z.string()),
  environment: nullableSchema(z.string()),
  reason: nullableSchema(z.string()),
  scope: z.strictObject({ permissions: z.array(z.string()), seal: z.string() }),
  created_ms: z.int(),
  steps: z.array(stepView),
  unresolved: z.array(z.int()),
  attention: z.literal(true).optional().meta({ description: "present if a person should look at the run" }),
  /** Texts of people that the run was given; absent without them. */
  given: z.array(givenView).optional(),
  /** The run that opened this one, and the runs that this one opened; absent without them. */
  parent: z.string().optional(),
  children: z.array(z.string()).optional(),
});

/** The state to read before the call, and to report with its outcome. */
export const beforeView = z.strictObject({
  tool: z.string(),
  arguments: z.unknown(),
  max_bytes: z.int().optional(),
  required: z.literal(false).optional(),
});
/** The read to make after a success; its last answer is reported as `observed`. */
const effectCheckView = z.strictObject({
  tool: z.string(),
  args: z.record(z.string(), z.unknown()),
  expect: z.unknown(),
  retries: z.int(),
  backoff_ms: z.int(),
});
/** `hints` are present if the policy suggests an alternative to the agent. */
const why = { reasons: z.array(z.string()), hints: z.array(z.string()).optional() };

export const decisionView = z.union([
  z.strictObject({
    decision: z.literal("allow"),
    step: z.int(),
    before: beforeView.optional(),
    effect_check: effectCheckView.optional(),
    approval_id: z.string().optional().meta({ description: "the signed approval that the call used" }),
  }),
  z.strictObject({
    decision: z.literal("would_block"),
    step: z.int(),
    ...why,
    before: beforeView.optional(),
    effect_check: effectCheckView.optional(),
  }),
  z.strictObject({ decision: z.literal("block"), ...why }),
]);

export const outcomeView = z.strictObject({
  step: z.int(),
  status: z.enum(OUTCOME_STATUSES).meta({ description: "uncertain also if a declared effect check failed" }),
  effect_check: z.enum(EFFECT_FINDINGS).optional(),
});
