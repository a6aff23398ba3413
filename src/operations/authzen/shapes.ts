/**
 * Requests and answers of the AuthZEN Authorization API 1.0 and of its access request profile. Members that the
 * standard does not define are ignored, as it demands.
 */
import * as z from "zod";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import { anyJson, boundedText, runId, toolSchema } from "../schemas.ts";

const name = boundedText(256);

const typeName = name.meta({ description: "type as the standard demands; it decides nothing" });

export const accessSubject = z
  .looseObject({ type: typeName, id: name.meta({ description: "name of the caller" }) })
  .meta({ description: "the caller" });
export const accessAction = z
  .looseObject({ name: toolSchema.meta({ description: "name of the tool" }) })
  .meta({ description: "the tool, under `name`" });
export const accessResource = z
  .looseObject({
    type: typeName,
    id: boundedText(1_024).meta({ description: "id as the standard demands; it decides nothing" }),
    properties: anyJson.optional().meta({ description: "arguments of the call" }),
  })
  .meta({ description: "the arguments of the call, under `properties`" });
export const accessContext = z
  .looseObject({
    run_id: runId.optional(),
    reason: boundedText(SERVICE_LIMITS.reason_chars).optional(),
    commit: z.boolean().optional().meta({ description: "true to make the intent instead of a preview" }),
  })
  .meta({ description: "`run_id`, `reason`, and `commit` for the intent itself" });

export const evaluationInput = z.looseObject({
  subject: accessSubject,
  action: accessAction,
  resource: accessResource,
  context: accessContext.optional(),
});
export type EvaluationInput = z.output<typeof evaluationInput>;

export const EVALUATIONS_SEMANTICS = ["execute_all", "deny_on_first_deny", "permit_on_first_permit"] as const;

const TASK_STATUSES = ["pending", "approved", "denied", "expired"] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];

const accessTask = z.strictObject({
  id: z.string(),
  status: z.enum(TASK_STATUSES),
  status_endpoint: z.string(),
  expires_at: z.string(),
});

const requestable = z.strictObject({
  requestable: z.literal(true),
  endpoint: z.string(),
  reason: z.string(),
  expires_at: z.string(),
});

export const evaluationView = z.strictObject({
  decision: z.boolean(),
  context: z.strictObject({
    reasons: z.array(z.string()),
    hints: z.array(z.string()).optional(),
    step: z.int().optional(),
    before: z.unknown().optional(),
    evaluation_id: z.string().optional(),
    evaluated_at: z.string().optional(),
    access_request: requestable.optional(),
    task: accessTask.optional(),
    error: z.strictObject({ status: z.int(), message: z.string() }).optional(),
  }),
});
export type EvaluationView = z.output<typeof evaluationView>;

export const taskView = z.strictObject({
  task: accessTask,
  result: z
    .strictObject({
      mode: z.literal("reevaluate"),
      approval: z.strictObject({
        id: z.string(),
        approved_at: nullableSchema(z.string()),
        approved_until: z.string(),
      }),
    })
    .optional(),
});
export type TaskView = z.output<typeof taskView>;
