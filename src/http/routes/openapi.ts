/** The OpenAPI 3.1 document, generated from the schemas that validate the requests and describe the answers. */
import * as z from "zod";
import { approvalViewShape, haltView } from "../../govern/approvals/approval.ts";
import { ERROR_KINDS, type ErrorCode } from "../../kernel/errors.ts";
import type { OperationOutput } from "../../operations/pipeline/operation.ts";
import { undoPlanShape } from "../../operations/rollback/rollback.ts";
import { decisionView, outcomeView, runView, stepView } from "../../operations/schemas.ts";
import type { FieldBinding, HttpRow } from "../api/http-row.ts";
import { HTTP_TABLE } from "../api/http-table.ts";
import { OPEN_PATHS } from "./openapi-open.ts";
import { REQUEST_TEXTS } from "./request-texts.ts";
import { RESPONSE_TEXTS } from "./response-texts.ts";

export type JsonSchema = Record<string, unknown>;

/** Schemas that several operations return get their own name. Any other schema is named after its operation. */
const NAMED: Readonly<Record<string, z.ZodType>> = {
  Run: runView,
  Step: stepView,
  Decision: decisionView,
  Outcome: outcomeView,
  Approval: approvalViewShape,
  Halt: haltView,
  RollbackPlan: undoPlanShape,
};

const reference = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` });

const errorResponse = (description: string): JsonSchema => ({
  description,
  content: { "application/json": { schema: reference("Error") } },
});

export function openApiDocument(version: string): JsonSchema {
  const bodies = new Components("input");
  const answers = new Components("output", NAMED);
  const paths: Record<string, Record<string, unknown>> = {};
  for (const row of HTTP_TABLE) {
    paths[row.path] ??= {};
    paths[row.path]![row.method.toLowerCase()] = describe(row, bodies, answers);
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

/** Named schemas. Each is written once, and every use refers to it. */
class Components {
  private readonly io: "input" | "output";
  private readonly registry = z.registry<{ id: string }>();

  constructor(io: "input" | "output", named: Readonly<Record<string, z.ZodType>> = {}) {
    this.io = io;
    for (const [id, schema] of Object.entries(named)) this.registry.add(schema, { id });
  }

  /** Returns a reference to the schema, and names it `name` if it has no name yet. */
  refer(schema: z.ZodType, name: string): JsonSchema {
    if (!this.registry.has(schema)) this.registry.add(schema, { id: name });
    return reference(this.registry.get(schema)!.id);
  }

  schemas(): Record<string, JsonSchema> {
    const texts = this.io === "input" ? REQUEST_TEXTS : RESPONSE_TEXTS;
    const uri = (id: string) => `#/components/schemas/${id}`;
    const { schemas } = z.toJSONSchema(this.registry, { io: this.io, unrepresentable: "any", uri });
    return Object.fromEntries(
      Object.entries(schemas).map(([id, schema]) => {
        const { $schema: _, $id: __, ...rest } = schema as JsonSchema;
        addMeanings(rest, id.replace(/_body$/, ""), texts);
        return [id, rest];
      }),
    );
  }
}

type FieldTexts = Readonly<Record<string, string>>;

const meaningOf = (texts: FieldTexts, path: string): string | undefined =>
  texts[path] ?? texts[path.split(".").at(-1)!.replaceAll("[]", "")];

/** Adds the meaning of each field that has none. A reference keeps the meaning of its target. */
function addMeanings(schema: JsonSchema, path: string, texts: FieldTexts): void {
  for (const [name, field] of Object.entries((schema["properties"] ?? {}) as Record<string, JsonSchema>)) {
    const meaning = meaningOf(texts, `${path}.${name}`);
    if (meaning !== undefined && field["$ref"] === undefined) field["description"] ??= meaning;
    addMeanings(field, `${path}.${name}`, texts);
  }
  if (schema["items"] !== undefined) addMeanings(schema["items"] as JsonSchema, `${path}[]`, texts);
  for (const one of (schema["anyOf"] ?? []) as JsonSchema[]) addMeanings(one, path, texts);
}

