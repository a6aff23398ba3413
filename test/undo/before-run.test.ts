/** A resource that a run changed several times and somebody else since: restored in one act, on every surface. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { connect, open } from "../../src/index.ts";
import { loggedIn } from "../console/support/client.ts";
import { type ConsoleServer, consoleServer } from "../console/support/server.ts";
import { svc } from "../support/cli.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";
import { docs, MANIFESTS } from "./support.ts";

const shelf = docs();
const ASKED = `
- tool: doc.asked
  effect: reversible
  permission: p
  before: {tool: doc.get, args: {id: $args.id}, absent: {exists: false}, ignore: [$before.mtime]}
  compensation: {tool: doc.put, args: {id: $args.id, text: $before.text}, kind: inverse, requires_approval: true}
`;
let s: ConsoleServer;
let n = 0;
beforeAll(async () => {
  s = await consoleServer({
    manifests: MANIFESTS + ASKED,
    config: `console: login\nrollback: {compensator_cmd: "${shelf.compensator}", reader_cmd: "${shelf.reader}"}\n`,
  });
  return () => s.close();
});

const ok = async (key: string, method: string, path: string, body?: unknown) => {
  const answer = await s.api(key, method, path, body);
  expect(answer.status, `${method} ${path}: ${JSON.stringify(answer.body)}`).toBeLessThan(300);
  return answer.body;
};

interface Put {
  id: string;
  tool?: string;
  depends_on?: number[];
}

/** A run that makes these calls, each writing its number; the documents were `old`. */
async function changed(...puts: Put[]): Promise<string> {
  const run_id = `run-${n++}`;
  await ok("agent", "POST", "/v1/runs", { run_id, permissions: ["p"] });
  for (const { id } of puts) shelf.write(id, "old");
  for (const [at, { id, tool = "doc.put", depends_on = [] }] of puts.entries()) {
    const body = { tool, args: { id, text: "new" }, reason: "r", depends_on };
    const { step } = await ok("agent", "POST", `/v1/runs/${run_id}/intents`, body);
    const before = shelf.show(id);
    shelf.write(id, `text ${at}`);
    const outcome = { status: "succeeded", before, after: shelf.show(id) };
    await ok("agent", "POST", `/v1/runs/${run_id}/steps/${step}/outcome`, outcome);
  }
  return run_id;
}

const planOf = (run: string) => ok("operator", "GET", `/v1/runs/${run}/plan`);
const actionOf = async (run: string, step: number) =>
  (await planOf(run)).actions.find((action: { step: number }) => action.step === step);
const wordFor = async (run: string, step: number) => {
  const { current_hash } = await actionOf(run, step);
  return { overwrite: step, to: "before_run", reason: "agreed with its author", current_hash };
};
async function rolledBack(run: string, more: object = {}) {
  await ok("operator", "POST", `/v1/runs/${run}/rollback`, { confirm: true, retries: 1, ...more });
  const job = async () => (await ok("auditor", "GET", `/v1/runs/${run}/rollback`)).job;
  await until(async () => (await job()).state !== "running", "the job to end");
  return (await job()).report;
}
async function trail(run: string) {
  const headers = { authorization: "Bearer auditor" };
  const text = await (await fetch(`${s.url}/v1/runs/${run}/export`, { headers })).text();
  const records = text.split("\n").filter(Boolean);
  return records.map((line) => JSON.parse(line)).filter(({ event }) => /^compensat/.test(event));
}
const three = (id: string) => changed({ id }, { id }, { id });

