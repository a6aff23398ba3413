import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  BlockedError,
  connect,
  open,
  type RemoteSvc,
  RollbackInterrupted,
  type Svc,
  UncertainError,
} from "../../src/index.ts";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { type ServerProcess, startSvcServer } from "../support/cli.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const folder = tempDir("library");
const MANIFESTS = `
- tool: thing.make
  effect: compensable
  permission: thing.write
  compensation: {tool: thing.unmake, args: {id: $result.id, name: $args.name}}
  verification: {tool: thing.get, args: {id: $result.id}, expect: {gone: true}, retries: 0}
- {tool: thing.look, effect: read, permission: thing.read}
- {tool: thing.ask, effect: irreversible, permission: thing.write}
- tool: thing.set
  effect: reversible
  permission: thing.write
  before: {tool: thing.look, args: {}, ignore: [$before.at]}
  compensation: {tool: thing.set, args: {text: $before.text}, kind: inverse}
`;
const POLICY =
  "version: 1\nrules:\n  - {id: ask, match: {tool: thing.ask}, action: require_approval, reason: ask first, hint: look instead}\n";
writeFileSync(join(folder, "manifests.yaml"), MANIFESTS);
writeFileSync(join(folder, "policy.yaml"), POLICY);
const permissions = ["thing.write", "thing.read"];

