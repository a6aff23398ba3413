/** Reads before and after a call through the gateway and the library, and what the command line does with them. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { manifestProblems } from "../../src/rules/manifest/load.ts";
import { call, type GatewayTest, testGateway } from "../gateway/support/gateway.ts";
import { svc } from "../support/cli.ts";
import { speak } from "../support/io.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { docs, MANIFESTS } from "./support.ts";

const shelf = docs();
const DOC_UPSTREAM = fileURLToPath(new URL("./doc-upstream.mjs", import.meta.url));

describe("a manifest", () => {
  const problems = (before: string, more = "") =>
    manifestProblems(
      `- {tool: get, effect: read, permission: p}\n- {tool: set, effect: idempotent, permission: p}\n- tool: put\n  effect: reversible\n  permission: p\n  before: ${before}\n  compensation: {tool: put, args: {text: $before.text}}\n${more}`,
      "m.yaml",
    );

  it.each([
    ["{tool: set}", "m.yaml:6: tool put: before.tool: set is declared idempotent"],
    ["{tool: get, args: {id: $result.id}}", "m.yaml:6: tool put: before.args.id: is a path into $result"],
    ["{tool: get, absent: {}}", "m.yaml:6: tool put: before.absent: matches every answer"],
    [
      "{tool: get, ignore: [$before]}",
      "m.yaml:6: tool put: before.ignore[0]: would ignore the entire answer",
    ],
    ["{tool: get, ignore: [$args.x]}", "m.yaml:6: tool put: before.ignore[0]: is not a path into $before"],
    ["{tool: get, max_bytes: 0}", "m.yaml:6: tool put: before.max_bytes:"],
    ["{args: {}}", "m.yaml:6: tool put: before.tool: is missing"],
    ["null", "m.yaml:7: tool put: compensation.args.text: is a path into $before, but no before is declared"],
  ])(`refuses before: %s ${verifies("beyond.before.validated")}`, (before, problem) => {
    expect(problems(before).join("\n")).toContain(problem);
  });

  it.each([
    ["soon", "compensation.until: is neither a duration"],
    ["0h", "compensation.until: must be greater than zero"],
    ["$before.at", "compensation.until: is not a path to a time"],
  ])(`refuses until: %s ${verifies("beyond.horizon.validated")}`, (until, problem) => {
    const text = `- {tool: put, effect: reversible, permission: p, compensation: {tool: put, until: ${until}}}`;
    expect(manifestProblems(text, "m.yaml").join("\n")).toContain(problem);
  });

  it("with a whole before has no problems", () => {
    expect(manifestProblems(MANIFESTS, "m.yaml")).toEqual([]);
  });
});

const OWN_MANIFESTS = `
- {tool: own.doc.get, effect: read, permission: p}
- {tool: own.doc.drop, effect: idempotent, permission: p}
- tool: own.doc.put
  effect: reversible
  permission: p
  before: {tool: own.doc.get, args: {id: $args.id}, absent: {exists: false}}
  compensation:
    tool: own.doc.put
    args: {id: $args.id, text: $before.text}
    kind: inverse
    when_absent: {tool: own.doc.drop, args: {id: $args.id}}
  verification: {tool: own.doc.get, args: {id: $args.id}, expect: {text: $before.text}}
`;

describe("the gateway", () => {
  let g: GatewayTest;
  beforeAll(async () => {
    g = await testGateway({
      manifests: `${MANIFESTS}- {tool: doc.drop, effect: idempotent, permission: p}\n${OWN_MANIFESTS}`,
      upstreams: [
        { name: "docs", command: process.execPath, args: [DOC_UPSTREAM, shelf.folder] },
        {
          name: "own",
          namespace: true,
          isolation: "session",
          command: process.execPath,
          args: [DOC_UPSTREAM],
        },
      ],
    });
  });
  const operator = () => g.connect("operator", { path: "/operator/mcp" });
  const undo = async (run_id: string) =>
    (await call(await operator(), "svc.execute_rollback", { run_id, confirm: true })).structuredContent;
  const stepOf = async (run: string, step: number) =>
    (await g.service.core.store.get("steps", `${run}/${step}`))!;

  it("reads before it forwards and after, and restores", async () => {
    verifies("beyond.before.gateway", "beyond.before.restores");
    shelf.write("g", "old");
    const agent = await g.connect("agent");
    const { _meta } = await call(agent, "doc.put", { id: "g", text: "new" });
    const run_id = _meta["svc/run_id"];
    expect(shelf.text("g")).toBe("new");
    expect(await stepOf(run_id, 0)).toMatchObject({
      before_by: "gateway",
      before_hash: expect.stringMatching(/^sha256:/),
      after_hash: expect.stringMatching(/^sha256:/),
    });
    expect(await g.events(run_id)).toEqual(["intended", "succeeded"]);
    const { structuredContent } = await call(await operator(), "svc.execute_rollback", {
      run_id,
      confirm: true,
    });
    expect(structuredContent).toMatchObject({ compensated: [0], complete: true });
    expect(shelf.text("g")).toBe("old");
  });

  it("removes a new resource, and reads back that it is gone", async () => {
    verifies("beyond.before.absent", "beyond.before.expect");
    const agent = await g.connect("agent");
    const { _meta } = await call(agent, "doc.put", { id: "made", text: "new" });
    const report = await undo(_meta["svc/run_id"]);
    expect(report).toMatchObject({ compensated: [0], failed: [], unverified: [], complete: true });
    expect(shelf.text("made")).toBeUndefined();
  });

  it("reads and undoes over the connection that the call went over", async () => {
    verifies("beyond.isolation.reads");
    const [agent, modern] = [await g.connect("agent"), await g.connect("agent", { mode: "modern" })];
    await call(modern, "own.doc.put", { id: "x", text: "the principal's" });
    await call(agent, "own.doc.put", { id: "x", text: "one" });
    const { _meta } = await call(agent, "own.doc.put", { id: "x", text: "two" });
    expect(await undo(_meta["svc/run_id"])).toMatchObject({ compensated: [1, 0], complete: true });
    const shown = async (client: typeof agent) =>
      (await call(client, "own.doc.get", { id: "x" })).structuredContent;
    expect(await shown(agent)).toEqual({ exists: false });
    expect(await shown(modern)).toEqual({ exists: true, text: "the principal's" });
  });

  it("leaves alone what it cannot see any more, or cannot distinguish", async () => {
    verifies("beyond.isolation.reads");
    const headers = { "svc-run-id": "two-sessions" };
    const [a, b] = [await g.connect("agent", { headers }), await g.connect("agent", { headers })];
    await call(a, "own.doc.put", { id: "x", text: "a's" });
    await call(b, "own.doc.get", { id: "x" });
    const error = expect.stringMatching(/^conflict: not checked/);
    expect((await undo("two-sessions")).failed).toMatchObject([{ step: 0, error }]);
    const end = (client: typeof a) =>
      (client.transport as unknown as { terminateSession(): Promise<void> }).terminateSession();
    await Promise.all([end(a), end(b)]);
    const modern = await g.connect("agent", { mode: "modern" });
    await call(modern, "own.doc.put", { id: "x", text: "the principal's" });
    expect((await undo("two-sessions")).failed).toMatchObject([{ step: 0, conflict: true }]);
    expect((await call(modern, "own.doc.get", { id: "x" })).structuredContent.text).toBe("the principal's");
  });

  it("forwards nothing where the read fails or is too long, unless the manifest lets it pass", async () => {
    verifies("beyond.before.read-fails", "beyond.before.not-required");
    const agent = await g.connect("agent");
    shelf.write("s", "more than ten bytes");
    for (const [tool, id, why] of [
      ["doc.put", "broken", /doc\.get could not be read: no such shelf/],
      ["doc.small", "s", /more than max_bytes \(10\)/],
    ] as const) {
      const answer = await call(agent, tool, { id, text: "new" });
      expect(answer.isError).toBe(true);
      const trail = await g.trail(answer._meta["svc/run_id"]);
      expect(trail.slice(-2)).toMatchObject([
        { event: "intended" },
        { event: "failed", detail: expect.stringMatching(why) },
      ]);
      expect(shelf.text(id)).not.toBe("new");
    }
    const passed = await call(agent, "doc.plain", { id: "broken", text: "new" });
    expect(passed.isError).toBeUndefined();
    const { structuredContent } = await call(await operator(), "svc.plan_rollback", {
      run_id: passed._meta["svc/run_id"],
    });
    expect(structuredContent.actions[0]).toMatchObject({ kind: "unrecoverable" });
  });

  it("restores the state before the run, if an operator confirms it", async () => {
    verifies("beyond.conflict.before-run-surfaces");
    shelf.write("twice", "old");
    const agent = await g.connect("agent", { headers: { "svc-run-id": "before-run" } });
    for (const text of ["one", "two"]) await call(agent, "doc.put", { id: "twice", text });
    shelf.write("twice", "foreign");
    const admin = await operator();
    const run_id = "before-run";
    const { structuredContent: plan } = await call(admin, "svc.plan_rollback", { run_id });
    const { step, current_hash, before_run } = plan.actions[0];
    expect(before_run).toMatchObject({ steps: [1, 0], would_be: { text: "old" } });
    const word = { overwrite: step, to: "before_run", current_hash, reason: "agreed" };
    const done = await call(admin, "svc.execute_rollback", { run_id, confirm: true, ...word });
    expect(done.structuredContent).toMatchObject({ compensated: [1, 0], complete: true });
    expect(shelf.text("twice")).toBe("old");
  });

  it("goes over a conflict on an operator's word alone", async () => {
    verifies("beyond.conflict.gateway");
    shelf.write("h", "old");
    const agent = await g.connect("agent");
    const { _meta } = await call(agent, "doc.put", { id: "h", text: "new" });
    const run_id = _meta["svc/run_id"];
    const step = _meta["svc/step"];
    shelf.write("h", "foreign");
    const admin = await operator();
    const rollback = async (more: object) =>
      (await call(admin, "svc.execute_rollback", { run_id, confirm: true, ...more })) as never as {
        isError?: boolean;
        structuredContent: { failed: { conflict: boolean }[]; compensated: number[] };
      };
    expect((await rollback({})).structuredContent.failed).toMatchObject([{ step, conflict: true }]);
    const { structuredContent: plan } = await call(admin, "svc.plan_rollback", { run_id });
    const { current_hash } = plan.actions.find((action: { step: number }) => action.step === step);
    expect((await rollback({ overwrite: step, current_hash })).isError).toBe(true);
    const done = await rollback({ overwrite: step, current_hash, reason: "agreed" });
    expect(done.structuredContent.compensated).toContain(step);
    expect(shelf.text("h")).toBe("old");
  });
});

describe("the library and the command line", () => {
  const folder = tempDir("undo-cli");
  const manifests = join(folder, "manifests.yaml");
  const data = join(folder, "data");
  writeFileSync(
    manifests,
    `${MANIFESTS}- {tool: lend, effect: reversible, permission: p, compensation: {tool: take, until: 2h}}\n- {tool: gone, effect: reversible, permission: p, compensation: {tool: take, until: $args.until}}\n`,
  );

  it("reads with the caller's own function, and the command line undoes, or leaves alone, what it did", async () => {
    verifies(
      "beyond.before.library",
      "beyond.before.read-fails",
      "beyond.conflict.not-checked",
      "beyond.conflict.cli",
      "beyond.horizon.cli",
      "beyond.horizon.plan",
    );
    const library = await open({ manifests, data });
    const run = await library.run({ actor: "bot", permissions: ["p"], run_id: "r" });
    const read = async ({ arguments: args }: { arguments: unknown }) =>
      shelf.show((args as { id: string }).id);
    shelf.write("l", "old");
    const put = (id: string) => ({ tool: "doc.put", args: { id, text: "new" }, reason: "r" });
    await run.call(put("l"), () => shelf.write("l", "new"), { read });
    let called = false;
    const failing = run.call(put("l2"), () => (called = true), {
      read: () => Promise.reject(new Error("shelf is locked")),
    });
    await expect(failing).rejects.toThrow("doc.get could not be read: shelf is locked");
    expect(called).toBe(false);
    const left = await run.rollback({ compensator: async () => null });
    expect(left.failed).toEqual([{ step: 0, error: "conflict: not checked", conflict: true }]);
    await run.call({ tool: "lend", args: {}, reason: "r" }, () => 1);
    await run.call({ tool: "gone", args: { until: "2020-01-01T00:00:00+02:00" }, reason: "r" }, () => 1);
    await library.close();

    const here = ["-d", data, "-m", manifests];
    const soon = await svc(["horizon", "--within", "3h", "--json", ...here]);
    expect(JSON.parse(soon.out)).toMatchObject({ run_id: "r", step: 2, tool: "lend" });
    expect((await svc(["horizon", "--within", "1h", ...here])).out).toBe("");
    expect(await svc(["horizon", "--within", "soon", ...here])).toMatchObject({ code: 1 });
    shelf.write("l", "foreign");
    const reader = ["--reader-cmd", shelf.reader];
    const plan = JSON.parse((await svc(["plan", "r", "--json", ...reader, ...here])).out);
    expect(plan.actions).toMatchObject([
      { step: 3, kind: "unrecoverable", closed: true, closes_ms: Date.parse("2019-12-31T22:00:00Z") },
      { step: 2, kind: "compensate", closes_ms: expect.any(Number) },
      { step: 0, conflict: true, was: { text: "old" }, is: { text: "foreign" } },
    ]);
    const rollback = (...more: string[]) =>
      svc(["rollback", "r", "--compensator-cmd", shelf.compensator, ...reader, ...more, ...here, "--json"]);
    const over = ["--overwrite", "0", "--current", plan.actions[2].current_hash];
    expect(await rollback(...over)).toMatchObject({ code: 1, err: expect.stringContaining("--reason") });
    shelf.write("l", "again");
    expect(await rollback(...over, "--reason", "agreed")).toMatchObject({
      code: 1,
      err: expect.stringContaining("has changed since the plan"),
    });
    expect(shelf.text("l")).toBe("again");
    shelf.write("l", "foreign");
    const done = await rollback(...over, "--reason", "agreed");
    expect(JSON.parse(done.out)).toMatchObject({
      compensated: expect.arrayContaining([0]),
      unrecoverable: [3],
    });
    expect(shelf.text("l")).toBe("old");
    expect(await svc(["verify", ...here])).toMatchObject({ code: 0 });
    const shown = await svc(["export", "--run", "r", ...here]);
    expect(shown.out).toContain('"before_hash":"sha256:');
    expect(shown.out).not.toContain("foreign");
  });

  it("makes no call without the read that it needs, and a plan without a reader reports it", async () => {
    verifies("beyond.before.no-reader", "beyond.before.not-required", "beyond.plan.unread-said");
    const library = await open({ manifests, data });
    const run = await library.run({ actor: "bot", permissions: ["p"], run_id: "blind" });
    const made: string[] = [];
    const put = (tool: string) => ({ tool, args: { id: "b", text: "new" }, reason: "r" });
    const bare = run.call(put("doc.put"), () => made.push("doc.put"));
    await expect(bare).rejects.toThrow("before: doc.get could not be read: the call was made without `read`");
    await run.call(put("doc.plain"), () => made.push("doc.plain"));
    expect(made).toEqual(["doc.plain"]);
    expect(await run.status(0)).toBe("failed");
    expect(await run.plan()).toMatchObject({ actions: [{ step: 1, kind: "unrecoverable" }] });

    const seen = await library.run({ actor: "bot", permissions: ["p"], run_id: "seen" });
    shelf.write("b", "old");
    await seen.call(put("doc.put"), () => shelf.write("b", "new"), { read: () => shelf.show("b") });
    await library.close();
    const here = ["-d", data, "-m", manifests];
    const unread = await svc(["plan", "seen", ...here]);
    expect(unread.out).toContain("run seen: reversible only if 1 step that was not read is unchanged");
    expect(unread.out).toContain("; current state not read");
    expect(unread.out).not.toContain("fully reversible");
    const read = await svc(["plan", "seen", "--reader-cmd", shelf.reader, ...here]);
    expect(read.out).toContain("run seen: fully reversible");
  });

  it("undoes and looks through the configured upstreams where no compensator is named", async () => {
    verifies("beyond.cli.rollback-upstreams", "beyond.cli.next-command", "beyond.cli.looks-upstreams");
    const place = tempDir("undo-upstreams");
    const upstream = { name: "docs", command: process.execPath, args: [DOC_UPSTREAM, shelf.folder] };
    const config = { manifests: "manifests.yaml", data: "data", upstreams: [upstream] };
    writeFileSync(join(place, "manifests.yaml"), MANIFESTS);
    writeFileSync(join(place, "svc.config.yaml"), JSON.stringify(config));
    const library = await open({ manifests: join(place, "manifests.yaml"), data: join(place, "data") });
    const put = async (id: string, ...texts: string[]) => {
      const run = await library.run({ actor: `bot-${id}`, permissions: ["p"], run_id: id });
      shelf.write(id, "old");
      // As the upstream shows it, without the times that change by themselves.
      const read = async () => ({ exists: true, text: shelf.text(id)! });
      for (const text of texts) {
        const intent = { tool: "doc.put", args: { id, text }, reason: "r" };
        await run.call(intent, () => shelf.write(id, text), { read });
      }
    };
    await put("u", "one", "two");
    await put("v", "new");
    await put("w", "new");
    await library.close();
    const rollback = (...more: string[]) => svc(["rollback", "u", ...more], { cwd: place });
    shelf.write("u", "foreign");
    const plan = await svc(["plan", "u"], { cwd: place });
    expect([plan.code, plan.out]).toEqual([
      2,
      expect.stringContaining('now              {"exists":true,"text":"foreign'),
    ]);
    const left = await rollback();
    expect(left.code).toBe(2);
    expect(shelf.text("u")).toBe("foreign");
    const [, current] = /to overwrite 1: svc rollback u --overwrite 1 --current (\S+)/.exec(left.out)!;
    const done = await rollback("--overwrite", "1", "--current", current!, "--reason", "agreed", "--json");
    expect([done.code, JSON.parse(done.out)]).toMatchObject([0, { compensated: [1, 0], complete: true }]);
    expect(shelf.text("u")).toBe("old");
    verifies("beyond.incidents.pasted");
    shelf.write("w", "foreign");
    const pasted = await speak(["rollback", "w", "--overwrite", "0"], { cwd: place, answers: ["agreed"] });
    expect([pasted.code, pasted.out]).toEqual([
      0,
      expect.stringMatching(/before the call +\{.*old[\s\S]*now +\{.*foreign[\s\S]*Why do you overwrite/),
    ]);
    expect(shelf.text("w")).toBe("old");
    const contain = (...more: string[]) =>
      svc(["contain", "--actor", "bot-v", "--reason", "r", ...more], { cwd: place });
    shelf.write("v", "foreign");
    expect(await contain("--dry-run")).toMatchObject({ code: 2, out: expect.stringContaining("conflict") });
    shelf.write("v", "new");
    const contained = await contain();
    expect([contained.code, contained.out]).toEqual([
      0,
      expect.stringContaining("1 step undone, nothing left"),
    ]);
    expect(shelf.text("v")).toBe("old");
  });
});
