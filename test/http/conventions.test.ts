/** What holds on every route: credentials, bodies, errors, ids of requests, and the document that describes it all. */
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { startListening } from "../../src/http/lifecycle.ts";
import { SERVICE_LIMITS } from "../../src/kernel/limits.ts";
import { filesJobs } from "../../src/store/files/jobs.ts";
import { openFilesStore } from "../../src/store/files/store.ts";
import { faultyDisk, inlineHelper } from "../support/faulty-disk.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

let s: TestServer;
beforeAll(async () => {
  s = await testServer({ keys: [{ name: "both", roles: ["agent", "admin"] }] });
  await s.call("agent", "POST", "/v1/runs", { run_id: "r", permissions: ["crm.read", "crm.write"] });
});
const intent = (body: unknown, headers = {}) => s.call("agent", "POST", "/v1/runs/r/intents", body, headers);
const records = async () => (await s.app.core.store.head()).records;

describe("open routes", () => {
  it("need no credential", async () => {
    verifies("core.http.healthz-open", "core.http.readyz-open", "core.route.healthz");
    for (const key of [null, "garbage"]) {
      expect(await s.call(key, "GET", "/healthz")).toMatchObject({ status: 200, body: { ok: true } });
      expect((await s.call(key, "GET", "/readyz")).status).toBe(200);
    }
  });

  it("say whether decisions can be made and recorded", async () => {
    verifies("core.route.readyz-ok", "contract.readings.readyz-200", "contract.readings.readyz-503");
    const ready = await s.call(null, "GET", "/readyz");
    expect(ready).toMatchObject({ status: 200, body: { ok: true, store: "memory" } });
    const { store } = s.app.core;
    const well = store.ready;
    store.ready = () => Promise.reject(new Error("the disk is on fire"));
    try {
      const answer = await s.call(null, "GET", "/readyz");
      expect(answer).toMatchObject({ status: 503, body: { ok: false, problems: ["the disk is on fire"] } });
    } finally {
      store.ready = well;
    }
    expect((await s.call(null, "GET", "/readyz")).status).toBe(200);
  });
});

