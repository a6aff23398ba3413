/** What a containment says beforehand of states that were captured, and what it then does with them. */
import { describe, expect, it } from "vitest";
import { type TestServer, testServer } from "../support/server.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";
import { docs, MANIFESTS } from "./support.ts";

async function withTwoWrites(config: (shelf: ReturnType<typeof docs>) => string) {
  const shelf = docs();
  const s = await testServer({
    manifests: MANIFESTS,
    config: `rollback: {${config(shelf)}}\n`,
    keys: [{ name: "bot", role: "agent" }],
  });
  await s.call("bot", "POST", "/v1/runs", { run_id: "r", permissions: ["p"] });
  for (const [step, id] of ["mine", "shared"].entries()) {
    const args = { id, text: "new" };
    await s.call("bot", "POST", "/v1/runs/r/intents", { tool: "doc.put", args, reason: "r" });
    const before = shelf.show(id);
    shelf.write(id, "new");
    const outcome = { status: "succeeded", before, after: shelf.show(id) };
    await s.call("bot", "POST", `/v1/runs/r/steps/${step}/outcome`, outcome);
  }
  return { s, shelf };
}

async function ended(s: TestServer, asked: object) {
  const { id } = (await s.call("admin", "POST", "/v1/contain", { ...asked, confirm: true })).body.job;
  const look = async () => (await s.call("auditor", "GET", `/v1/contain/${id}`)).body.job;
  await until(async () => (await look()).state !== "running", "the containment to end");
  return look();
}

async function contained(s: TestServer, actor = "bot") {
  const asked = { actor, reason: "r" };
  const told = (await s.call("admin", "POST", "/v1/contain", asked)).body;
  return { told, done: (await ended(s, asked)).report };
}

it("leaves others' later writes, and reports it beforehand", async () => {
  verifies("beyond.contain.dry-run");
  const { s, shelf } = await withTwoWrites(
    ({ compensator, reader }) => `compensator_cmd: "${compensator}", reader_cmd: "${reader}"`,
  );
  shelf.write("shared", "by another");
  const { told, done } = await contained(s);
  for (const report of [told, done])
    expect(report).toMatchObject({
      undone: 1,
      left: 1,
      complete: false,
      runs: [{ undone: [{ step: 0 }], cannot: [{ step: 1, why: expect.stringMatching(/^conflict: the /) }] }],
    });
  expect([shelf.text("mine"), shelf.text("shared")]).toEqual([undefined, "by another"]);
});

it("counts what it cannot read as left, beforehand as afterwards", async () => {
  verifies("beyond.contain.dry-run");
  const { s, shelf } = await withTwoWrites(({ compensator }) => `compensator_cmd: "${compensator}"`);
  const { told, done } = await contained(s);
  for (const report of [told, done])
    expect(report).toMatchObject({
      undone: 0,
      left: 2,
      complete: false,
      runs: [
        {
          undone: [],
          cannot: [1, 0].map((step) => ({ step, why: expect.stringMatching(/^conflict: not checked/) })),
        },
      ],
    });
  expect([shelf.text("mine"), shelf.text("shared")]).toEqual(["new", "new"]);
});

