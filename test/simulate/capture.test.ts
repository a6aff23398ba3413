/** Captured calls: which are stored, when, and that storing them never affects a decision. */
import { describe, expect, it } from "vitest";
import { capturedPages, purgeCaptures } from "../../src/capture/captured-calls.ts";
import { CaptureRecorder } from "../../src/capture/recorder.ts";
import type { UnitOfWork } from "../../src/govern/port/store.ts";
import { HTTP_TABLE } from "../../src/http/api/http-table.ts";
import { SvcError } from "../../src/kernel/errors.ts";
import { approveRequest } from "../../src/operations/approvals/approvals.ts";
import { resolveOutcome } from "../../src/operations/runs/intents-and-outcomes.ts";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { principal } from "../support/engine.ts";
import { filesUnder, sourceFile } from "../support/files.ts";
import { aMoment } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";
import { capturing, everythingOf, NOON } from "./support.ts";

const POLICY = `
version: 1
rules:
  - {id: big, match: {tool: pay.charge}, when: [{path: $args.amount, op: gt, value: 50}], action: require_approval}
  - {id: none, match: {tool: mail.send}, action: deny, reason: no mail}
risk: {}
`;

describe("a captured call", () => {
  it("holds the call, its actor, and the decision", async () => {
    verifies("ops.capture-state.stored", "ops.capture.who", "ops.capture.decision-and-reasons");
    verifies("ops.capture.version-and-risk", "ops.capture.times", "ops.limit.capture-ttl");
    verifies("ops.capture-config.server-records");
    const s = await capturing({ policy: POLICY, environment: "prod" });
    const tenant = { ...principal("bot"), tenant: "acme" };
    await s.open("r", "enforce", tenant);
    await s.ask("r", "crm.open", { a: 1 }, [], tenant);
    await s.done("r", 0, { status: "succeeded" }, tenant);
    await s.ask("r", "crm.create", { email: "ann@example.com", note: "hi" }, [0], tenant);
    const [, call] = await s.captured();
    expect(call).toEqual({
      run_id: "r",
      step: 1,
      tool: "crm.create",
      actor: "bot",
      tenant: "acme",
      environment: "prod",
      args: { email: "[REDACTED]", note: "hi" },
      result: null,
      has_result: false,
      decision: "allow",
      reasons: [],
      outcome: null,
      manifest_version: "1.2.0",
      risk_score: 65,
      captured_ms: NOON,
      expires_ms: NOON + 7 * 86_400_000,
      redacted: true,
      verdict: "allow",
      depends_on: [0],
      mode: "enforce",
      approval_used: false,
      finished_ms: null,
      logical_call: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
  });

  it("gets its result and outcome when the call finishes", async () => {
    verifies("ops.capture.result-when-finished", "ops.capture.outcome");
    const s = await capturing();
    await s.open("r");
    for (const tool of ["crm.open", "crm.get", "crm.get", "crm.get"]) await s.ask("r", tool, {});
    expect((await s.captured()).map(({ outcome, has_result }) => [outcome, has_result])).toEqual(
      Array(4).fill([null, false]),
    );
    s.env.setNow(NOON + 500);
    await s.done("r", 0, { status: "succeeded", result: { id: 7, mail: "ann@example.com" } });
    await s.done("r", 1, { status: "failed", error: "no" });
    await s.done("r", 2, { status: "uncertain" });
    const [first, second, third, fourth] = await s.captured();
    expect(first).toMatchObject({
      outcome: "succeeded",
      has_result: true,
      result: { id: 7, mail: "[PII:email]" },
      finished_ms: NOON + 500,
      redacted: true,
    });
    expect(second).toMatchObject({ outcome: "failed", has_result: false, result: null });
    expect([third!.outcome, fourth!.outcome]).toEqual(["uncertain", null]);
    await s.perform(
      resolveOutcome,
      { run_id: "r", step: 2, status: "succeeded", note: "looked", result: null },
      principal("op", "operator"),
    );
    expect((await s.captured())[2]).toMatchObject({ outcome: "succeeded", has_result: true, result: null });
  });

  it("has no step for a refused call, and tells a missing approval from a refusal", async () => {
    verifies("ops.capture.no-step-when-blocked");
    const s = await capturing({ policy: POLICY });
    await s.open("r");
    await s.ask("r", "mail.send", {});
    await s.ask("r", "pay.charge", { amount: 80 });
    await s.open("o", "observe");
    await s.ask("o", "mail.send", {});
    await s.ask("o", "pay.charge", { amount: 80 });
    const calls = await s.captured();
    expect(calls.map(({ step, decision, verdict }) => [step, decision, verdict])).toEqual([
      [null, "block", "block"],
      [null, "block", "needs_approval"],
      [0, "would_block", "block"],
      [1, "would_block", "needs_approval"],
    ]);
    expect(calls[0]!.reasons).toEqual(["no mail"]);
  });

  it("knows the use of an approval", async () => {
    const s = await capturing({ policy: POLICY });
    await s.open("r");
    const decision = await s.ask("r", "pay.charge", { amount: 80 });
    const id = /request (apr_\S+)/.exec((decision as { reasons: string[] }).reasons.join())![1];
    await s.perform(approveRequest, { approval_id: id! }, principal("boss", "approver"));
    await s.ask("r", "pay.charge", { amount: 80 });
    expect((await s.captured()).map(({ verdict, approval_used }) => [verdict, approval_used])).toEqual([
      ["needs_approval", false],
      ["allow", true],
    ]);
  });

  it("is nothing while capture is off", async () => {
    verifies("ops.capture.only-when-on");
    const s = await capturing({ capture: "{}" });
    await s.open("r");
    await s.call("r", "crm.get", { a: 1 });
    expect(s.app.capture).toBeNull();
    expect(await s.captured()).toEqual([]);
  });
});

it("writes no value that it should not have", async () => {
  verifies("ops.redaction.before-writing", "ops.capture.arguments-redacted");
  const written: string[] = [];
  class Watched extends MemoryStore {
    override transact<T>(unit: UnitOfWork<T>): Promise<T> {
      return super.transact({
        ...unit,
        run: (tx) =>
          unit.run({
            get: (table, key) => tx.get(table, key),
            delete: (table, key) => tx.delete(table, key),
            expect: () => {},
            append: (draft) => tx.append(draft),
            head: tx.head,
            put: (table, key, doc) => {
              if (table === "captures") written.push(JSON.stringify(doc));
              tx.put(table, key, doc);
            },
          }),
      });
    }
  }
  const s = await capturing({ store: new Watched() });
  await s.open("r");
  const secret = ["ghp_", "16C7e42F292c6912E7710c838347Ae178B4a"].join("");
  const canaries = [secret, "ann@example.com", "4111 1111 1111 1111", "123-45-6789", "+1 202 555 0143"];
  await s.call("r", "crm.open", { a: [canaries], [secret]: 1 }, { echo: canaries });
  await s.call("r", "crm.create", { email: "plain-canary" }, { id: 1, token: "token-canary" });
  await s.captured();
  expect(written.length).toBeGreaterThanOrEqual(2);
  for (const canary of [...canaries, "plain-canary", "token-canary"])
    expect([canary, written.join().includes(canary)]).toEqual([canary, false]);
  expect(s.logged.join()).not.toContain("canary");
});

describe("expiry and deletion", () => {
  it("does not list expired calls, and deletes them when asked", async () => {
    verifies("ops.capture-state.expired", "ops.capture.expired-not-listed");
    verifies("ops.capture-state.purge-expired");
    const s = await capturing({ capture: "{enabled: true, ttl: 1h}" });
    const { store } = s.app.core;
    await s.open("r");
    await s.call("r", "crm.get", { n: 1 });
    s.env.setNow(NOON + 1_800_000);
    await s.call("r", "crm.get", { n: 2 });
    expect(await s.captured()).toHaveLength(2);
    s.env.setNow(NOON + 3_600_000);
    expect((await s.captured()).map(({ args }) => args)).toEqual([{ n: 2 }]);
    expect(await store.count("captures")).toBe(2);
    expect(await purgeCaptures(store, { expired_at_ms: s.env.now() })).toBe(1);
    expect(await store.count("captures")).toBe(1);
    expect(await purgeCaptures(store, { expired_at_ms: s.env.now() })).toBe(0);
  });

  it("deletes everything of one run, expired or not", async () => {
    verifies("ops.capture-state.purge-run");
    const s = await capturing({ capture: "{enabled: true, ttl: 1h}" });
    const { store } = s.app.core;
    for (const run of ["a", "b"]) {
      await s.open(run);
      for (let n = 0; n < 130; n++) await s.ask(run, "crm.get", { n });
    }
    s.env.setNow(NOON + 3_600_000);
    await s.ask("a", "crm.get", { n: "late" });
    await s.captured();
    expect(await purgeCaptures(store, { run_id: "a" })).toBe(131);
    expect(await store.count("captures", { owner: "b" })).toBe(130);
    expect(await store.count("captures")).toBe(130);
  });

  it("is read by run, by tool and by time, in order and in pages", async () => {
    const s = await capturing();
    const { store } = s.app.core;
    for (const run of ["a", "b"]) await s.open(run);
    for (let n = 0; n < 300; n++) {
      if (n % 3 === 0) s.env.setNow(NOON + n);
      await s.ask(n % 2 === 0 ? "a" : "b", n % 5 === 0 ? "crm.open" : "crm.get", { n });
    }
    const all = await s.captured();
    expect(all.map(({ args }) => (args as { n: number }).n)).toEqual(
      Array.from({ length: 300 }, (_, n) => n),
    );
    const read = async (query: Parameters<typeof capturedPages>[1]) => {
      let n = 0;
      for await (const page of capturedPages(store, query, s.env.now())) n += page.length;
      return n;
    };
    expect(await read({ run_id: "a" })).toBe(150);
    expect(await read({ tool: "crm.open" })).toBe(60);
    expect(await read({ run_id: "b", tool: "crm.open", since_ms: NOON + 150 })).toBe(15);
    expect(await read({ until_ms: NOON + 149 })).toBe(150);
  });
});

describe("never in the way", () => {
  it("a store that refuses captures is a warning, and decisions continue", async () => {
    class Refusing extends MemoryStore {
      refuse = false;
      override transact<T>(unit: UnitOfWork<T>): Promise<T> {
        return super.transact({
          ...unit,
          run: (tx) => {
            const put: typeof tx.put = (table, key, doc) => {
              if (table === "captures" && this.refuse) throw new SvcError("unavailable", "no room");
              tx.put(table, key, doc);
            };
            return unit.run({
              get: (table, key) => tx.get(table, key),
              delete: (table, key) => tx.delete(table, key),
              expect: () => {},
              append: (draft) => tx.append(draft),
              head: tx.head,
              put,
            });
          },
        });
      }
    }
    const store = new Refusing();
    const s = await capturing({ store });
    await s.open("r");
    store.refuse = true;
    for (let n = 0; n < 5; n++) await s.call("r", "crm.get", { n });
    await s.app.capture!.drain(60_000);
    store.refuse = false;
    await s.call("r", "crm.get", { n: 5 });
    expect((await s.captured()).map(({ args }) => args)).toEqual([{ n: 5 }]);
    expect(s.app.capture!.stats().failed).toBeGreaterThan(0);
    const warned = s.logged.filter((line) => line.includes("calls were not captured"));
    expect(warned.length).toBeGreaterThan(0);
    expect(warned[0]).toContain("no room");
  });

  it("drops what a store cannot take in time, and says how many", async () => {
    const s = await capturing();
    await s.open("r");
    const { core, log } = s.app;
    const stuck = { ...core, store: Object.assign(Object.create(core.store) as typeof core.store, {}) };
    let release: () => void = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    stuck.store.transact = async (unit) => {
      await gate;
      return core.store.transact(unit);
    };
    const recorder = new CaptureRecorder(stuck, { ttl_ms: 1_000, redact_pii: true }, log);
    const run = (await core.store.get("runs", "r"))!;
    for (let n = 0; n < 10_500; n++) {
      const record = { event: "intended", run_id: "r", run_seq: n, seq: n, ts_ms: NOON } as never;
      recorder.recorded([record]);
      recorder.intentDecided({
        run: { ...run, next_run_seq: n + 1 },
        tool: "crm.get",
        args: { n },
        decision: { decision: "allow", step: n },
        needs_approval: false,
        manifest: null,
        risk_score: 0,
        depends_on: [],
        took_ms: 1,
      });
    }
    expect(recorder.stats().dropped).toBe(500);
    await recorder.drain(10);
    expect(s.logged.join()).toContain("too many calls are waiting to be captured");
    release();
    await recorder.drain(20_000);
    expect(recorder.stats()).toMatchObject({ queued: 0, ok: 10_000 });
  });

  it("an outcome that comes ahead of its call waits for it", async () => {
    const s = await capturing();
    await s.open("r");
    const { core, log } = s.app;
    await s.app.capture!.drain(60_000);
    const second = new CaptureRecorder(core, { ttl_ms: 60_000, redact_pii: true }, log);
    const decision = await s.ask("r", "crm.get", { a: 1 });
    const run = (await core.store.get("runs", "r"))!;
    const step = (await core.store.get("steps", "r/0"))!;
    await s.app.capture!.drain(60_000);
    await purgeCaptures(core.store, { run_id: "r" });
    second.outcomeReported({
      run,
      step: { ...step, finished_ms: NOON },
      status: "succeeded",
      result: 1,
      manifest: null,
    });
    await aMoment();
    second.recorded([
      { event: "intended", run_id: "r", run_seq: 0, seq: step.intended_seq, ts_ms: NOON } as never,
    ]);
    const call = { run: { ...run, next_run_seq: 1 }, tool: "crm.get", args: { a: 1 }, decision };
    second.intentDecided({
      ...call,
      needs_approval: false,
      manifest: null,
      risk_score: 0,
      depends_on: [],
      took_ms: 1,
    });
    await second.drain(60_000);
    await second.drain(60_000);
    expect((await s.captured()).map(({ outcome, result }) => [outcome, result])).toEqual([["succeeded", 1]]);
  });

  it("changes nothing else: ledger and state are the same with it and without", async () => {
    const both = await Promise.all([
      capturing({ policy: POLICY }),
      capturing({ policy: POLICY, capture: "{}" }),
    ]);
    for (const s of both) {
      await s.open("r");
      await s.call("r", "crm.get", { mail: "ann@example.com" });
      await s.ask("r", "mail.send", {});
      await s.ask("r", "pay.charge", { amount: 80 });
      await s.captured();
    }
    const [on, off] = await Promise.all(both.map((s) => everythingOf(s.app.core.store)));
    expect(on).toBe(off);
  });
});

it("captured calls are reached from the command line only", () => {
  verifies("ops.capture.no-other-surface");
  expect(HTTP_TABLE.filter(({ path, op }) => /captur/.test(path + op.id))).toEqual([]);
  const surfaces = ["http", "console", "gateway"].flatMap((folder) => filesUnder(`src/${folder}`, ".ts"));
  const reading = surfaces.filter((path) => /from "[./]+capture\//.test(sourceFile(path).withStrings));
  expect(reading).toEqual([]);
});