describe("every answer", () => {
  it("carries its own id", async () => {
    verifies("contract.http.request-id");
    const answers = [
      await s.call("agent", "GET", "/v1/runs"),
      await s.call(null, "GET", "/v1/runs"),
      await s.call("agent", "GET", "/v1/nope"),
      await s.call("agent", "POST", "/v1/runs", "{"),
      await s.call(null, "GET", "/healthz"),
      await s.call("agent", "POST", "/v1/runs", `"${"x".repeat(SERVICE_LIMITS.body_bytes)}"`),
    ];
    const ids = answers.map(({ headers }) => headers["x-request-id"]);
    for (const id of ids) expect(id).toMatch(/^req_\w+$/);
    expect(new Set(ids).size).toBe(answers.length);
  });

  it("is JSON, unless the route says otherwise", async () => {
    verifies("core.http.json-bodies", "core.purpose.surface-http", "core.version.path-prefix");
    for (const path of ["/v1/runs", "/v1/runs/r", "/v1/nope"]) {
      expect((await s.call("agent", "GET", path)).headers["content-type"]).toMatch(/^application\/json/);
    }
    const text = { "content-type": "text/plain" };
    expect((await s.call("agent", "POST", "/v1/runs", '{"permissions":[]}', text)).status).toBe(415);
    expect((await s.call("agent", "GET", "/runs")).status).toBe(404);
  });

  it.each([
    ["none", {}],
    ["what curl fills in", { "content-type": "application/x-www-form-urlencoded" }],
  ])("to a JSON body whose declared type is %s is as to any", async (_name, headers) => {
    verifies("core.http.json-bodies");
    const asked = { method: "POST" as const, url: "/v1/runs", payload: Buffer.from('{"permissions":[]}') };
    const authorization = "Bearer agent";
    const answer = await s.http.inject({ ...asked, headers: { authorization, ...headers } });
    expect(answer.statusCode).toBe(201);
    const form = { ...asked, payload: Buffer.from("permissions=all") };
    expect((await s.http.inject({ ...form, headers: { authorization, ...headers } })).statusCode).toBe(400);
  });

  it("to a body that is far too big reaches a client that still writes", async () => {
    verifies("core.error.413");
    const own = await testServer();
    const { url } = await startListening(own.http, "127.0.0.1", 0);
    const send = async (key: string) => {
      const body = `"${"x".repeat(12 * SERVICE_LIMITS.body_bytes)}"`;
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
      const answer = await fetch(`${url}/v1/runs`, { method: "POST", headers, body });
      return [answer.status, await answer.json()];
    };
    expect(await send("agent")).toEqual([413, { error: "the request body is over 1 MB" }]);
    expect(await send("nobody")).toEqual([401, { error: "invalid credential" }]);
  });

  it("judges the role and the feature before the rest of the path, and an odd id is an unknown one", async () => {
    verifies("core.error.404-approval", "contract.readings.role-before-feature");
    const status = async (key: string, method: string, path: string, body?: unknown) =>
      (await s.call(key, method, path, body)).status;
    expect(await status("auditor", "POST", "/v1/approvals/apr_x/approve")).toBe(403);
    expect(await status("approver", "POST", "/v1/approvals/apr_x/approve")).toBe(404);
    expect(await status("approver", "POST", "/v1/approvals/%00/approve")).toBe(400);
    expect(await status("approver", "POST", "/v1/runs/r/steps/x/resolve", {})).toBe(403);
    expect(await status("operator", "POST", "/v1/runs/r/steps/x/resolve", {})).toBe(400);
    expect(await status("agent2", "POST", "/v1/runs/r/steps/x/resolve", {})).toBe(404);
    expect(await status("auditor", "DELETE", "/v1/holds/x")).toBe(403);
    expect((await s.call("admin", "DELETE", "/v1/holds/x")).body).toEqual({ error: "no retention settings" });
    expect(await status("approver", "DELETE", "/v1/delegations/x")).toBe(404);
    expect(await status("operator", "PATCH", "/v1/keys/x", {})).toBe(403);
  });

  it("for a console that is off reports it", async () => {
    verifies("core.http.not-enabled-404");
    for (const path of ["/console", "/console/login"]) {
      const { status, body } = await s.call(null, "GET", path);
      expect([status, body.error]).toEqual([404, expect.stringContaining("the console is off")]);
    }
  });

  it("to a mistake is an object with one key, error, whose value is a message", async () => {
    verifies(
      "core.http.error-body",
      "core.error.400",
      "core.error.403",
      "core.error.404-run",
      "core.error.409-run",
      "core.error.message-admin",
      "core.error.message-auditor",
    );
    const mistakes = [
      [400, await s.call("agent", "POST", "/v1/runs", {})],
      [400, await s.call("agent", "GET", "/v1/runs?odd=1")],
      [400, await s.call("agent", "GET", "/v1/runs/.x")],
      [401, await s.call(null, "GET", "/v1/runs")],
      [403, await s.call("operator", "POST", "/v1/halt", { reason: "r" })],
      [403, await s.call("agent", "GET", "/v1/status")],
      [404, await s.call("agent", "GET", "/v1/runs/none")],
      [404, await s.call("operator", "GET", "/v1/registry")],
      [409, await s.call("agent", "POST", "/v1/runs", { run_id: "r", permissions: [] })],
      [413, await s.call("agent", "POST", "/v1/runs", `"${"x".repeat(SERVICE_LIMITS.body_bytes)}"`)],
    ] as const;
    for (const [status, answer] of mistakes) {
      expect([status, Object.keys(answer.body)]).toEqual([answer.status, ["error"]]);
      expect(answer.body.error).toBeTypeOf("string");
      expect(answer.body.error).not.toMatch(/^\s*$|\n {4}at /);
    }
    expect(mistakes[4][1].body.error).toBe("admin only");
    expect(mistakes[5][1].body.error).toBe("auditor role required");
  });

  it("to a policy refusal is a 200", async () => {
    verifies("core.http.refusal-is-200", "core.route.intents-200");
    const refused = await intent({ tool: "mail.send", args: {}, reason: "r" });
    expect(refused).toMatchObject({
      status: 200,
      body: { decision: "block", reasons: [expect.any(String)] },
    });
  });
});