describe("runs that write the same document", () => {
  const shelf = docs();
  /** Undone and read in this process, as the commands would: a case has many of both. */
  async function server(...names: string[]): Promise<TestServer> {
    const s = await testServer({
      manifests: MANIFESTS,
      keys: names.map((name) => ({ name, role: "agent" })),
    });
    const args = (value: unknown) => value as { id: string; text: string };
    s.app.jobTools = {
      compensator: async (undo) => shelf.write(args(undo.args).id, args(undo.args).text),
      reader: async (read) => shelf.show(args(read.arguments).id),
      stop: s.app.background.signal,
    };
    for (const name of names) {
      shelf.write(name, "0");
      for (const run of ["a", "b"])
        await s.call(name, "POST", "/v1/runs", { run_id: `${name}-${run}`, permissions: ["p"] });
    }
    return s;
  }
  const writer = (s: TestServer, name: string) => {
    const steps: Record<string, number> = {};
    const intend = async (run: string, text: string) => {
      const call = { tool: "doc.put", args: { id: name, text }, reason: "r" };
      await s.call(name, "POST", `/v1/runs/${name}-${run}/intents`, call);
      const n = steps[run] ?? 0;
      steps[run] = n + 1;
      return async () => {
        const before = shelf.show(name);
        shelf.write(name, text);
        const outcome = { status: "succeeded", before, after: shelf.show(name) };
        await s.call(name, "POST", `/v1/runs/${name}-${run}/steps/${n}/outcome`, outcome);
      };
    };
    return { intend, write: async (run: string, text: string) => (await intend(run, text))() };
  };
  const undone = (report: { runs: { run_id: string; undone: { step: number }[] }[] }) =>
    Object.fromEntries(report.runs.map((run) => [run.run_id.at(-1), run.undone.map(({ step }) => step)]));

  it("are undone in one order, so that nothing but a foreign write is left, as was foretold", async () => {
    verifies("beyond.contain.ledger-order", "beyond.contain.dry-run");
    const s = await server("five", "three", "foreign", "overlap");
    for (const [name, writes, runs, text] of [
      ["five", ["a1", "b2", "a3", "b4", "a5"], { a: [2, 1, 0], b: [1, 0] }, "0"],
      ["three", ["a1", "b2", "a3"], { a: [1, 0], b: [0] }, "0"],
      ["foreign", ["a1", "b2", "x9", "a3", "b4"], { a: [1], b: [1] }, "9"],
    ] as const) {
      const { write } = writer(s, name);
      for (const [run, to] of writes) {
        if (run === "x") shelf.write(name, to!);
        else await write(run!, to!);
      }
      const { told, done } = await contained(s, name);
      for (const report of [told, done]) {
        expect([name, undone(report)]).toEqual([name, runs]);
        const left = writes.filter(([run]) => run !== "x").length - Object.values(runs).flat().length;
        expect(report).toMatchObject({ left, complete: left === 0 });
        for (const { cannot } of report.runs)
          for (const { step, why } of cannot)
            expect([step, why]).toEqual([0, expect.stringMatching(/^conflict: the /)]);
      }
      expect([name, shelf.text(name)]).toEqual([name, text]);
    }
    const { intend } = writer(s, "overlap");
    const first = await intend("a", "2");
    const second = await intend("b", "1");
    await second();
    await first();
    const { told, done } = await contained(s, "overlap");
    for (const report of [told, done]) expect(undone(report)).toEqual({ a: [0], b: [0] });
    expect(shelf.text("overlap")).toBe("0");
  });

  it("all conflict with later writes, as predicted", async () => {
    verifies("beyond.contain.dry-run");
    const s = await server("late");
    const { write } = writer(s, "late");
    for (const [run, to] of ["a1", "b2", "a3"]) await write(run!, to!);
    shelf.write("late", "9");
    const { told, done } = await contained(s, "late");
    for (const report of [told, done]) expect(report).toMatchObject({ undone: 0, left: 3, complete: false });
    expect(shelf.text("late")).toBe("9");
  });

  it("are undone on a later wish where the first containment was to undo nothing", async () => {
    verifies("beyond.contain.again", "beyond.contain.no-rollback");
    const s = await server("kept");
    await writer(s, "kept").write("a", "1");
    const asked = { actor: "kept", reason: "first", no_rollback: true };
    const kept = await ended(s, asked);
    expect(kept.report).toMatchObject({ rollback: "no", undone: 0, left: 1 });
    expect((await ended(s, asked)).id).toBe(kept.id);
    shelf.write("kept", "9");
    const tried = await ended(s, { actor: "kept", reason: "second" });
    expect(tried).toMatchObject({ reason: "second", report: { rollback: "yes", undone: 0, left: 1 } });
    shelf.write("kept", "1");
    const done = await ended(s, { actor: "kept", reason: "third" });
    expect(done).toMatchObject({ reason: "third", report: { rollback: "yes", complete: true, undone: 1 } });
    expect((await ended(s, { actor: "kept", reason: "fourth" })).id).toBe(done.id);
    expect(shelf.text("kept")).toBe("0");
  });
});

