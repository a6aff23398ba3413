/** The OpenAPI 3.1 document, made from the schemas that validate the requests and describe the answers. */
import { z } from "zod";
import type { Operation, RequestHeader } from "../app/operation.ts";
import { OPERATIONS } from "../app/operations/index.ts";
import { planView } from "../app/operations/rollback.ts";
import { approvalViewShape, decisionView, haltView, outcomeView, runView, stepView } from "../app/schemas.ts";
import { LIMITS } from "../kernel/limits.ts";
import { OPEN_PATHS } from "./openapi-open.ts";

export type JsonSchema = Record<string, unknown>;

/** What several operations answer with has a name of its own; anything else is named after its operation. */
const NAMED: Readonly<Record<string, z.ZodType>> = {
  Run: runView,
  Step: stepView,
  Decision: decisionView,
  Outcome: outcomeView,
  Approval: approvalViewShape,
  Halt: haltView,
  RollbackPlan: planView,
};

export const reference = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` });

export const errorResponse = (description: string): JsonSchema => ({
  description,
  content: { "application/json": { schema: reference("Error") } },
});

export function openApiDocument(version: string): JsonSchema {
  const bodies = new Components("input");
  const answers = new Components("output", NAMED);
  const paths: Record<string, Record<string, unknown>> = {};
  for (const op of OPERATIONS) {
    paths[op.path] ??= {};
    paths[op.path]![op.method.toLowerCase()] = describe(op, bodies, answers);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "svc",
      version,
      description: "Action governance for AI agents: decisions, approvals, a hash-chained ledger, and undo.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    security: [{ bearer: [] }],
    components: {
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "an API key or an OIDC token" },
      },
      schemas: { ...ERROR, ...answers.schemas(), ...bodies.schemas() },
    },
    paths: { ...paths, ...OPEN_PATHS },
  };
}

const ERROR = {
  Error: {
    type: "object",
    properties: { error: { type: "string", description: "what is wrong, and what to do" } },
    required: ["error"],
  },
};

/** Schemas under their names, each written once and referred to from everywhere else. */
class Components {
  private readonly io: "input" | "output";
  private readonly registry = z.registry<{ id: string }>();

  constructor(io: "input" | "output", named: Readonly<Record<string, z.ZodType>> = {}) {
    this.io = io;
    for (const [id, schema] of Object.entries(named)) this.registry.add(schema, { id });
  }

  /** A reference to the schema, which gets this name unless it has one. */
  refer(schema: z.ZodType, name: string): JsonSchema {
    if (!this.registry.has(schema)) this.registry.add(schema, { id: name });
    return reference(this.registry.get(schema)!.id);
  }

  schemas(): Record<string, JsonSchema> {
    const uri = (id: string) => `#/components/schemas/${id}`;
    const { schemas } = z.toJSONSchema(this.registry, { io: this.io, unrepresentable: "any", uri });
    return Object.fromEntries(
      Object.entries(schemas).map(([id, schema]) => {
        const { $schema: _, $id: __, ...rest } = schema as JsonSchema;
        return [id, rest];
      }),
    );
  }
}

function describe(op: Operation, bodies: Components, answers: Components): JsonSchema {
  const { body, id } = op;
  return {
    operationId: id,
    summary: op.summary,
    "x-svc-role": op.any_role ? "any" : op.role,
    parameters: [
      ...parameters(op.params, "path"),
      ...parameters(op.query, "query"),
      ...(op.headers ?? []).map((name) => ({ name, in: "header", required: false, ...HEADERS[name] })),
    ],
    ...(body === undefined
      ? {}
      : {
          requestBody: { content: { "application/json": { schema: bodies.refer(body, `${id}_body`) } } },
        }),
    responses: responses(op, answers),
  };
}

const HEADERS: Readonly<Record<RequestHeader, JsonSchema>> = {
  "Idempotency-Key": {
    description: "a retry under the same key gets the first answer again",
    schema: { type: "string", minLength: 1, maxLength: LIMITS.idempotency_key_chars },
  },
  "If-Match": {
    description: "the fingerprint of the entry that is meant",
    schema: { type: "string" },
  },
};

/** Every answer that the operation can give, those included that come before it is asked. */
function responses(op: Operation, answers: Components): JsonSchema {
  const errors: Record<number, string> = {
    400: "an invalid path, query or body",
    401: "a missing or invalid credential",
    403: "the role or the permission cap forbids it",
    ...(op.feature === undefined ? {} : { 404: "not enabled on this server" }),
    ...(op.path.startsWith("/v1/runs/{id}")
      ? { 404: "unknown run", 409: "the run's scope was changed" }
      : {}),
    ...(op.method === "GET" ? {} : { 413: "a body over 1 MB", 415: "a body that is not plain JSON" }),
    503: "the ledger is not available; nothing was done",
    ...op.errors,
  };
  const success = (description: string, output: Operation["output"], name: string) => ({
    description,
    content: contentOf(output, name, answers),
  });
  return {
    [op.status]: success("ok", op.output, `${op.id}_answer`),
    ...Object.fromEntries(
      Object.entries(op.also ?? {}).map(([status, { description, output }]) => [
        status,
        success(description, output, `${op.id}_${status}_answer`),
      ]),
    ),
    ...Object.fromEntries(
      Object.entries(errors).map(([status, description]) => [status, errorResponse(description)]),
    ),
  };
}

function contentOf(output: Operation["output"], name: string, answers: Components): JsonSchema {
  if (output instanceof z.ZodType) return { "application/json": { schema: answers.refer(output, name) } };
  return Object.fromEntries(output.content_types.map((type) => [type, {}]));
}

function parameters(schema: z.ZodType | undefined, where: "path" | "query"): JsonSchema[] {
  if (schema === undefined) return [];
  const { properties = {}, required = [] } = z.toJSONSchema(schema, {
    io: "input",
    unrepresentable: "any",
  }) as { properties?: Record<string, JsonSchema>; required?: string[] };
  return Object.entries(properties).map(([name, shape]) => ({
    name,
    in: where,
    required: where === "path" || required.includes(name),
    schema: shape["type"] === "integer" ? integerOf(shape) : shape,
  }));
}

/** A number in a path or a query arrives as digits; their pattern says nothing that the bounds do not. */
function integerOf({ pattern: _, ...shape }: JsonSchema): JsonSchema {
  return shape;
}
