/** The OpenAPI 3.1 document, made from the schemas that validate the requests. */
import { z } from "zod";
import type { Field, Row } from "../api/row.ts";
import { HTTP_TABLE } from "../api/table.ts";
import type { Output } from "../app/operation.ts";
import { ERRORS, type ErrorCode } from "../kernel/errors.ts";

type JsonSchema = Record<string, unknown>;

const ERROR_BODY = {
  description: "an error",
  content: {
    "application/json": {
      schema: { type: "object", properties: { error: { type: "string" } }, required: ["error"] },
    },
  },
};

export function openApiDocument(version: string): JsonSchema {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const row of HTTP_TABLE) {
    paths[row.path] ??= {};
    paths[row.path]![row.method.toLowerCase()] = describe(row);
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
    },
    paths: { ...paths, ...OPEN_PATHS },
  };
}

const open = (summary: string, type = "application/json") => ({
  get: { summary, security: [], responses: { 200: { description: "ok", content: { [type]: {} } } } },
});
const OPEN_PATHS = {
  "/healthz": open("Whether the process is alive"),
  "/readyz": open("Whether decisions can be made and recorded"),
  "/metrics": open("Metrics; needs an auditor credential unless made public", "text/plain"),
  "/openapi.json": open("This document"),
  "/integrations/chat/actions": {
    post: {
      summary: "Approve or deny by a chat service's button; authenticated by the service's signature",
      security: [],
      parameters: ["x-slack-request-timestamp", "x-slack-signature"].map((name) => ({
        name,
        in: "header",
        required: true,
        schema: { type: "string" },
      })),
      requestBody: {
        required: true,
        content: {
          "application/x-www-form-urlencoded": {
            schema: { type: "object", properties: { payload: { type: "string" } }, required: ["payload"] },
          },
        },
      },
      responses: {
        200: { description: "ok", content: { "application/json": {} } },
        ...Object.fromEntries([400, 401, 403, 404, 409].map((status) => [status, ERROR_BODY])),
      },
    },
  },
};

function describe({ op, ...row }: Row): JsonSchema {
  const fields = jsonSchema(op.input, "input") as ObjectSchema;
  const responses: JsonSchema = { [row.status]: { description: "ok", content: outputContent(op.output) } };
  for (const { status, shape } of row.also)
    responses[status] = { description: "ok", content: outputContent(shape) };
  for (const status of [400, 401, 403]) responses[status] = ERROR_BODY;
  if (row.body) for (const status of [413, 415]) responses[status] = ERROR_BODY;
  responses[503] = ERROR_BODY;
  if (op.run_of !== undefined)
    responses[409] = { ...ERROR_BODY, description: "the run's stored scope was changed" };
  for (const [code, description] of Object.entries(op.errors ?? {}))
    responses[ERRORS[code as ErrorCode].http] = { ...ERROR_BODY, description };
  return {
    operationId: op.id,
    summary: op.summary,
    "x-svc-role": op.any_role ? "any" : op.role,
    parameters: [
      ...parameters(fields, row.params, "path"),
      ...parameters(fields, row.query, "query"),
      ...row.headers.map(({ header, about }) => ({
        name: header,
        in: "header",
        required: false,
        description: about,
        schema: { type: "string" },
      })),
    ],
    ...(row.body
      ? { requestBody: { content: { "application/json": { schema: bodySchema(fields, row.placed) } } } }
      : {}),
    responses,
  };
}

interface ObjectSchema extends JsonSchema {
  properties?: Record<string, JsonSchema>;
  required?: string[];
}

function outputContent(output: Output): JsonSchema {
  if ("content_types" in output) return Object.fromEntries(output.content_types.map((type) => [type, {}]));
  const shape = "text_of" in output ? output.text_of : output;
  return { "application/json": { schema: jsonSchema(shape, "output") } };
}

function parameters(
  { properties = {}, required = [] }: ObjectSchema,
  fields: Readonly<Record<string, Field>>,
  where: "path" | "query",
): JsonSchema[] {
  return Object.entries(fields).map(([name, { field, schema }]) => ({
    name,
    in: where,
    required: where === "path" || required.includes(field),
    schema: schema ?? properties[field],
  }));
}

/** What has no place of its own. */
function bodySchema({ properties = {}, required = [], ...rest }: ObjectSchema, placed: ReadonlySet<string>) {
  const kept = Object.entries(properties).filter(([name]) => !placed.has(name));
  const needed = required.filter((name) => !placed.has(name));
  return {
    ...rest,
    properties: Object.fromEntries(kept),
    ...(needed.length === 0 ? {} : { required: needed }),
  };
}

function jsonSchema(schema: z.ZodType, io: "input" | "output"): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" }) as JsonSchema;
  return rest;
}