/** The same behaviour is wanted of an embedded engine and of a remote one. */
function behaves(svc: () => Svc | RemoteSvc): void {
  const make = (id: number, name = "n") => ({ tool: "thing.make", args: { name, id }, reason: "needed" });
  const openRun = () => (svc() as Svc).run({ actor: "bot", permissions });

  it("calls, and gives the function's own result back", async () => {
    verifies("contract.library.call", "contract.library.run", "core.purpose.agent-executes");
    const run = await openRun();
    expect(await run.call(make(1), async (step) => ({ id: 1, step }))).toEqual({ id: 1, step: 0 });
    expect(await run.call({ tool: "thing.look", args: {}, reason: "r" }, () => "plain")).toBe("plain");
  });

  it("throws BlockedError with reasons and the approval that waits", async () => {
    verifies("contract.readings.blocked-error", "beyond.hint.library");
    const run = await openRun();
    let ran = false;
    const blocked = run.call({ tool: "thing.ask", args: {}, reason: "r" }, () => {
      ran = true;
    });
    const error = (await blocked.catch((reason: unknown) => reason)) as BlockedError;
    expect(error).toBeInstanceOf(BlockedError);
    expect(error.reasons[0]).toBe("ask first");
    expect(error.hints).toEqual(["look instead"]);
    expect(error.approval_id).toMatch(/^apr_/);
    expect(ran).toBe(false);
    const unknown = run.call({ tool: "thing.none", args: {}, reason: "r" }, () => 1);
    await expect(unknown).rejects.toMatchObject({ approval_id: null, hints: [] });
  });

  it("records a thrown error: failed, or uncertain when nobody can know", async () => {
    verifies("contract.readings.call-failed", "contract.readings.call-uncertain");
    const run = await openRun();
    await expect(run.call(make(1), () => Promise.reject(new Error("boom")))).rejects.toThrow("boom");
    await expect(run.call(make(2), () => Promise.reject(new UncertainError("hm")))).rejects.toThrow("hm");
    await expect(run.call(make(3), () => new Promise(() => {}), { timeout_ms: 20 })).rejects.toBeInstanceOf(
      UncertainError,
    );
    expect((await run.plan()).actions.map(({ step, kind }) => [step, kind])).toEqual([
      [2, "unresolved"],
      [1, "unresolved"],
    ]);
  });

  it("tells what became of a call whose result or error cannot be kept exactly", async () => {
    verifies("beyond.library.inexact");
    const run = await openRun();
    const nested = (levels: number): unknown => (levels === 0 ? [] : [nested(levels - 1)]);
    const results = [{ id: "cut \ud83d" }, nested(100), nested(63), { id: 2 ** 60 }];
    for (const result of results) expect(await run.call(make(1), () => result)).toBe(result);
    const cut = new Error("cut \ud83d");
    await expect(run.call(make(2), () => Promise.reject(cut))).rejects.toBe(cut);
    await expect(run.call(make(3), () => Promise.reject(new Error()))).rejects.toThrow();
    const set = { tool: "thing.set", args: {}, reason: "r" };
    const made: string[] = [];
    const tooDeep = run.call(set, () => void made.push("made"), { read: () => nested(63) as never });
    await expect(tooDeep).rejects.toThrow("before: thing.look could not be read: read: nesting is deeper");
    const failing = run.call(set, () => void made.push("made"), { read: () => Promise.reject(cut) });
    await expect(failing).rejects.toThrow("before: thing.look could not be read: cut");
    expect(made).toEqual([]);
    const statuses = await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map((step) => run.status(step)));
    expect(statuses).toEqual([...Array(4).fill("succeeded"), ...Array(4).fill("failed")]);
  });

  it("ends an undo whose error cannot be kept exactly, and rolls on", async () => {
    const run = await openRun();
    for (const id of [1, 2]) await run.call(make(id), () => ({ id }));
    const report = await run.rollback({
      compensator: ({ args }) =>
        (args as { id: number }).id === 2
          ? Promise.reject(new Error(`cut \ud83d${"x".repeat(2_000_000)}`))
          : Promise.resolve(),
      verifier: async () => ({ gone: true, text: "x".repeat(2_000_000) }),
      retries: 1,
    });
    expect(report.failed.map(({ step }) => step)).toEqual([1]);
    // On the ledger half of a character would make a record that strict readers cannot verify.
    const again = await run.rollback({
      compensator: () => Promise.reject(new Error("cut \ud83d")),
      retries: 1,
    });
    expect(again.failed).toMatchObject([{ step: 1, error: expect.stringContaining("cut \ufffd") }]);
    expect([...report.compensated, ...report.unverified]).toContain(0);
  });

  it("asks and reports by hand as well", async () => {
    verifies("contract.library.intent-outcome");
    const run = await openRun();
    const look = { tool: "thing.look", args: { id: 1 }, reason: "r" };
    expect(await run.intent(look)).toEqual({ decision: "allow", step: 0 });
    expect(await run.outcome(0, { status: "uncertain", error: "timeout" })).toEqual({
      step: 0,
      status: "uncertain",
    });
    await expect(run.outcome(0, { status: "succeeded" })).rejects.toMatchObject({ code: "conflict" });
    expect((await run.intent({ ...look, tool: "thing.none" })).decision).toBe("block");
  });

  it("plans and rolls back, newest first, with read-back", async () => {
    verifies("contract.library.plan", "contract.library.rollback", "core.report.same-on-all-doors");
    const run = await openRun();
    const undone: unknown[] = [];
    for (const id of [7, 8]) await run.call(make(id, `n${id}`), () => ({ id }));
    expect(await run.plan()).toMatchObject({ fully_reversible: true, actions: [{ step: 1 }, { step: 0 }] });
    const report = await run.rollback({
      compensator: async (call) =>
        void undone.push([call.tool, call.args, call.original_tool, call.idempotency_key.length]),
      verifier: async ({ tool, arguments: args }) => ({
        gone: tool === "thing.get" && (args as { id: number }).id > 0,
        more: 1,
      }),
      retries: 2,
    });
    expect(report).toMatchObject({ compensated: [1, 0], failed: [], complete: true });
    expect(undone).toEqual([
      ["thing.unmake", { id: 8, name: "n8" }, "thing.make", 64],
      ["thing.unmake", { id: 7, name: "n7" }, "thing.make", 64],
    ]);
    const again = await run.rollback({ compensator: async () => void undone.push("again") });
    expect(again.complete).toBe(true);
    expect(undone).toHaveLength(2);
  });

  /** A resource that was "old", was set to "new", and whose undo fails at first; `meanwhile` names what happens then. */
  async function undoneAtSecond(meanwhile: (thing: { text: string }) => void) {
    const run = await openRun();
    const thing = { text: "old" };
    let at = 0;
    const read = async () => ({ text: thing.text, at: at++ });
    const set = { tool: "thing.set", args: { text: "new" }, reason: "needed" };
    await run.call(set, () => Object.assign(thing, { text: "new" }), { read });
    let calls = 0;
    const rollBack = () =>
      run.rollback({
        async compensator({ args }) {
          if (++calls > 1) thing.text = (args as { text: string }).text;
          else {
            meanwhile(thing);
            throw new Error("no answer");
          }
        },
        verifier: read,
        retries: 3,
      });
    return { report: await rollBack(), rollBack, thing, calls: () => calls };
  }

  it("reads again before each further attempt: another's write is not replaced", async () => {
    verifies("beyond.conflict.each-attempt");
    const { report, thing, calls, rollBack } = await undoneAtSecond((thing) => {
      thing.text = "theirs";
    });
    const left = [{ step: 0, error: expect.stringMatching(/^conflict: /), conflict: true }];
    expect(report).toMatchObject({ compensated: [], failed: left, complete: false });
    expect(report.failed[0]?.current_hash).toMatch(/^sha256:/);
    expect([thing.text, calls()]).toEqual(["theirs", 1]);
    expect(await rollBack()).toMatchObject({ failed: left, complete: false });
    expect([thing.text, calls()]).toEqual(["theirs", 1]);
  });

  it("looks again before each further attempt: what took effect after all is not done twice", async () => {
    verifies("beyond.conflict.each-attempt");
    const done = await undoneAtSecond((thing) => {
      thing.text = "old";
    });
    expect(done.report).toMatchObject({ compensated: [0], failed: [], complete: true });
    expect([done.thing.text, done.calls()]).toEqual(["old", 1]);
    const again = await undoneAtSecond(() => {});
    expect(again.report).toMatchObject({ compensated: [0], failed: [], complete: true });
    expect([again.thing.text, again.calls()]).toEqual(["old", 2]);
  });

  it("stopped in the middle of an undo, it does not report that the undo failed", async () => {
    const run = await openRun();
    for (const id of [1, 2]) await run.call(make(id), () => ({ id }));
    const stop = new AbortController();
    const tried: number[] = [];
    const stopped = run.rollback({
      async compensator({ step }, signal) {
        tried.push(step);
        if (step === 1) return;
        stop.abort();
        signal.throwIfAborted();
      },
      verifier: async () => ({ gone: true }),
      retries: 1,
      signal: stop.signal,
    });
    const error = (await stopped.catch((reason: unknown) => reason)) as RollbackInterrupted;
    expect(error).toBeInstanceOf(RollbackInterrupted);
    expect(error.report).toMatchObject({ compensated: [1], failed: [] });
    expect(tried).toEqual([1, 0]);
    const [left] = (await run.plan()).actions;
    expect(left).toMatchObject({ step: 0, kind: "compensate" });
    expect(left).not.toHaveProperty("last_error");
  });

  it("stopped, it does not wait for a compensator or a verifier that ignores it", async () => {
    for (const stuck of ["compensator", "verifier"]) {
      const run = await openRun();
      await run.call(make(1), () => ({ id: 1 }));
      const stop = new AbortController();
      const hang = async () => {
        stop.abort();
        return new Promise<never>(() => {});
      };
      const stopped = run.rollback({
        compensator: stuck === "compensator" ? hang : async () => {},
        verifier: hang,
        signal: stop.signal,
      });
      await expect(stopped).rejects.toBeInstanceOf(RollbackInterrupted);
      expect((await run.plan()).actions[0]).not.toHaveProperty("last_error");
    }
  });

  it("without a verifier a declared read-back ends unverified", async () => {
    const run = await openRun();
    await run.call(make(1), () => ({ id: 1 }));
    expect(await run.rollback({ compensator: async () => {} })).toMatchObject({
      compensated: [0],
      unverified: [0],
      complete: false,
    });
  });
}