function describe(row: HttpRow, bodies: Components, answers: Components): JsonSchema {
  const { op } = row;
  const { id } = op;
  const fields = z.toJSONSchema(op.input, { io: "input", unrepresentable: "any" }) as ObjectSchema;
  return {
    operationId: id,
    summary: op.summary,
    "x-svc-role": op.any_role ? "any" : op.role,
    parameters: [
      ...parameters(fields, row.params, { where: "path", op: id }),
      ...parameters(fields, row.query, { where: "query", op: id }),
      ...row.headers
        .filter(({ schema }) => schema !== undefined)
        .map(({ header, about, schema }) => ({
          name: header,
          in: "header",
          required: false,
          description: about,
          schema,
        })),
    ],
    ...(row.body
      ? {
          requestBody: {
            content: { "application/json": { schema: bodies.refer(bodyOf(row), `${id}_body`) } },
          },
        }
      : {}),
    responses: responses(row, answers),
  };
}

interface ObjectSchema {
  properties?: Record<string, JsonSchema>;
  required?: string[];
}

/** The input fields that travel in the body. */
function bodyOf({ op, placed }: HttpRow): z.ZodType {
  const input = op.input as z.ZodObject;
  const kept = Object.keys(input.shape).filter((name) => !placed.has(name));
  return z.strictObject(Object.fromEntries(kept.map((name) => [name, input.shape[name]!])));
}

/** All responses of the operation, including those sent before it starts. */
function responses({ op, ...row }: HttpRow, answers: Components): JsonSchema {
  const own = Object.entries(op.errors ?? {}).map(([code, description]) => [
    ERROR_KINDS[code as ErrorCode].http,
    description,
  ]);
  const errors: Record<number, string> = {
    400: "an invalid path, query or body",
    401: "a missing or invalid credential",
    403: "the role or the permission cap forbids it",
    ...(op.feature === undefined ? {} : { 404: "not enabled on this server" }),
    ...(op.run_of === undefined ? {} : { 404: "unknown run", 409: "the run's scope was changed" }),
    ...(row.method === "GET" ? {} : { 413: "a body over 1 MB", 415: "a body that is not plain JSON" }),
    429: "over a quota; nothing was done. Retry-After says how long to wait",
    503: "the ledger is not available; nothing was done",
    ...Object.fromEntries(own),
  };
  const success = (description: string, output: OperationOutput, name: string) => ({
    description,
    content: contentOf(output, name, answers),
  });
  return {
    [row.status]: success("ok", row.shape ?? op.output, `${op.id}_answer`),
    ...Object.fromEntries(
      row.also.map(({ status, about, shape }) => [
        status,
        success(about, shape, `${op.id}_${status}_answer`),
      ]),
    ),
    ...Object.fromEntries(
      Object.entries(errors).map(([status, description]) => [status, errorResponse(description)]),
    ),
  };
}

function contentOf(output: OperationOutput, name: string, answers: Components): JsonSchema {
  if ("content_types" in output) return Object.fromEntries(output.content_types.map((type) => [type, {}]));
  const shape = "text_of" in output ? output.text_of : output;
  return { "application/json": { schema: answers.refer(shape, name) } };
}

function parameters(
  { properties = {}, required = [] }: ObjectSchema,
  fields: Readonly<Record<string, FieldBinding>>,
  { where, op }: { where: "path" | "query"; op: string },
): JsonSchema[] {
  return Object.entries(fields).map(([name, { field, schema }]) => {
    const description = properties[field]?.["description"] ?? meaningOf(REQUEST_TEXTS, `${op}.${field}`);
    return {
      name,
      in: where,
      required: where === "path" || required.includes(field),
      ...(description === undefined ? {} : { description }),
      schema: schema ?? properties[field],
    };
  });
}