describe("a body", () => {
  const filled = (bytes: number) => {
    const empty = JSON.stringify({ tool: "crm.get", args: "", reason: "r" });
    return empty.replace('"args":""', `"args":"${"x".repeat(bytes - empty.length)}"`);
  };

  it("of one megabyte passes, and a byte more is a 413", async () => {
    verifies("core.http.body-cap", "core.limit.body", "core.error.413");
    expect(SERVICE_LIMITS.body_bytes).toBe(1_048_576);
    const whole = filled(SERVICE_LIMITS.body_bytes);
    expect(Buffer.byteLength(whole)).toBe(SERVICE_LIMITS.body_bytes);
    expect((await intent(whole)).body).toMatchObject({ decision: "allow" });
    const before = await records();
    expect((await intent(filled(SERVICE_LIMITS.body_bytes + 1))).status).toBe(413);
    expect(await records()).toBe(before);
  });

  it.each([
    ["a duplicate key", '{"tool":"crm.get","args":{"a":1,"a":2},"reason":"r"}'],
    ["a duplicate key in other letters", '{"tool":"crm.get","args":{"a":1,"\\u0061":2},"reason":"r"}'],
    ["a __proto__ key", '{"tool":"crm.get","args":{"__proto__":{"x":1}},"reason":"r"}'],
    ["an integer beyond 2^53", '{"tool":"crm.get","args":[9007199254740993],"reason":"r"}'],
    ["a number that overflows", '{"tool":"crm.get","args":[1e400],"reason":"r"}'],
    ["a lone surrogate", '{"tool":"crm.get","args":["\\ud800"],"reason":"r"}'],
    ["65 levels", `{"tool":"crm.get","args":${"[".repeat(64)}${"]".repeat(64)},"reason":"r"}`],
    ["a byte order mark", '\ufeff{"tool":"crm.get","args":{},"reason":"r"}'],
    ["UTF-16", Buffer.from('{"tool":"crm.get","args":{},"reason":"r"}', "utf16le").toString("latin1")],
  ])("with %s is a 400 and writes nothing", async (_name, body) => {
    verifies(
      "contract.values.duplicate-keys",
      "contract.values.proto-key",
      "contract.values.unsafe-integers",
      "contract.values.overflow",
      "contract.values.lone-surrogates",
      "contract.values.nesting",
    );
    const before = await records();
    const answer = await intent(body);
    expect(answer.status).toBe(400);
    expect(Object.keys(answer.body)).toEqual(["error"]);
    expect(await records()).toBe(before);
  });

  it("of 64 levels is read", async () => {
    const args = `${"[".repeat(63)}${"]".repeat(63)}`;
    expect((await intent(`{"tool":"crm.get","args":${args},"reason":"r"}`)).status).toBe(200);
  });

  it("is not read compressed, or with a second credential", async () => {
    const zipped = await intent({ tool: "crm.get", args: {}, reason: "r" }, { "content-encoding": "gzip" });
    expect(zipped.status).toBe(415);
    const twice = await s.http.inject({
      method: "GET",
      url: "/v1/runs",
      headers: { authorization: ["Bearer agent", "Bearer admin"] as never },
    });
    expect(twice.statusCode).toBeGreaterThanOrEqual(400);
    expect(twice.statusCode).toBeLessThan(402);
  });

  it.each([
    [
      "a second Authorization header",
      "authorization: Bearer agent\r\nauthorization: Bearer agent\r\n",
      400,
      "more than one",
    ],
    ["a length and chunks", "content-length: 2\r\ntransfer-encoding: chunked\r\n", 400, "not valid HTTP"],
    ["a space before a header's name", " content-length: 2\r\n", 400, "not valid HTTP"],
    ["headers without end", `x: ${"y".repeat(20_000)}\r\n`, 431, "headers are too large"],
  ])("with %s is refused in the same shape as any mistake", async (_name, headers, status, message) => {
    const own = await testServer();
    const { port } = await startListening(own.http, "127.0.0.1", 0);
    const socket = connect(port, "127.0.0.1").setEncoding("utf8");
    socket.write(`POST /v1/runs HTTP/1.1\r\nhost: x\r\nconnection: close\r\n${headers}\r\n`);
    let text = "";
    for await (const chunk of socket) text += chunk;
    expect(text).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    const body = JSON.parse(text.slice(text.indexOf("\r\n\r\n") + 4)) as { error: string };
    expect(Object.keys(body)).toEqual(["error"]);
    expect(body.error).toContain(message);
  });
});