describe("a run after its containment", () => {
  const runOf = async (s: TestServer, query = "") =>
    (await s.call("auditor", "GET", `/v1/search/runs?${query}`)).body.runs as {
      run_id: string;
      attention: boolean;
      state: string;
    }[];

  it("needs attention while a conflict is left, until a later rollback settles it", async () => {
    verifies("beyond.run-state.field", "beyond.run-state.left", "beyond.run-state.open");
    const { s, shelf } = await withTwoWrites(
      ({ compensator, reader }) => `compensator_cmd: "${compensator}", reader_cmd: "${reader}"`,
    );
    expect(await runOf(s)).toMatchObject([{ run_id: "r", state: "open", attention: false }]);
    await s.env.advance(31 * 60_000);
    expect(await runOf(s)).toMatchObject([{ run_id: "r", state: "settled", attention: false }]);
    shelf.write("shared", "by another");
    await contained(s);
    expect(await runOf(s, "attention=1")).toMatchObject([
      { run_id: "r", state: "needs attention", attention: true },
    ]);
    // The intermediate write is undone: nothing is in conflict any more.
    shelf.write("shared", "new");
    expect((await s.call("operator", "POST", "/v1/runs/r/rollback", { confirm: true })).status).toBe(202);
    await until(async () => (await runOf(s, "attention=1")).length === 0, "the rollback");
    expect(await runOf(s)).toMatchObject([{ run_id: "r", state: "settled" }]);
  });

  it("has an incident while its rollback is in conflict, which ends when that is settled", async () => {
    verifies("beyond.incidents.conflict", "beyond.incidents.tasks", "beyond.incidents.ends");
    const { s, shelf } = await withTwoWrites(
      ({ compensator, reader }) => `compensator_cmd: "${compensator}", reader_cmd: "${reader}"`,
    );
    const incidents = async () => (await s.call("auditor", "GET", "/v1/incidents")).body.incidents;
    shelf.write("shared", "by another");
    await s.call("operator", "POST", "/v1/runs/r/rollback", { confirm: true });
    await until(async () => (await incidents()).length > 0, "the incident");
    const [{ id, causes }] = await incidents();
    expect(causes).toMatchObject([
      { kind: "rollback", run_id: "r", text: expect.stringContaining("conflict") },
    ]);
    const { tasks } = (await s.call("auditor", "GET", `/v1/incidents/${id}`)).body;
    expect(tasks[0]).toMatchObject({ kind: "conflict", command: expect.stringContaining("--overwrite") });
    shelf.write("shared", "new");
    const job = async () => (await s.call("auditor", "GET", "/v1/runs/r/rollback")).body.job;
    await until(async () => (await job()).state === "done", "the first rollback to end");
    expect((await s.call("operator", "POST", "/v1/runs/r/rollback", { confirm: true })).status).toBe(202);
    await until(async () => (await incidents())[0].status === "closed", "the incident to end");
  });

  it("is named by the period report with its halt; its own report calls the conflict by its name", async () => {
    verifies("beyond.contain.period", "beyond.run-state.paper");
    const { s, shelf } = await withTwoWrites(
      ({ compensator, reader }) => `compensator_cmd: "${compensator}", reader_cmd: "${reader}"`,
    );
    shelf.write("shared", "by another");
    await contained(s);
    const report = (await s.call("auditor", "GET", "/v1/report?since=1d")).body;
    expect(report.stops).toMatchObject({
      halted: 1,
      resumed: 0,
      contained: 1,
      latest: [
        { event: "contained", reason: "r", detail: expect.stringContaining("actor bot") },
        { event: "halted" },
      ],
    });
    expect(report.attention.runs).toMatchObject([{ run_id: "r" }]);
    const text = (await s.call("auditor", "GET", "/v1/report?since=1d&format=md")).text;
    expect(text).toContain("Halts and containments");
    const page = (await s.call("auditor", "GET", "/v1/runs/r/report")).text;
    expect(page).toContain("in conflict: not undone at the last attempt");
    expect(page).not.toContain("can be undone by");
  });

  it("needs attention while its rollback is unfinished", async () => {
    verifies("beyond.run-state.rollback");
    const { s } = await withTwoWrites(({ compensator }) => `compensator_cmd: "${compensator}"`);
    await s.env.advance(31 * 60_000);
    let end = () => {};
    s.app.jobTools = {
      compensator: () => new Promise<void>((resolve) => (end = resolve)),
      reader: async () => ({ exists: true, text: "new" }),
      stop: s.app.background.signal,
    };
    await s.call("operator", "POST", "/v1/runs/r/rollback", { confirm: true });
    expect(await runOf(s, "attention=1")).toMatchObject([{ run_id: "r", state: "needs attention" }]);
    end();
  });
});
