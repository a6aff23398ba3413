/** Runs, intents, outcomes and their records over HTTP: stored data, shown data, and who can write. */
import { createHash, createHmac } from "node:crypto";
import canonicalize from "canonicalize";
import { beforeAll, describe, expect, it } from "vitest";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- {tool: crm.get, effect: read, permission: crm.read}
- tool: crm.create
  version: "1.4"
  effect: compensable
  permission: crm.write
  compensation: {tool: crm.delete, args: {id: $result.id}, kind: inverse}
- {tool: crm.tag, effect: idempotent, permission: crm.write, requires: [crm.create]}
- {tool: old.get, effect: read, permission: crm.read, lifecycle: deprecated}
- {tool: mail.send, effect: irreversible, permission: mail.send, idempotency: $args.to}
`;
const ALL = ["crm.read", "crm.write", "mail.send"];
const MODES = ["enforce", "observe", "advise"] as const;

let s: TestServer;
beforeAll(async () => {
  s = await testServer({
    manifests: MANIFESTS,
    policy:
      "version: 1\nrules:\n  - {id: ask, match: {tool: mail.send}, when: [{path: $args.n, op: gt, value: 10}], action: require_approval, reason: ask}\n",
    keys: [
      { name: "both", roles: ["agent", "admin"] },
      { name: "acme-bot", role: "agent", tenant: "acme" },
    ],
  });
});
let n = 0;
async function open(body: Record<string, unknown> = {}, key = "agent"): Promise<string> {
  const run_id = `j${n++}`;
  const opened = await s.call(key, "POST", "/v1/runs", { run_id, permissions: ALL, ...body });
  expect(opened.status).toBe(201);
  return (opened.body as { run_id: string }).run_id;
}
const ask = (run: string, tool: string, args: unknown = {}, more = {}, key = "agent") =>
  s.call(key, "POST", `/v1/runs/${run}/intents`, { tool, args, reason: "why", ...more });
const report = (run: string, step: number, body: unknown, key = "agent") =>
  s.call(key, "POST", `/v1/runs/${run}/steps/${step}/outcome`, body);
const read = async (run: string) => (await s.call("agent", "GET", `/v1/runs/${run}`)).body;
const trail = async (run: string): Promise<Record<string, unknown>[]> =>
  (await s.call("auditor", "GET", `/v1/runs/${run}/export`, undefined, { accept: "application/json" })).body
    .records;
const sha = (text: string) => createHash("sha256").update(text).digest("hex");

describe("a run", () => {
  it.each(["a", "0", "Run_1.2-3", "r".repeat(128)])("may be called %s", async (run_id) => {
    verifies(
      "core.run.id-characters",
      "core.run.id-length",
      "core.run.id-first-character",
      "core.limit.run-id",
    );
    expect((await s.call("agent", "POST", "/v1/runs", { run_id, permissions: [] })).status).toBe(201);
    expect((await read(run_id)).run_id).toBe(run_id);
  });

  it.each(["", ".a", "_a", "-a", "a b", "a/b", "ä", "a\n", "a\u0000", "r".repeat(129), 7, null])(
    "may not be called %j",
    async (run_id) => {
      verifies("core.route.runs-post-400-id");
      const before = await s.app.core.store.count("runs");
      const answer = await s.call("agent", "POST", "/v1/runs", { run_id, permissions: [] });
      expect(answer.status).toBe(400);
      expect(answer.body.error).toContain("run_id");
      expect(await s.app.core.store.count("runs")).toBe(before);
    },
  );

  it("takes what the interface lists, and seals it", async () => {
    verifies(
      "contract.run.seal-form",
      "core.route.runs-post-reason",
      "core.route.runs-post-mode",
      "core.run.created-ms",
      "core.run.scope-object",
    );
    for (const mode of MODES) {
      const permissions = ["mail.send", "crm.read", "mail.send"];
      const opened = await s.call("acme-bot", "POST", "/v1/runs", {
        permissions,
        mode,
        reason: "nightly sync",
      });
      const { run_id, scope_seal } = opened.body;
      const sealed = {
        run_id,
        actor: "acme-bot",
        mode,
        tenant: "acme",
        permissions: ["crm.read", "mail.send"],
      };
      expect(opened).toMatchObject({ status: 201, body: { mode } });
      expect(scope_seal).toBe(`sha256:${sha(canonicalize(sealed)!)}`);
      const run = (await s.call("acme-bot", "GET", `/v1/runs/${run_id}`)).body;
      expect(run).toMatchObject({
        mode,
        tenant: "acme",
        reason: "nightly sync",
        scope: { permissions: ["mail.send", "crm.read"], seal: scope_seal },
        created_ms: s.env.now(),
      });
    }
  });

  it("writes no record by being opened", async () => {
    verifies("contract.event.opening-writes-none");
    const before = await s.app.core.store.head();
    const run = await open();
    expect(await s.app.core.store.head()).toEqual(before);
    expect(await trail(run)).toEqual([]);
  });

  it("keeps its mode and its scope for ever", async () => {
    verifies("core.run.mode-sealed", "core.run.scope-not-widened", "core.route.runs-post-409");
    const run = await open({ permissions: ["crm.read"] });
    const again = await s.call("agent", "POST", "/v1/runs", {
      run_id: run,
      permissions: ALL,
      mode: "observe",
    });
    expect(again.status).toBe(409);
    for (const method of ["PATCH", "PUT", "DELETE", "POST"]) {
      expect((await s.call("both", method, `/v1/runs/${run}`, { mode: "observe" })).status).toBe(404);
    }
    expect(await read(run)).toMatchObject({ mode: "enforce", scope: { permissions: ["crm.read"] } });
    expect((await ask(run, "crm.create")).body.decision).toBe("block");
  });

  it("whose stored scope was edited is refused wherever it is loaded", async () => {
    verifies("contract.run.seal-checked", "contract.run.seal-mismatch");
    const run = await open({ permissions: ["crm.read"] });
    await ask(run, "crm.get");
    const { store } = s.app.core;
    const doc = (await store.get("runs", run))!;
    for (const edited of [
      { ...doc, scope: { ...doc.scope, permissions: ALL } },
      { ...doc, mode: "observe" as const },
      { ...doc, actor: "root" },
      { ...doc, tenant: "acme" },
    ]) {
      await store.transact({ run: (tx) => tx.put("runs", run, edited) });
      expect((await ask(run, "crm.get")).body).toMatchObject({
        decision: "block",
        reasons: [expect.stringMatching(/^scope seal mismatch/)],
      });
      for (const answer of [
        await s.call("agent", "GET", `/v1/runs/${run}`),
        await report(run, 0, { status: "succeeded" }),
        await s.call("auditor", "GET", `/v1/runs/${run}/plan`),
        await s.call("operator", "POST", `/v1/runs/${run}/steps/0/resolve`, { status: "failed", note: "n" }),
      ]) {
        expect(answer).toMatchObject({
          status: 409,
          body: { error: expect.stringMatching(/^scope seal mismatch/) },
        });
      }
    }
  });
});

describe("an intent", () => {
  it("takes any JSON as arguments", async () => {
    verifies("core.intent.args-any-json", "core.intent.args-required", "core.run.steps-from-zero");
    const run = await open();
    const values = [{}, [], "text", "", 0, -1.5, true, false, null, { deep: [{ a: [null] }] }];
    for (const [step, args] of values.entries()) {
      expect((await ask(run, "crm.get", args)).body).toEqual({ decision: "allow", step });
    }
    const { steps } = await read(run);
    expect(steps.map((one: { step: number }) => one.step)).toEqual(values.map((_, i) => i));
  });

  it.each([
    ["tool", 7],
    ["tool", undefined],
    ["reason", undefined],
    ["reason", ""],
    ["reason", 7],
    ["args", undefined],
    ["depends_on", 0],
    ["depends_on", [0, 0]],
    ["depends_on", [1.5]],
  ])("refuses %s: %j", async (field, value) => {
    verifies("core.intent.tool-required", "core.intent.reason-required", "core.intent.depends-on-optional");
    const run = await open();
    await ask(run, "crm.get");
    const answer = await ask(run, "crm.get", {}, { [field]: value });
    expect(answer.status).toBe(400);
    expect(answer.body.error).toContain(field);
  });

  it("keeps its dependencies, given and implied", async () => {
    verifies("core.step.dependencies", "contract.readings.requires-standing", "core.manifest.requires-tools");
    const run = await open();
    expect((await ask(run, "crm.tag")).body.reasons).toEqual([
      "prerequisite crm.create has not succeeded in this run",
    ]);
    await ask(run, "crm.create");
    expect((await ask(run, "crm.tag")).body.decision).toBe("block");
    await report(run, 0, { status: "uncertain" });
    expect((await ask(run, "crm.tag")).body.decision).toBe("block");
    await ask(run, "crm.create");
    await report(run, 1, { status: "failed" });
    expect((await ask(run, "crm.tag")).body.decision).toBe("block");
    await ask(run, "crm.create");
    await report(run, 2, { status: "succeeded", result: { id: 1 } });
    await ask(run, "crm.get");
    expect((await ask(run, "crm.tag", {}, { depends_on: [3] })).body).toEqual({ decision: "allow", step: 4 });
    expect((await read(run)).steps[4].depends_on).toEqual([2, 3]);
    const other = await open();
    expect((await ask(other, "crm.tag")).body.decision).toBe("block");
  });

  it("is decided by the run's mode", async () => {
    verifies(
      "core.purpose.mode-enforce",
      "core.purpose.mode-observe",
      "core.purpose.mode-advise",
      "contract.readings.scope-would-block",
      "core.intent.answer-would-block",
      "core.event.would-block",
      "core.step-state.would-block-record-first",
      "contract.readings.policy-would-block",
      "core.purpose.unmanifested-observe-only",
    );
    const scope = "permission mail.send is not in the run's scope";
    for (const mode of MODES) {
      const run = await open({ mode, permissions: ["crm.read"] });
      const answer = (await ask(run, "mail.send", { to: mode })).body;
      const events = (await trail(run)).map((record) => record["event"]);
      if (mode === "enforce") {
        expect(answer).toEqual({ decision: "block", reasons: [scope] });
        expect(events).toEqual(["blocked"]);
      } else {
        expect(answer).toEqual({ decision: "would_block", step: 0, reasons: [scope] });
        expect(events).toEqual(["would_block", "intended"]);
        expect((await report(run, 0, { status: "succeeded" })).status).toBe(200);
      }
      const wide = await open({ mode });
      const asked = (await ask(wide, "mail.send", { to: `${mode}2`, n: 11 })).body;
      expect(asked).toMatchObject({ decision: mode === "enforce" ? "block" : "would_block" });
      expect(asked.reasons[0]).toBe("ask");
      expect(asked.reasons[1]).toMatch(/^approval required/);
      expect((await ask(wide, "no.such.tool")).body.decision).toBe(
        mode === "observe" ? "would_block" : "block",
      );
    }
  });

  it("to a deprecated tool works, and the log warned when it was loaded", async () => {
    verifies("contract.manifest.deprecated-works");
    expect((await ask(await open(), "old.get")).body.decision).toBe("allow");
    expect(s.logged.join("")).toMatch(/"level":"warn".*tool old\.get: lifecycle: deprecated/);
  });

  it("is one and the same value for the hash, the rules and the approval, however it is spelt", async () => {
    verifies("contract.values.one-reading");
    const run = await open();
    const spelt = (args: string) => `{"tool":"mail.send","reason":"r","args":${args}}`;
    const send = (args: string) => s.call("agent", "POST", `/v1/runs/${run}/intents`, spelt(args));
    const { reasons } = (await send('{"to":"ann","n":11}')).body;
    const id = /apr_[0-9a-f-]{36}/.exec(reasons[1])![0];
    expect((await send('{ "n" : 1.1e1, "\\u0074o": "\\u0061nn" }')).body.reasons[1]).toContain(id);
    await s.call("approver", "POST", `/v1/approvals/${id}/approve`);
    expect((await send('{"n":11,"to":"ann"}')).body).toEqual({ decision: "allow", step: 0 });
    const hashes = new Set((await trail(run)).map((record) => record["args_hash"]));
    expect(hashes.size).toBe(1);
  });

  it("that is active may not be repeated under another run either, and its value is kept as a keyed hash", async () => {
    verifies("contract.values.idempotency-keyed", "contract.manifest.idempotency-per-value");
    const [a, b] = [await open(), await open()];
    expect((await ask(a, "mail.send", { to: "canary-once@example.com" })).body.decision).toBe("allow");
    expect((await ask(b, "mail.send", { to: "canary-once@example.com" })).body.reasons[0]).toMatch(
      /^idempotency: /,
    );
    expect((await ask(b, "mail.send", { to: "another@example.com" })).body.decision).toBe("allow");
    const rows = await s.app.core.store.list("idempotency", { limit: 100 });
    expect(rows.length).toBeGreaterThan(1);
    expect(JSON.stringify(rows)).not.toContain("canary-once");
    expect(JSON.stringify(rows)).not.toContain(sha('"canary-once@example.com"'));
  });
});

describe("an outcome", () => {
  it("has one of three statuses, and says its error", async () => {
    verifies(
      "core.outcome.status-values",
      "core.outcome.error-optional",
      "core.outcome.result-optional",
      "core.outcome.answer",
      "core.step-state.failed",
      "core.step-state.uncertain",
      "core.step-state.succeeded",
      "core.step.error",
      "contract.readings.unresolved",
      "core.run.unresolved-numbers",
      "core.event.outcomes",
    );
    const run = await open();
    for (let i = 0; i < 4; i++) await ask(run, "crm.get");
    expect((await report(run, 0, { status: "done" })).status).toBe(400);
    expect((await report(run, 0, {})).status).toBe(400);
    expect((await report(run, 0, { status: "failed", error: 7 })).status).toBe(400);
    expect((await report(run, 0, { status: "succeeded", result: null })).body).toEqual({
      step: 0,
      status: "succeeded",
    });
    await report(run, 1, { status: "failed", error: "no such row" });
    await report(run, 2, { status: "uncertain", error: "timeout" });
    expect(await read(run)).toMatchObject({
      steps: [
        { status: "succeeded", error: null },
        { status: "failed", error: "no such row" },
        { status: "uncertain", error: "timeout" },
        { status: "intended", error: null },
      ],
      unresolved: [2, 3],
    });
    const events = (await trail(run)).slice(4).map(({ event, detail }) => [event, detail]);
    expect(events).toEqual([
      ["succeeded", undefined],
      ["failed", "no such row"],
      ["uncertain", "timeout"],
    ]);
  });

  it("can be reported once, and a second report changes nothing", async () => {
    verifies("core.step-state.second-outcome-409", "core.route.outcome-409", "core.error.409-outcome");
    for (const status of ["succeeded", "failed", "uncertain"]) {
      const run = await open();
      await ask(run, "crm.get");
      await report(run, 0, { status });
      const before = { run: await read(run), trail: await trail(run) };
      for (const again of ["succeeded", "failed", "uncertain"]) {
        expect((await report(run, 0, { status: again })).status).toBe(409);
      }
      expect({ run: await read(run), trail: await trail(run) }).toEqual(before);
    }
    expect((await report(await open(), 0, { status: "failed" })).status).toBe(404);
  });

  it("nobody reported is for an operator to say, with a note", async () => {
    verifies(
      "core.route.resolve",
      "core.route.resolve-status",
      "core.route.resolve-note",
      "core.route.resolve-result",
      "core.step-state.resolve-intended",
      "core.step-state.resolve-uncertain",
      "core.step-state.resolve-needs-note",
      "core.step-state.resolve-record",
      "core.event.resolved",
      "core.purpose.operator-reconciles",
    );
    const run = await open();
    for (let i = 0; i < 4; i++) await ask(run, "crm.create");
    await report(run, 2, { status: "uncertain" });
    await report(run, 3, { status: "uncertain" });
    const resolve = (step: number, body: object, key = "operator") =>
      s.call(key, "POST", `/v1/runs/${run}/steps/${step}/resolve`, body);
    expect((await resolve(0, { status: "succeeded", note: "n" }, "approver")).status).toBe(403);
    for (const bad of [
      { status: "succeeded" },
      { status: "failed", note: " " },
      { status: "uncertain", note: "n" },
    ]) {
      expect((await resolve(0, bad)).status).toBe(400);
    }
    const said = { note: "seen in the CRM", result: { id: 5 } };
    for (const [step, status] of [
      [0, "succeeded"],
      [1, "failed"],
      [2, "succeeded"],
      [3, "failed"],
    ] as const) {
      expect((await resolve(step, { status, ...said })).body).toEqual({ step, status });
      expect((await resolve(step, { status, ...said })).status).toBe(409);
    }
    expect((await read(run)).unresolved).toEqual([]);
    const last = (await trail(run)).slice(-4);
    expect(last.map(({ event, actor, detail }) => [event, actor, detail])).toEqual(
      ["succeeded", "failed", "succeeded", "failed"].map((event) => [
        event,
        "operator",
        "resolved by operator: seen in the CRM",
      ]),
    );
    const plan = (await s.call("auditor", "GET", `/v1/runs/${run}/plan`)).body;
    expect(plan.actions.map(({ step, args }: { step: number; args: unknown }) => [step, args])).toEqual([
      [2, { id: 5 }],
      [0, { id: 5 }],
    ]);
  });
});

describe("a step", () => {
  it("holds the key of its undo from the beginning, or nothing", async () => {
    verifies(
      "contract.step.handle",
      "contract.step.handle-null",
      "core.step.compensation-tool",
      "core.step.manifest-version",
      "core.version.manifest-on-step",
    );
    const run = await open();
    await ask(run, "crm.create");
    await ask(run, "crm.get");
    const [create, get] = (await read(run)).steps;
    expect(create).toMatchObject({
      compensation_tool: "crm.delete",
      manifest_version: "1.4",
      status: "intended",
    });
    expect(get).toMatchObject({ compensation_tool: null, handle: null, manifest_version: "1" });
    await report(run, 0, { status: "succeeded", result: { id: 9 } });
    await report(run, 1, { status: "succeeded" });
    const { actions } = (await s.call("auditor", "GET", `/v1/runs/${run}/plan`)).body;
    expect(actions.find((one: { step: number }) => one.step === 0).idempotency_key).toBe(create.handle);
  });
});

describe("only the principal that opened a run", () => {
  it("journals on it, regardless of the key's other rights", async () => {
    verifies(
      "core.http.journal-by-owner",
      "core.http.outcome-by-owner",
      "core.http.auditor-reads-any-run",
      "contract.readings.agent-role-on-key",
    );
    const run = await open();
    await ask(run, "crm.get");
    expect((await ask(run, "crm.get", {}, {}, "both")).status).toBe(403);
    expect((await report(run, 0, { status: "failed" }, "both")).status).toBe(403);
    expect((await ask(run, "crm.get", {}, {}, "admin")).status).toBe(403);
    expect((await s.call("admin", "POST", "/v1/runs", { permissions: [] })).status).toBe(403);
    for (const key of ["both", "auditor", "approver", "operator", "admin"]) {
      expect((await s.call(key, "GET", `/v1/runs/${run}`)).body.run_id).toBe(run);
    }
    expect((await read(run)).steps).toHaveLength(1);
    const own = await open({}, "both");
    expect((await ask(own, "crm.get", {}, {}, "both")).body.decision).toBe("allow");
  });
});

describe("the records of a run", () => {
  const FIELDS = [
    "seq",
    "ts_ms",
    "event",
    "run_id",
    "run_seq",
    "step",
    "tool",
    "actor",
    "tenant",
    "reason",
    "detail",
    "effect",
    "args_hash",
    "result_hash",
    "manifest_version",
    "scope_seal",
    "prev",
    "hash",
  ];

  it("have the documented fields, plain values, and no gap", async () => {
    verifies(
      "contract.record.fields",
      "contract.record.values",
      "contract.record.run-seq",
      "contract.event.seal-on-records",
      "core.purpose.every-decision-on-ledger",
      "core.purpose.every-outcome-on-ledger",
      "core.key.name-is-actor",
    );
    const run = (await s.call("acme-bot", "POST", "/v1/runs", { permissions: ALL, mode: "observe" })).body;
    const call = (path: string, body: unknown) =>
      s.call("acme-bot", "POST", `/v1/runs/${run.run_id}${path}`, body);
    await call("/intents", { tool: "crm.create", args: { a: 1 }, reason: "why" });
    await call("/steps/0/outcome", { status: "succeeded", result: { id: 1 } });
    await call("/intents", { tool: "no.such.tool", args: {}, reason: "why" });
    await call("/steps/1/outcome", { status: "failed", error: "no" });
    const records = await trail(run.run_id);
    expect(records.map((record) => record["event"])).toEqual([
      "intended",
      "succeeded",
      "would_block",
      "intended",
      "failed",
    ]);
    expect(new Set(records.flatMap((record) => Object.keys(record)))).toEqual(new Set(FIELDS));
    for (const [i, record] of records.entries()) {
      expect(record).toMatchObject({
        run_id: run.run_id,
        run_seq: i,
        actor: "acme-bot",
        tenant: "acme",
        scope_seal: run.scope_seal,
      });
      for (const value of Object.values(record)) {
        expect(typeof value === "string" || Number.isSafeInteger(value)).toBe(true);
      }
    }
  });

  it("hold arguments and results as salted hashes and in no other way", async () => {
    verifies(
      "core.intent.args-hashed",
      "core.outcome.result-hashed",
      "contract.values.salted-hashes",
      "contract.values.salt-with-run",
      "core.purpose.ledger-holds-no-values",
      "contract.hash.form",
    );
    const args = { name: "canary-arg", n: 987654321 };
    const result = { id: "canary-result" };
    const runs = [await open(), await open()];
    for (const run of runs) {
      await ask(run, "crm.create", args);
      await report(run, 0, { status: "succeeded", result });
    }
    const all = await Promise.all(runs.map(trail));
    expect(JSON.stringify(all)).not.toMatch(/canary|987654321/);
    for (const [i, run] of runs.entries()) {
      const { salt } = (await s.app.core.store.get("runs", run))!;
      const keyed = (value: unknown) =>
        `sha256:${createHmac("sha256", salt).update(canonicalize(value)!).digest("hex")}`;
      expect(all[i]!.map((record) => record["args_hash"])).toEqual([keyed(args), keyed(args)]);
      expect(all[i]![1]!["result_hash"]).toBe(keyed(result));
    }
    expect(all[0]![0]!["args_hash"]).not.toBe(all[1]![0]!["args_hash"]);
  });

  it("hold no credential that somebody wrote into a text, and no key", async () => {
    verifies("contract.values.text-redacted-ledger", "core.auth.ledger-no-keys");
    const secret = "AKIAIOSFODNN7EXAMPL3";
    const run = await open({ reason: `with ${secret}` });
    await ask(run, "crm.get", {}, { reason: `because ${secret}` });
    await report(run, 0, { status: "uncertain", error: `denied for ${secret}` });
    await s.call("operator", "POST", `/v1/runs/${run}/steps/0/resolve`, {
      status: "failed",
      note: `asked ${secret}`,
    });
    await s.call("admin", "POST", "/v1/halt", { reason: `leak ${secret}` });
    await s.call("admin", "POST", "/v1/resume", {});
    const lines = await s.app.core.store.records({ limit: 10_000 });
    const text = lines.join("\n") + s.logged.join("") + JSON.stringify(await read(run));
    expect(text).not.toContain(secret);
    expect(text).toContain("[REDACTED:");
    const made = (await s.call("admin", "POST", "/v1/keys", { name: "fresh", role: "agent" })).body;
    const after = (await s.app.core.store.records({ limit: 10_000 })).join("\n");
    expect(after).toContain("key fresh");
    expect(after).not.toContain(made.key);
    expect(after).not.toContain(sha(made.key));
  });
});