describe("a ledger that cannot be written", () => {
  it("is a 503, nothing of the request stays behind, and it heals", async () => {
    verifies("contract.durable.503", "core.error.503");
    const folder = join(tempDir("full"), "data");
    const disk = faultyDisk();
    const helper = inlineHelper(() => filesJobs(folder));
    const own = await testServer({ store: await openFilesStore(folder, () => {}, { disk, helper }) });
    const { store } = own.app.core;
    const open = (run_id: string) =>
      own.call("agent", "POST", "/v1/runs", { run_id, permissions: ["crm.read"] });
    const ask = () =>
      own.call("agent", "POST", "/v1/runs/r/intents", { tool: "crm.get", args: {}, reason: "r" });
    await open("r");
    expect((await ask()).body).toEqual({ decision: "allow", step: 0 });
    const before = { run: await store.get("runs", "r"), head: await store.head() };

    disk.fail({ call: disk.calls + 1, code: "ENOSPC", lasting: true });
    for (const answer of [
      await ask(),
      await open("lost"),
      await own.call("admin", "POST", "/v1/halt", { reason: "r" }),
    ]) {
      expect(answer).toMatchObject({
        status: 503,
        body: { error: expect.stringMatching(/^ledger unavailable/) },
      });
    }
    expect((await own.call(null, "GET", "/readyz")).status).toBe(503);
    expect({ run: await store.get("runs", "r"), head: await store.head() }).toEqual(before);
    expect((await own.call("agent", "GET", "/v1/runs/lost")).status).toBe(404);

    disk.fail(undefined);
    expect((await ask()).body).toEqual({ decision: "allow", step: 1 });
    expect((await own.call("auditor", "GET", "/v1/halts")).body.halts).toEqual([]);
  });
});

describe("lists that grow", () => {
  it("are paged with limit and cursor", async () => {
    verifies("contract.http.lists-paged");
    for (let i = 0; i < 7; i++) {
      await s.call("agent2", "POST", "/v1/runs", { run_id: `p${i}`, permissions: [] });
    }
    const seen: string[] = [];
    let cursor = "";
    do {
      const { body } = await s.call("agent2", "GET", `/v1/runs?limit=3${cursor}`);
      expect(body.runs.length).toBeLessThanOrEqual(3);
      seen.push(...body.runs);
      cursor = body.next_cursor ? `&cursor=${encodeURIComponent(body.next_cursor)}` : "";
    } while (cursor !== "");
    expect(seen).toEqual(["p0", "p1", "p2", "p3", "p4", "p5", "p6"]);
    for (const n of [1, 2])
      await s.call("approver", "POST", "/v1/runs/p0/approvals", { tool: "crm.get", args: { n } });
    for (const path of ["/v1/search/runs", "/v1/search/records", "/v1/approvals"]) {
      const first = await s.call("auditor", "GET", `${path}?limit=1`);
      expect(first.status).toBe(200);
      expect(first.body.next_cursor).toEqual(expect.any(String));
      for (const limit of ["0", "501", "x", "1e2"]) {
        expect((await s.call("auditor", "GET", `${path}?limit=${limit}`)).status).toBe(400);
      }
      expect((await s.call("auditor", "GET", `${path}?cursor=nonsense`)).status).toBe(400);
    }
  });
});