describe("open", () => {
  let svc: Svc;
  beforeAll(async () => {
    svc = await open({
      manifests: join(folder, "manifests.yaml"),
      policy: join(folder, "policy.yaml"),
      store: "files",
      data: join(folder, "embedded"),
    });
  });
  afterAll(() => svc.close());
  behaves(() => svc);

  it("refuses values that JSON cannot keep", async () => {
    verifies("contract.library.open");
    const run = await svc.run({ actor: "bot", permissions });
    const bad = { tool: "thing.look", args: { when: new Date() } as never, reason: "r" };
    await expect(run.intent(bad)).rejects.toThrow("only plain objects are JSON");
  });
});

describe("connect", () => {
  let server: ServerProcess;
  let svc: RemoteSvc;
  beforeAll(async () => {
    const keys = join(folder, "keys.json");
    const key = {
      name: "bot",
      roles: ["agent", "operator"],
      max_permissions: ["*"],
      key_sha256: sha256Hex("bot-key"),
    };
    writeFileSync(keys, JSON.stringify([key]), { mode: 0o600 });
    server = await startSvcServer([
      ...["-m", join(folder, "manifests.yaml"), "--policy", join(folder, "policy.yaml")],
      ...["-d", join(folder, "remote"), "--keys", keys],
    ]);
    svc = await connect({ url: server.url, key: "bot-key" });
  });
  afterAll(async () => {
    await svc.close();
    await server.stop();
  });
  behaves(() => svc);

  it("a step that another worker has begun is not reported as failed", async () => {
    const run = await svc.run({ permissions });
    await run.call({ tool: "thing.make", args: { name: "n", id: 1 }, reason: "r" }, () => ({ id: 1 }));
    const begun = new AbortController();
    const first = run.rollback({
      compensator: async () => {
        begun.abort();
        return new Promise<never>(() => {});
      },
      signal: begun.signal,
    });
    await expect(first).rejects.toBeInstanceOf(RollbackInterrupted);
    await expect(run.rollback({ compensator: async () => {} })).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining("already in progress"),
    });
  });

  it("tells what became of a call whose values do not fit into a request, and makes none that it could not tell", async () => {
    verifies("beyond.library.fits");
    const run = await svc.run({ permissions });
    const look = { tool: "thing.look", args: {}, reason: "r" };
    expect(await run.call(look, () => "x".repeat(2_000_000))).toHaveLength(2_000_000);
    const failing = run.call(look, () => {
      throw new Error("x".repeat(2_000_000));
    });
    await expect(failing).rejects.toThrow("xxx");
    let text = "x".repeat(400_000);
    const set = { tool: "thing.set", args: { text: "n" }, reason: "needed" };
    const grow = (n: number) => {
      const make = () => {
        text = "y".repeat(n);
      };
      return run.call(set, make, { read: async () => ({ text }) });
    };
    await grow(900_000);
    await expect(grow(10)).rejects.toThrow(
      "before: thing.look could not be read: the answer has 900011 bytes",
    );
    expect(text).toHaveLength(900_000);
    const statuses = await Promise.all([0, 1, 2, 3].map((step) => run.status(step)));
    expect(statuses).toEqual(["succeeded", "failed", "succeeded", "failed"]);
    const { actions } = await run.plan();
    expect(actions.find(({ step }) => step === 2)).toMatchObject({ kind: "compensate" });
  });

  it("speaks the server's own words on an error", async () => {
    verifies("contract.library.connect");
    const stranger = await connect({ url: server.url, key: "nope" });
    await expect(stranger.run({ permissions })).rejects.toMatchObject({ code: "unauthenticated" });
    await stranger.close();
  });
});
