/** OpenAPI descriptions of the routes that are not operations: those without a credential, and the chat button. */

const json = (description: string, schema: object) => ({
  description,
  content: { "application/json": { schema } },
});
const error = (description: string) => json(description, { $ref: "#/components/schemas/Error" });

const READINESS = {
  type: "object",
  properties: {
    ok: { type: "boolean" },
    store: { type: "string" },
    version: { type: "string" },
    problems: { type: "array", items: { type: "string" }, description: "descriptions of the problems" },
    probe: {
      type: "object",
      description: "the last probe; absent if none has run",
      properties: {
        age_ms: { type: "integer" },
        broken: { type: "array", items: { type: "string" }, description: "guarantees that did not hold" },
      },
      required: ["age_ms", "broken"],
    },
    replica: {
      type: "object",
      description: "the read replica; absent if none is configured",
      properties: {
        lag_ms: { type: ["integer", "null"] },
        max_lag_ms: { type: "integer" },
        in_use: { type: "boolean" },
      },
      required: ["lag_ms", "max_lag_ms", "in_use"],
    },
    clock: {
      type: "object",
      description: "this server's clock against the database's, which sets all expiries; only on PostgreSQL",
      properties: {
        offset_ms: { type: "integer", description: "how far this server is ahead; negative if it is behind" },
        warning: { type: "string", description: "present if the clocks differ by more than 5 seconds" },
      },
      required: ["offset_ms"],
    },
    upstreams: {
      type: "array",
      description: "a gateway's tool servers",
      items: {
        type: "object",
        properties: { name: { type: "string" }, ok: { type: "boolean" } },
        required: ["name", "ok"],
      },
    },
  },
  required: ["ok", "store", "version", "problems"],
};

const open = (operationId: string, summary: string, responses: object) => ({
  get: { operationId, summary, security: [], responses },
});

export const OPEN_PATHS = {
  "/healthz": open("healthz", "Whether the process is alive", {
    200: json("ok", {
      type: "object",
      properties: { ok: { const: true }, version: { type: "string" } },
      required: ["ok", "version"],
    }),
  }),
  "/readyz": open("readyz", "Whether decisions can be made and recorded", {
    200: json("ready", READINESS),
    503: json("not ready; `problems` says why", READINESS),
  }),
  "/metrics": {
    get: {
      operationId: "metrics",
      summary: "Metrics; needs an auditor credential unless made public",
      security: [{ bearer: [] }, {}],
      responses: {
        200: { description: "ok", content: { "text/plain": {} } },
        401: error("a missing or invalid credential"),
        403: error("the role forbids it"),
        503: error("the store is not available"),
      },
    },
  },
  "/v1/stream": {
    get: {
      operationId: "stream",
      summary: "Make many calls over one WebSocket",
      "x-svc-role": "any",
      security: [{ bearer: [] }],
      responses: {
        101: { description: "the WebSocket is open" },
        400: error("not a WebSocket, or a query"),
        401: error("a missing or invalid credential"),
        403: error("an origin that is not allowed"),
        429: error("a quota is used up"),
      },
    },
  },
  "/.well-known/authzen-configuration": open("authzen_configuration", "Metadata of the AuthZEN API", {
    200: json("ok", {
      type: "object",
      properties: {
        policy_decision_point: { type: "string" },
        access_evaluation_endpoint: { type: "string" },
        access_evaluations_endpoint: { type: "string" },
        access_request_endpoint: { type: "string" },
        capabilities: { type: "array", items: { type: "string" } },
      },
      required: ["policy_decision_point", "access_evaluation_endpoint"],
    }),
  }),
  "/openapi.json": open("openapi", "This document", { 200: json("ok", { type: "object" }) }),
  "/caep/events": {
    post: {
      operationId: "caep_events",
      summary: "Receive a security event; authenticated by the transmitter's signature",
      security: [],
      requestBody: {
        required: true,
        content: { "application/secevent+jwt": { schema: { type: "string" } } },
      },
      responses: {
        202: { description: "the event is recorded, or was before" },
        400: json("the event is refused", {
          type: "object",
          properties: {
            err: { type: "string", description: "error code of RFC 8935" },
            description: { type: "string" },
          },
          required: ["err", "description"],
        }),
        404: error("security events are not enabled"),
        413: error("a body over 1 MB"),
        503: error("the transmitter's keys or the ledger are not available; send it again"),
      },
    },
  },
  "/integrations/chat/actions": {
    post: {
      operationId: "chat_actions",
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
        200: json("ok", { type: "object", properties: { text: { type: "string" } }, required: ["text"] }),
        400: error("not a button press of an approval message"),
        401: error("the signature is missing, wrong, old or used"),
        403: error("the chat user is not allowed to decide this"),
        404: error("chat actions are not enabled, or the request is unknown"),
        409: error("the request is decided already"),
        413: error("a body over 1 MB"),
        415: error("a body of another type"),
        503: error("the ledger is not available; nothing was done"),
      },
    },
  },
};