describe("GET /openapi.json", () => {
  /** Every route of the server, read off the router's own tree. */
  async function routes(): Promise<string[]> {
    await s.http.ready();
    const parents: string[] = [];
    return s.http
      .printRoutes({ commonPrefix: false })
      .trimEnd()
      .split("\n")
      .flatMap((line) => {
        const [, branch, part, methods] = /^(.*?[├└]── )(\S*) \((.*)\)$/.exec(line)!;
        const depth = branch!.length / 4 - 1;
        parents.splice(depth, parents.length, part!);
        const path = parents.join("").replaceAll(/:(\w+)/g, "{$1}");
        return methods!.split(", ").flatMap((method) => (method === "HEAD" ? [] : [`${method} ${path}`]));
      });
  }

  it("is an OpenAPI 3.1 document that lists exactly the routes that exist", async () => {
    verifies("contract.http.openapi", "contract.http.openapi-matches-routes");
    const { status, body } = await s.call(null, "GET", "/openapi.json");
    expect([status, body.openapi]).toEqual([200, "3.1.0"]);
    const listed = Object.entries(body.paths as Record<string, object>).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(listed.sort()).toEqual((await routes()).sort());
  });

  it("says of a body what the server also demands", async () => {
    const { body } = await s.call(null, "GET", "/openapi.json");
    const { schema: at } = body.paths["/v1/runs/{id}/intents"].post.requestBody.content["application/json"];
    expect(at).toEqual({ $ref: "#/components/schemas/intent_body" });
    const schema = body.components.schemas.intent_body;
    expect(schema).toMatchObject({ additionalProperties: false, required: ["tool", "args", "reason"] });
    for (const field of schema.required as string[]) {
      const whole: Record<string, unknown> = { tool: "crm.get", args: {}, reason: "r" };
      delete whole[field];
      expect(await intent(whole)).toMatchObject({ status: 400, body: { error: `${field}: is required` } });
    }
  });
});

describe("POST /v1/reload", () => {
  it("loads a saved file, and keeps the old rules if it does not load", async () => {
    verifies(
      "core.route.reload",
      "contract.http.reload",
      "contract.http.reload-409",
      "core.error.409-configuration",
      "contract.readings.reload-keeps-old",
      "contract.event.reloaded",
      "ops.log.reloads",
    );
    const own = await testServer();
    const { folder } = own;
    const reload = (key = "admin") => own.call(key, "POST", "/v1/reload", {});
    await own.call("agent", "POST", "/v1/runs", { run_id: "r", permissions: ["new.read"] });
    const ask = async () =>
      (await own.call("agent", "POST", "/v1/runs/r/intents", { tool: "new.get", args: {}, reason: "r" })).body
        .decision;
    const logged = (msg: string) =>
      own.logged.map((line) => JSON.parse(line)).filter((line) => line.msg === msg);
    expect((await reload("operator")).status).toBe(403);
    expect(logged("reloaded")).toEqual([]);
    expect(await ask()).toBe("block");
    writeFileSync(join(folder, "manifests.yaml"), "- {tool: new.get, effect: read, permission: new.read}\n");
    const { policy } = (await own.call("auditor", "GET", "/v1/status")).body;
    expect(await reload()).toMatchObject({
      status: 200,
      body: { manifests: 1, policy: policy.hash, keys: 6 },
    });
    expect(logged("reloaded")).toMatchObject([{ level: "info", manifests: 1, policy: policy.hash, keys: 6 }]);
    expect(await ask()).toBe("allow");
    const broken = { "manifests.yaml": "- {tool: x}\n", "policy.yaml": "version: 2\n", "keys.json": "[" };
    const good = {
      "manifests.yaml": "- {tool: new.get, effect: read, permission: new.read}\n",
      "policy.yaml": "version: 1\n",
    };
    for (const [file, text] of Object.entries(broken)) {
      writeFileSync(join(folder, file), text);
      expect(await reload(), file).toMatchObject({
        status: 409,
        body: { error: expect.stringContaining("the old one stays in force") },
      });
      expect(await ask(), file).toBe("allow");
      if (file in good) writeFileSync(join(folder, file), good[file as keyof typeof good]);
    }
    // The keys are still broken: manifests that would load by themselves do not come into force either.
    writeFileSync(join(folder, "manifests.yaml"), "[]\n");
    expect((await reload()).status).toBe(409);
    expect(await ask()).toBe("allow");
    expect(logged("reloaded")).toHaveLength(1);
    expect(logged("reload refused")).toHaveLength(4);
    expect(logged("reload refused")[0]).toMatchObject({
      level: "warn",
      error: expect.stringContaining("the old one stays in force"),
    });
    const found = await own.call("auditor", "GET", "/v1/search/records?event=reloaded");
    expect(found.body.records).toHaveLength(1);
    expect(found.body.records[0]).toMatchObject({ actor: "admin" });
  });
});
