/** The OpenAPI 3.1 document, made from the schemas that validate the requests. */
import { z } from "zod";
import type { Operation } from "../app/operation.ts";
import { OPERATIONS } from "../app/operations/index.ts";

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
  for (const op of OPERATIONS) {
    paths[op.path] ??= {};
    paths[op.path]![op.method.toLowerCase()] = describe(op);
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

function describe(op: Operation): JsonSchema {
  const responses: JsonSchema = { [op.status]: { description: "ok", content: outputContent(op) } };
  for (const status of [400, 401, 403]) responses[status] = ERROR_BODY;
  if (op.body !== undefined) responses[413] = ERROR_BODY;
  responses[503] = ERROR_BODY;
  for (const [status, description] of Object.entries(op.errors ?? {}))
    responses[status] = { ...ERROR_BODY, description };
  return {
    operationId: op.id,
    summary: op.summary,
    "x-svc-role": op.any_role ? "any" : op.role,
    parameters: [...parameters(op.params, "path"), ...parameters(op.query, "query")],
    ...(op.body === undefined
      ? {}
      : { requestBody: { content: { "application/json": { schema: jsonSchema(op.body, "input") } } } }),
    responses,
  };
}

function outputContent(op: Operation): JsonSchema {
  if (op.output instanceof z.ZodType)
    return { "application/json": { schema: jsonSchema(op.output, "output") } };
  return Object.fromEntries(op.output.content_types.map((type) => [type, {}]));
}

function parameters(schema: z.ZodType | undefined, where: "path" | "query"): JsonSchema[] {
  if (schema === undefined) return [];
  const { properties = {}, required = [] } = jsonSchema(schema, "input") as {
    properties?: Record<string, JsonSchema>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, shape]) => ({
    name,
    in: where,
    required: where === "path" || required.includes(name),
    schema: shape,
  }));
}

function jsonSchema(schema: z.ZodType, io: "input" | "output"): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" }) as JsonSchema;
  return rest;
}
