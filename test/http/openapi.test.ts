/** The document of the interface: whole in itself, and true of what the server takes and answers. */
import { beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { HTTP_TABLE } from "../../src/http/api/http-table.ts";
import { ERROR_KINDS } from "../../src/kernel/errors.ts";
import { assertDocumented } from "../support/documented.ts";
import { testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

// biome-ignore lint/suspicious/noExplicitAny: the document is looked into freely
type Doc = any;

let doc: Doc;
beforeAll(async () => {
  doc = (await (await testServer()).call(null, "GET", "/openapi.json")).body;
});

interface Route {
  method: string;
  path: string;
  op: Doc;
}
const routes = (): Route[] =>
  Object.entries<Record<string, Doc>>(doc.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, op]) => ({ method, path, op })),
  );
const route = (method: string, path: string): Doc => doc.paths[path][method.toLowerCase()];
const parameter = (method: string, path: string, name: string): Doc =>
  route(method, path).parameters.find((one: Doc) => one.name === name);

function* valuesIn(value: unknown): Generator<Record<string, unknown>> {
  if (value === null || typeof value !== "object") return;
  yield value as Record<string, unknown>;
  for (const inner of Object.values(value)) yield* valuesIn(inner);
}

// Each entry of a list is checked, and reported if it is wrong. Without a bound, a request delays all others.
it("every list that is sent has a bound", () => {
  const unbounded = HTTP_TABLE.flatMap(({ op }) =>
    [...valuesIn(z.toJSONSchema(op.input, { io: "input", unrepresentable: "any" }))].flatMap((schema) =>
      schema["type"] === "array" && schema["maxItems"] === undefined ? [op.id] : [],
    ),
  );
  expect(unbounded).toEqual([]);
});

describe("the document is whole", () => {
  it("every reference leads to a schema, and every schema is referred to", () => {
    const used = new Set<string>();
    for (const { $ref } of valuesIn(doc)) if (typeof $ref === "string") used.add($ref);
    const given = Object.keys(doc.components.schemas).map((name) => `#/components/schemas/${name}`);
    expect([...used].sort()).toEqual(given.sort());
    expect(given).toContain("#/components/schemas/Run");
    for (const name of Object.keys(doc.components.schemas)) expect(name).toMatch(/^[A-Za-z0-9._-]+$/);
    for (const value of valuesIn(doc.components.schemas)) expect(value).not.toHaveProperty("$id");
  });

  it("every operation has its own id, its path's parameters, and described answers", () => {
    const ids = routes().map(({ op }) => op.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { method, path, op } of routes()) {
      const at = `${method} ${path}`;
      const inPath = (op.parameters ?? []).filter((one: Doc) => one.in === "path");
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      expect(inPath.map((one: Doc) => one.name).sort(), at).toEqual(named.sort());
      for (const one of op.parameters ?? []) {
        expect(one, at).toMatchObject({ name: expect.any(String), schema: expect.any(Object) });
        expect(["path", "query", "header"], at).toContain(one.in);
        if (one.in === "path") expect(one.required, at).toBe(true);
      }
      for (const [status, response] of Object.entries<Doc>(op.responses)) {
        expect(status, at).toMatch(/^(?:101|[2-5]\d\d)$/);
        expect(response.description.length, `${at} ${status}`).toBeGreaterThan(1);
        if (Number(status) >= 400 && !OWN_ERRORS.includes(path))
          expect(response.content["application/json"].schema, `${at} ${status}`).toEqual({
            $ref: "#/components/schemas/Error",
          });
      }
    }
  });
});

/** Standards that prescribe another body of an error: readiness lists problems, CAEP has that of RFC 8935. */
const CAEP = "/caep/events";
const OWN_ERRORS = ["/readyz", CAEP];

describe("the document is true", () => {
  it("names the key under which a request may be sent again, and the entry that is meant", () => {
    verifies("contract.http.openapi");
    for (const path of ["/v1/runs/{id}/intents", "/v1/runs/{id}/steps/{n}/outcome"])
      expect(parameter("POST", path, "Idempotency-Key"), path).toMatchObject({
        in: "header",
        required: false,
        schema: { type: "string", minLength: 1 },
      });
    for (const method of ["PATCH", "DELETE"])
      expect(parameter(method, "/v1/keys/{index}", "If-Match")).toMatchObject({ in: "header" });
  });

  it("calls a number a number", () => {
    const numbers = new Set(["n", "limit", "index", "days", "wait"]);
    let seen = 0;
    for (const { method, path, op } of routes()) {
      for (const { name, schema } of op.parameters ?? []) {
        if (!numbers.has(name)) continue;
        seen++;
        expect(schema, `${method} ${path} ${name}`).toEqual({
          type: "integer",
          minimum: expect.any(Number),
          maximum: expect.any(Number),
        });
      }
    }
    expect(seen).toBeGreaterThan(8);
  });

  it("gives a rollback's 202 the job that was started", () => {
    const { responses } = route("POST", "/v1/runs/{id}/rollback");
    const { $ref } = responses[202].content["application/json"].schema;
    const { properties } = doc.components.schemas[$ref.split("/").at(-1)];
    expect(Object.keys(properties.job.properties).sort()).toEqual(["by", "run_id", "started_ms", "state"]);
    for (const { op } of HTTP_TABLE)
      for (const code of Object.keys(op.errors ?? {})) expect(ERROR_KINDS, op.id).toHaveProperty(code);
  });

  it("tells of a server that is not ready, and of a body that is not JSON", async () => {
    const s = await testServer();
    s.app.core.store.ready = () => Promise.reject(new Error("the disk is gone"));
    expect(await s.call(null, "GET", "/readyz")).toMatchObject({
      status: 503,
      body: { ok: false, problems: ["the disk is gone"] },
    });
    for (const { method, path, op } of routes())
      expect([path, op.responses[415] !== undefined]).toEqual([path, method !== "get" && path !== CAEP]);
    const text = await s.call("agent", "POST", "/v1/runs", "permissions: []", {
      "content-type": "text/yaml",
    });
    expect(text.status).toBe(415);
  });

  it("and an answer that it does not announce does not pass the tests", () => {
    const json = "application/json; charset=utf-8";
    const answered = { method: "POST", url: "/v1/runs", status: 201, type: json };
    const body = { run_id: "r", mode: "enforce", scope_seal: "sha256:0" };
    expect(() => assertDocumented({ ...answered, body })).not.toThrow();
    expect(() => assertDocumented({ ...answered, body: { ...body, more: 1 } })).toThrow("another body");
    expect(() => assertDocumented({ ...answered, body: { ...body, mode: "often" } })).toThrow("another body");
    expect(() => assertDocumented({ ...answered, status: 418, body })).toThrow("does not name");
    const run = { ...answered, method: "GET", url: "/v1/runs/r?x=1", status: 200 };
    expect(() => assertDocumented({ ...run, body: { run_id: "r" } })).toThrow("another body");
  });
});