describe("the state before the run", () => {
  it("is shown in the plan, and restored with all the run's steps on it, recorded with who and why", async () => {
    verifies("beyond.conflict.before-run");
    const run = await three("a");
    shelf.write("a", "foreign");
    const action = await actionOf(run, 2);
    expect(action).toMatchObject({
      conflict: true,
      would_be: { text: "text 1" },
      before_run: { steps: [2, 1, 0], would_be: { text: "old" } },
    });
    expect((await actionOf(run, 1)).before_run).toBeUndefined();
    const report = await rolledBack(run, await wordFor(run, 2));
    expect(report).toMatchObject({ compensated: [2, 1, 0], failed: [], complete: true });
    expect(shelf.text("a")).toBe("old");
    const records = await trail(run);
    expect(records[0]).toMatchObject({
      step: 0,
      event: "compensating",
      actor: "operator",
      detail:
        "by doc.put, restoring the state from before this run (together with step 1, 2), overwriting later changes: agreed with its author",
    });
    for (const step of [1, 2])
      expect(records.filter((record) => record.step === step)).toMatchObject([
        {
          event: "compensating",
          detail: "undone with step 0, which restored the state from before this run",
        },
        { event: "compensated", actor: "operator" },
      ]);
    expect(
      (await ok("auditor", "GET", `/v1/runs/${run}`)).steps.map((one: { status: string }) => one.status),
    ).toEqual(["compensated", "compensated", "compensated"]);
  });

  it("needs a reason and the current hash, and covers no later step and no other document", async () => {
    verifies("beyond.conflict.before-run");
    const run = await changed({ id: "b" }, { id: "other" }, { id: "b" });
    shelf.write("b", "foreign");
    shelf.write("other", "foreign");
    const word = await wordFor(run, 2);
    const send = (body: object) =>
      s.api("operator", "POST", `/v1/runs/${run}/rollback`, { confirm: true, ...body });
    expect((await send({ ...word, reason: undefined })).status).toBe(400);
    expect((await send({ ...word, current_hash: undefined })).status).toBe(400);
    expect((await send({ ...word, to: "before_all" })).status).toBe(400);
    expect((await send({ to: "before_run" })).status).toBe(400);
    expect(
      (await s.api("agent", "POST", `/v1/runs/${run}/rollback`, { confirm: true, ...word })).status,
    ).toBe(403);
    const older = await rolledBack(run, { ...word, overwrite: 0 });
    expect(older).toMatchObject({ compensated: [], complete: false });
    expect(shelf.text("b")).toBe("foreign");
    shelf.write("b", "foreign again");
    expect((await send(word)).status).toBe(409);
    const report = await rolledBack(run, await wordFor(run, 2));
    expect(report).toMatchObject({ compensated: [2, 0], failed: [{ step: 1, conflict: true }] });
    expect([shelf.text("b"), shelf.text("other")]).toEqual(["old", "foreign"]);
  });

  it("waits for steps that depend on one of those that it covers", async () => {
    verifies("beyond.conflict.before-run");
    const run = await changed({ id: "c" }, { id: "d", depends_on: [0] }, { id: "c", depends_on: [0] });
    shelf.write("c", "foreign");
    const word = await wordFor(run, 2);
    const first = await rolledBack(run, word);
    expect(first).toMatchObject({ compensated: [1], deferred: [{ step: 2, blocked_by: [1] }, { step: 0 }] });
    expect(shelf.text("c")).toBe("foreign");
    expect(await rolledBack(run, word)).toMatchObject({ compensated: [2, 0], complete: true });
    expect([shelf.text("c"), shelf.text("d")]).toEqual(["old", "old"]);
  });

  it("is approved once where the undo needs it, and nothing is restored before", async () => {
    verifies("beyond.conflict.before-run");
    const run = await changed({ id: "e", tool: "doc.asked" }, { id: "e", tool: "doc.asked" });
    shelf.write("e", "foreign");
    const word = await wordFor(run, 1);
    expect(await rolledBack(run, word)).toMatchObject({ awaiting_approval: [1, 0], compensated: [] });
    expect(shelf.text("e")).toBe("foreign");
    const { approvals } = await ok("approver", "GET", `/v1/approvals?run_id=${run}&status=pending`);
    expect(approvals).toHaveLength(1);
    await ok("approver", "POST", `/v1/approvals/${approvals[0].id}/approve`, {});
    expect(await rolledBack(run, word)).toMatchObject({ compensated: [1, 0], complete: true });
    expect(shelf.text("e")).toBe("old");
  });

  it("is recorded, and nothing is called, where a person restored it already", async () => {
    verifies("beyond.conflict.before-run");
    const run = await three("f");
    shelf.write("f", "old");
    expect(await actionOf(run, 2)).toMatchObject({ conflict: true, before_run: { steps: [2, 1, 0] } });
    expect(await rolledBack(run, await wordFor(run, 2))).toMatchObject({
      compensated: [2, 1, 0],
      complete: true,
    });
    expect((await trail(run))[0].detail).toBe(
      "nothing to do: the state already equals the one before the call",
    );
  });
});

describe("the surfaces restore it", () => {
  it("a remote worker and the library over a connection", async () => {
    verifies("beyond.conflict.before-run-surfaces");
    const run = await three("g");
    shelf.write("g", "foreign");
    const current = shelf.show("g");
    const { current_hash } = await actionOf(run, 2);
    const word = { reason: "agreed", current_hash, to: "before_run" };
    const path = `/v1/runs/${run}/steps/2/compensation`;
    const task = await ok("operator", "POST", path, { current, overwrite: true, ...word });
    expect(task).toMatchObject({ step: 0, args: { text: "old" }, covers: [1, 2] });
    const failed = { status: "failed", error: "not now" };
    await ok("operator", "POST", `/v1/runs/${run}/steps/0/compensation/outcome`, failed);
    const statuses = async () =>
      (await ok("auditor", "GET", `/v1/runs/${run}`)).steps.map((one: { status: string }) => one.status);
    expect(await statuses()).toEqual(["compensation_failed", "succeeded", "succeeded"]);
    const client = await connect({ url: s.url, key: "operator" });
    const worker = await client.attach(run);
    const report = await worker.rollback({
      compensator: async ({ args }) => {
        const { id, text } = args as { id: string; text: string };
        shelf.write(id, text);
      },
      verifier: async ({ arguments: args }) => shelf.show((args as { id: string }).id),
      overwrite: { step: 2, reason: "agreed", current_hash, to: "before_run" },
    });
    expect(report).toMatchObject({ compensated: [2, 1, 0], complete: true });
    expect([shelf.text("g"), await statuses()]).toEqual([
      "old",
      ["compensated", "compensated", "compensated"],
    ]);
  });

  it("the console, which shows the state before the run", async () => {
    verifies("beyond.conflict.before-run-surfaces");
    const run = await three("h");
    shelf.write("h", "foreign");
    const operator = await loggedIn(s.url, "operator");
    const page = (await operator.get(`/console/runs/${run}`)).text;
    expect(page).toContain("This run changed the resource in steps 2, 1, 0.");
    expect(page).toContain("before this run");
    expect(page.match(/Restore the state before this run/g)).toHaveLength(1);
    const fields =
      /name="overwrite" value="(\d+)">[^<]*<input type="hidden" name="current_hash" value="([^"]+)">[^<]*<input type="hidden" name="to" value="before_run">/;
    const [, overwrite, current_hash] = fields.exec(page)!;
    const body = {
      confirm: "yes",
      overwrite: overwrite!,
      current_hash: current_hash!,
      to: "before_run",
      reason: "agreed",
    };
    await operator.submit(`/console/runs/${run}/rollback`, body);
    await until(() => shelf.text("h") === "old", "the restored text");
    await until(async () => (await planOf(run)).actions.length === 0, "the steps to be undone");
  });

  it("the command line, by what its plan says, and the library on its own data", async () => {
    verifies("beyond.conflict.before-run-surfaces");
    const folder = tempDir("before-run");
    const [manifests, data] = [join(folder, "manifests.yaml"), join(folder, "data")];
    writeFileSync(manifests, MANIFESTS);
    const read = async ({ arguments: args }: { arguments: unknown }) =>
      shelf.show((args as { id: string }).id);
    const library = await open({ manifests, data });
    for (const id of ["cli", "library"]) {
      shelf.write(id, "old");
      const run = await library.run({ actor: "bot", permissions: ["p"], run_id: id });
      for (const text of ["one", "two"])
        await run.call({ tool: "doc.put", args: { id, text }, reason: "r" }, () => shelf.write(id, text), {
          read,
        });
      shelf.write(id, "foreign");
      if (id === "cli") continue;
      const plan = await run.plan();
      expect(plan.actions).toHaveLength(2);
      const work = {
        compensator: async ({ args }: { args: unknown }) => shelf.write(id, (args as { text: string }).text),
        verifier: read,
      };
      const { failed } = await run.rollback(work);
      const { step, current_hash } = failed[0]!;
      const overwrite = { step, reason: "agreed", current_hash: current_hash!, to: "before_run" as const };
      expect(await run.rollback({ ...work, overwrite })).toMatchObject({
        compensated: [1, 0],
        complete: true,
      });
      expect(shelf.text(id)).toBe("old");
    }
    await library.close();
    const here = ["-d", data, "-m", manifests, "--reader-cmd", shelf.reader];
    const shown = (await svc(["plan", "cli", ...here])).out;
    expect(shown).toContain('before this run (steps 1, 0): {"exists":true,"text":"old"');
    const next = /to restore that: svc (rollback cli --overwrite 1 --to before_run --current \S+)/.exec(
      shown,
    )!;
    const args = [...next[1]!.split(" "), "--compensator-cmd", shelf.compensator, ...here];
    expect(await svc([...args, "--reason", "agreed", "--to", "then"])).toMatchObject({ code: 1 });
    const done = await svc([...args, "--reason", "agreed", "--json"]);
    expect(JSON.parse(done.out)).toMatchObject({ compensated: [1, 0], complete: true });
    expect(shelf.text("cli")).toBe("old");
  });
});
