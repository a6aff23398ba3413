/** An undo restores the state before the call, and others' later writes are not lost: over HTTP. */
import { beforeAll, describe, expect, it } from "vitest";
import { loggedIn } from "../console/support/client.ts";
import { type ConsoleServer, consoleServer, shiftedEnv } from "../console/support/server.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";
import { docs, MANIFESTS } from "./support.ts";

const shelf = docs();
const env = shiftedEnv();
let s: ConsoleServer;
let n = 0;

beforeAll(async () => {
  s = await consoleServer({
    env,
    manifests: `${MANIFESTS}- {tool: loan.make, effect: reversible, permission: p, compensation: {tool: doc.put, args: {id: loan, text: ""}, until: $result.until}}
- tool: doc.asked
  effect: reversible
  permission: p
  before: {tool: doc.get, args: {id: $args.id}, absent: {exists: false}, ignore: [$before.mtime]}
  compensation: {tool: doc.put, args: {id: $args.id, text: $before.text}, kind: inverse, residue: [readers saw it], until: 2h, requires_approval: true}
- {tool: latch.set, effect: reversible, permission: p, compensation: {tool: latch.free, args: {id: latch}, until: $result.until}}\n`,
    config: `console: login\nrollback: {compensator_cmd: "${shelf.compensator}", reader_cmd: "${shelf.reader}"}\n`,
  });
  return () => s.close();
});

const ok = async (key: string, method: string, path: string, body?: unknown) => {
  const answer = await s.api(key, method, path, body);
  expect(answer.status, `${method} ${path}: ${JSON.stringify(answer.body)}`).toBeLessThan(300);
  return answer.body;
};

async function opened(): Promise<string> {
  const run_id = `run-${n++}`;
  await ok("agent", "POST", "/v1/runs", { run_id, permissions: ["p"] });
  return run_id;
}

const ask = (run: string, tool: string, id: string) =>
  ok("agent", "POST", `/v1/runs/${run}/intents`, { tool, args: { id, text: "new" }, reason: "r" });

/** The agent's whole call, with its reads. */
async function put(run: string, id: string, text: string, tool = "doc.put"): Promise<number> {
  const { step } = await ask(run, tool, id);
  const before = shelf.show(id);
  shelf.write(id, text);
  const outcome = { status: "succeeded", before, after: shelf.show(id) };
  await ok("agent", "POST", `/v1/runs/${run}/steps/${step}/outcome`, outcome);
  return step;
}

async function rolledBack(run: string, more: object = {}) {
  await ok("operator", "POST", `/v1/runs/${run}/rollback`, { confirm: true, retries: 1, ...more });
  const job = async () => (await ok("auditor", "GET", `/v1/runs/${run}/rollback`)).job;
  await until(async () => (await job()).state !== "running", "the job to end");
  return (await job()).report;
}

const plan = (run: string, key = "operator") => ok(key, "GET", `/v1/runs/${run}/plan`);
async function events(run: string, step: number) {
  const headers = { authorization: "Bearer auditor" };
  const text = await (await fetch(`${s.url}/v1/runs/${run}/export`, { headers })).text();
  const records = text.split("\n").filter(Boolean);
  return records.map((line) => JSON.parse(line)).filter((record) => record.step === step);
}

describe("before", () => {
  it("is named in the decision, reported with the outcome, kept off the ledger and restored", async () => {
    verifies(
      "beyond.before.told",
      "beyond.before.agent",
      "beyond.before.hashes",
      "beyond.before.restores",
      "beyond.before.expect",
      "beyond.conflict.ignore",
    );
    const run = await opened();
    shelf.write("a", "old canary");
    expect(await ask(run, "doc.put", "x")).toEqual({
      decision: "allow",
      step: 0,
      before: { tool: "doc.get", arguments: { id: "x" } },
    });
    await ok("agent", "POST", `/v1/runs/${run}/steps/0/outcome`, { status: "failed" });
    const step = await put(run, "a", "new");
    const { steps } = await ok("auditor", "GET", `/v1/runs/${run}`);
    expect(steps[step]).toMatchObject({ before_by: "agent", before_hash: expect.stringMatching(/^sha256:/) });
    expect(steps[0]).not.toHaveProperty("before_by");
    const [, succeeded] = await events(run, step);
    expect(succeeded).toMatchObject({
      before_hash: steps[step].before_hash,
      after_hash: steps[step].after_hash,
    });
    const { report } = { report: await rolledBack(run) };
    expect(report).toMatchObject({ compensated: [step], failed: [], complete: true });
    expect(shelf.text("a")).toBe("old canary");
    const trail = await events(run, step);
    expect(trail.map(({ event }: { event: string }) => event)).toEqual([
      "intended",
      "succeeded",
      "compensating",
      "verified",
      "compensated",
    ]);
    expect(JSON.stringify(trail)).not.toContain("canary");
  });

  it("removes a new resource with the declared undo, and cannot without one", async () => {
    verifies("beyond.before.absent", "beyond.before.http-without");
    const run = await opened();
    await put(run, "fresh", "new");
    await put(run, "other", "new", "doc.plain");
    const { step } = await ask(run, "doc.put", "quiet");
    await ok("agent", "POST", `/v1/runs/${run}/steps/${step}/outcome`, { status: "succeeded" });
    const { actions, fully_reversible } = await plan(run);
    expect(actions.map(({ kind }: { kind: string }) => kind)).toEqual([
      "unrecoverable",
      "unrecoverable",
      "compensate",
    ]);
    expect(actions[2]).toMatchObject({ compensation_tool: "doc.drop", args: { id: "fresh" } });
    expect(fully_reversible).toBe(false);
    // The read-back expects the text that was there, and none was: the undo is done and not confirmed.
    await rolledBack(run);
    expect(shelf.text("fresh")).toBeUndefined();
    expect(shelf.text("other")).toBe("new");
  });

  it("refuses a call whose read is out of the run's scope, and asks no read of it", async () => {
    verifies("beyond.before.scope", "beyond.before.told");
    const run = await opened();
    expect(await ask(run, "far.put", "a")).toEqual({
      decision: "block",
      reasons: ["before: permission far, which far.get needs, is not in the run's scope"],
    });
  });

  it("shows an auditor the size of the earlier state, and an operator its content", async () => {
    verifies("beyond.before.masked", "beyond.conflict.plan");
    const run = await opened();
    shelf.write("m", "secret");
    await put(run, "m", "new");
    const seen = (await plan(run)).actions[0];
    expect(seen).toMatchObject({
      args: { id: "m", text: "secret" },
      before: { tool: "doc.get", arguments: { id: "m" } },
      was: { text: "secret" },
      is: { text: "new" },
      would_be: { text: "secret" },
      current_hash: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
      conflict: false,
    });
    const { actions } = await plan(run, "auditor");
    expect(actions[0].args).toEqual({ id: "m", text: "[before: 8 bytes]" });
    expect(JSON.stringify(actions)).not.toContain("secret");
    await rolledBack(run);
  });
});

describe("a foreign write", () => {
  it("is on the card next to the other residue, with the deadline of the undo", async () => {
    verifies("beyond.conflict.plan", "beyond.horizon.plan", "ops.evidence.report-outlook");
    const run = await opened();
    const lent = async (until: number) => {
      const { step } = await ask(run, "loan.make", "loan");
      const result = { until: new Date(until).toISOString() };
      await ok("agent", "POST", `/v1/runs/${run}/steps/${step}/outcome`, { status: "succeeded", result });
      return result.until;
    };
    const gone = await lent(env.now() - 1);
    shelf.write("paper", "old");
    await put(run, "paper", "new");
    shelf.write("paper", "foreign");
    await rolledBack(run);
    const open = await lent(env.now() + 3_600_000);
    const headers = { authorization: "Bearer auditor" };
    const paper = await (await fetch(`${s.url}/v1/runs/${run}/report`, { headers })).text();
    expect(paper).toContain("Not fully reversible: 1 step was changed since, and 1 step cannot be undone.");
    expect(paper).toContain(`cannot be undone: its undo closed at ${gone}`);
    expect(paper).toContain(`(offsets the effect, will not be read back, until ${open})`);
    await rolledBack(run);
  });

  it("is left alone, and overwritten only if a person names exactly the current state", async () => {
    verifies(
      "beyond.conflict.left-alone",
      "beyond.conflict.plan",
      "beyond.conflict.overwrite",
      "beyond.conflict.overwrite-stale",
    );
    const run = await opened();
    shelf.write("c", "old");
    const step = await put(run, "c", "new");
    shelf.write("c", "foreign");
    const report = await rolledBack(run);
    expect(report).toMatchObject({
      compensated: [],
      failed: [{ step, error: expect.stringMatching(/^conflict: /), conflict: true }],
      complete: false,
    });
    expect(shelf.text("c")).toBe("foreign");
    expect((await events(run, step)).length).toBe(2);
    expect((await ok("auditor", "GET", `/v1/runs/${run}`)).steps[step].status).toBe("succeeded");
    const paper = await fetch(`${s.url}/v1/runs/${run}/report`, {
      headers: { authorization: "Bearer auditor" },
    });
    expect(await paper.text()).toMatch(
      /Not fully reversible: 1 step was changed since\.[\s\S]*not undone at the last attempt/,
    );

    const { actions, fully_reversible } = await plan(run);
    expect(fully_reversible).toBe(false);
    expect(actions[0]).toMatchObject({ conflict: true, was: { text: "old" }, is: { text: "foreign" } });
    const { current_hash } = actions[0];
    const over = (body: object) =>
      s.api("operator", "POST", `/v1/runs/${run}/rollback`, { confirm: true, overwrite: step, ...body });
    expect((await over({ current_hash })).status).toBe(400);
    expect((await over({ reason: "agreed" })).status).toBe(400);
    expect((await over({ reason: "agreed", current_hash: "sha256:1" })).status).toBe(400);
    shelf.write("c", "foreign again");
    const stale = await over({ reason: "agreed", current_hash });
    expect(stale).toMatchObject({
      status: 409,
      body: { error: expect.stringMatching(/has changed since the plan/) },
    });
    expect(shelf.text("c")).toBe("foreign again");
    expect((await s.api("approver", "POST", `/v1/runs/${run}/rollback`, { confirm: true })).status).toBe(403);

    const now = (await plan(run)).actions[0].current_hash;
    const done = await rolledBack(run, {
      overwrite: step,
      reason: "agreed with its author",
      current_hash: now,
    });
    expect(done).toMatchObject({ compensated: [step], complete: true });
    expect(shelf.text("c")).toBe("old");
    const begun = (await events(run, step)).find(({ event }: { event: string }) => event === "compensating");
    expect(begun).toMatchObject({
      actor: "operator",
      detail: expect.stringContaining("agreed with its author"),
    });
  });

  it("that already restored the earlier state is recorded, and nothing is called", async () => {
    verifies("beyond.conflict.as-before");
    const run = await opened();
    shelf.write("d", "old");
    const step = await put(run, "d", "new");
    shelf.write("d", "old");
    expect(await rolledBack(run)).toMatchObject({ compensated: [step], complete: true });
    const trail = await events(run, step);
    expect(trail.slice(2)).toMatchObject([
      { event: "compensating" },
      { event: "compensated", detail: expect.stringContaining("already equals") },
    ]);
  });

  it("is distinguished from a run's own later writes, which are undone first", async () => {
    verifies("beyond.conflict.plan");
    const run = await opened();
    shelf.write("e", "one");
    await put(run, "e", "two");
    await put(run, "e", "three");
    expect(await plan(run)).toMatchObject({
      fully_reversible: true,
      actions: [{ conflict: false }, { conflict: false }],
    });
    expect(await rolledBack(run)).toMatchObject({ compensated: [1, 0], complete: true });
    expect(shelf.text("e")).toBe("one");
  });

  /** Two calls that are both under way: the one that was asked for last is made first. */
  async function crossed(run: string, id: string, [older, newer]: [string, string]) {
    const steps = [await ask(run, "doc.put", id), await ask(run, "doc.put", id)];
    for (const [at, text] of [newer, older].entries()) {
      const before = shelf.show(id);
      shelf.write(id, text);
      const outcome = { status: "succeeded", before, after: shelf.show(id) };
      await ok("agent", "POST", `/v1/runs/${run}/steps/${steps[1 - at].step}/outcome`, outcome);
    }
  }

  it("is distinguished from overlapping calls of the run: their writes are undone, or reported", async () => {
    verifies("beyond.conflict.overlapped");
    const plain = await opened();
    shelf.write("o", "one");
    await crossed(plain, "o", ["three", "two"]);
    expect(await rolledBack(plain)).toMatchObject({ compensated: [0], failed: [{ step: 1 }] });
    expect(await rolledBack(plain)).toMatchObject({ compensated: [1], complete: true });
    expect(shelf.text("o")).toBe("one");

    // The last one put the first text back: by what they met and left, either may have been the last.
    const round = await opened();
    await crossed(round, "o", ["one", "two"]);
    const unproven = {
      conflict: true,
      error: expect.stringMatching(/^conflict: another step of this run changed the same resource/),
    };
    expect(await plan(round)).toMatchObject({
      fully_reversible: false,
      actions: [{ conflict: true }, { conflict: true }],
    });
    expect(await rolledBack(round)).toMatchObject({
      compensated: [],
      failed: [
        { step: 1, ...unproven },
        { step: 0, ...unproven },
      ],
      complete: false,
    });
    const worker = await s.api("operator", "POST", `/v1/runs/${round}/steps/1/compensation`, {
      current: shelf.show("o"),
    });
    expect(worker).toMatchObject({ status: 409, body: { error: unproven.error } });
    expect(shelf.text("o")).toBe("one");
    const { current_hash } = (await plan(round)).actions[1];
    const word = { overwrite: 0, reason: "it was made last", current_hash };
    expect(await rolledBack(round, word)).toMatchObject({ compensated: [0] });
    expect(await rolledBack(round)).toMatchObject({ compensated: [1], complete: true });
    expect(shelf.text("o")).toBe("one");
  });

  it("is on the card of an undo that a person has to approve, and no approval of another undo covers it", async () => {
    verifies("beyond.card.undo", "beyond.card.undo-changed");
    const run = await opened();
    shelf.write("q", "was-text");
    const step = await put(run, "q", "left-text", "doc.asked");
    const asked = async (more: object = {}) => {
      expect(await rolledBack(run, more)).toMatchObject({ awaiting_approval: [step] });
      const { approvals } = await ok("approver", "GET", `/v1/approvals?run_id=${run}&status=pending`);
      expect(approvals.length).toBe(1);
      return ok("approver", "GET", `/v1/approvals/${approvals[0].id}/card`);
    };
    const approved = ({ approval_id, card_hash }: { approval_id: string; card_hash: string }) =>
      ok("approver", "POST", `/v1/approvals/${approval_id}/approve`, { card_hash });
    const closes = new Date((await plan(run)).actions[0].closes_ms).toISOString();
    const plain = await asked();
    expect(plain).toMatchObject({
      kind: "compensation",
      sentence: `Undo step ${step}: Put q`,
      causes: ["the manifest requires approval for this undo"],
      changes: [{ label: "what is there", before: "left-text", after: "was-text" }],
      way_back: {
        residue: ["readers saw it"],
        text: `This call is itself the undo of step ${step} (doc.asked): it restores the exact state.`,
      },
      proof: "never proven",
      closes: `closes ${closes}`,
    });
    await approved(plain);

    shelf.write("q", "foreign-text");
    const { current_hash } = (await plan(run)).actions[0];
    const word = { overwrite: step, reason: "agreed with its author", current_hash };
    const over = await asked(word);
    expect(await ok("approver", "GET", `/v1/approvals/${plain.approval_id}`)).toMatchObject({
      status: "expired",
      note: expect.stringMatching(/changed since the card was shown/),
    });
    const said =
      "it overwrites changes made since the call; operator gives this reason: agreed with its author";
    expect(over).toMatchObject({
      causes: [said, plain.causes[0]],
      changes: [{ before: "foreign-text", after: "was-text" }],
    });
    expect(over.text).toMatch(
      new RegExp(`Cause +${said}[^]*- foreign-text\n +\\+ was-text[^]*closes ${closes}`),
    );
    const page = (await (await loggedIn(s.url, "approver")).get(`/console/approvals/${over.approval_id}`))
      .text;
    for (const shown of [said, "foreign-text", `closes ${closes}`, "readers saw it"])
      expect(page).toContain(shown);
    await approved(over);
    expect(await rolledBack(run, word)).toMatchObject({ compensated: [step], complete: true });
    expect(shelf.text("q")).toBe("was-text");
  });

  it("asks again if an approved undo failed and would now overwrite a later write", async () => {
    verifies("beyond.card.undo-changed");
    const run = await opened();
    shelf.write("v", "was-text");
    const step = await put(run, "v", "left-text", "doc.asked");
    expect(await rolledBack(run)).toMatchObject({ awaiting_approval: [step] });
    const approve = async () => {
      const { approvals } = await ok("approver", "GET", `/v1/approvals?run_id=${run}&status=pending`);
      await ok("approver", "POST", `/v1/approvals/${approvals[0].id}/approve`, {});
    };
    await approve();
    const at = `/v1/runs/${run}/steps/${step}/compensation`;
    await ok("operator", "POST", at, { current: shelf.show("v") });
    await ok("operator", "POST", `${at}/outcome`, { status: "failed", attempts: 1, error: "no answer" });

    shelf.write("v", "foreign-text");
    const { current_hash } = (await plan(run)).actions[0];
    const word = { overwrite: step, reason: "agreed with its author", current_hash };
    expect(await rolledBack(run, word)).toMatchObject({ awaiting_approval: [step], compensated: [] });
    expect(shelf.text("v")).toBe("foreign-text");
    await approve();
    expect(await rolledBack(run, word)).toMatchObject({ compensated: [step], complete: true });
    expect(shelf.text("v")).toBe("was-text");
  });

  it("is not skipped by an approval without a state, such as an earlier version's", async () => {
    verifies("beyond.card.undo-changed");
    const run = await opened();
    shelf.write("e", "was-text");
    const step = await put(run, "e", "left-text", "doc.asked");
    expect(await rolledBack(run)).toMatchObject({ awaiting_approval: [step] });
    const { approvals } = await ok("approver", "GET", `/v1/approvals?run_id=${run}&status=pending`);
    const [{ id }] = approvals;
    await s.app.core.store.transact({
      run(tx) {
        const known = tx.get("approvals", id)!;
        const { before_hash: _, ...internal } = known.internal;
        tx.put("approvals", id, { ...known, internal });
      },
    });
    await ok("approver", "POST", `/v1/approvals/${id}/approve`, {});
    shelf.write("e", "foreign-text");
    const { current_hash } = (await plan(run)).actions[0];
    const word = { overwrite: step, reason: "agreed with its author", current_hash };
    expect(await rolledBack(run, word)).toMatchObject({ awaiting_approval: [step], compensated: [] });
    expect(shelf.text("e")).toBe("foreign-text");
    expect((await ok("auditor", "GET", `/v1/approvals/${id}`)).status).toBe("expired");
    const anew = (await ok("approver", "GET", `/v1/approvals?run_id=${run}&status=pending`)).approvals;
    await ok("approver", "POST", `/v1/approvals/${anew[0].id}/approve`, {});
    expect(await rolledBack(run, word)).toMatchObject({ compensated: [step] });
  });

  it("is shown in the console, and overwritten there", async () => {
    verifies("beyond.conflict.console");
    const run = await opened();
    shelf.write("k", "was-text");
    await put(run, "k", "new");
    shelf.write("k", "is-text");
    const operator = await loggedIn(s.url, "operator");
    const page = (await operator.get(`/console/runs/${run}`)).text;
    for (const shown of ["was-text", "is-text", "after the undo", "1 step was changed since"])
      expect(page).toContain(shown);
    // What a press of the button does not undo is not counted by what asks for it.
    expect(page).toContain("Check this run again, and undo the steps whose state has not changed since.");
    await put(run, "l", "new");
    const with_more = (await operator.get(`/console/runs/${run}`)).text;
    expect(with_more).toContain("Undo 1 step of this run now, newest first.");
    expect(page).toMatch(/line removed">[^\n]*is-text/);
    expect(page).toMatch(/line added">[^\n]*was-text/);
    expect((await (await loggedIn(s.url, "auditor")).get(`/console/runs/${run}`)).text).not.toContain(
      "was-text",
    );
    const current_hash = /name="current_hash" value="([^"]+)"/.exec(page)![1]!;
    await operator.submit(`/console/runs/${run}/rollback`, {
      confirm: "yes",
      overwrite: "0",
      current_hash,
      reason: "as agreed",
    });
    await until(() => shelf.text("k") === "was-text", "the overwrite");
  });
});

describe("an undo that closes", () => {
  it("is listed and shown until then, and not tried afterwards", async () => {
    verifies("beyond.horizon.route", "beyond.horizon.told", "beyond.horizon.plan");
    const run = await opened();
    const now = Date.now();
    const times = [now + 3_600_000, now + 7_200_000, now + 1_000_000_000];
    for (const [step, until] of times.entries()) {
      const body = { tool: "loan.make", args: {}, reason: "r" };
      await ok("agent", "POST", `/v1/runs/${run}/intents`, body);
      const result = { until: new Date(until).toISOString() };
      await ok("agent", "POST", `/v1/runs/${run}/steps/${step}/outcome`, { status: "succeeded", result });
    }
    const first = await ok("auditor", "GET", "/v1/horizon?limit=1");
    expect(first.undos).toEqual([{ run_id: run, step: 0, tool: "loan.make", closes_ms: times[0] }]);
    const rest = await ok("auditor", "GET", `/v1/horizon?cursor=${first.next_cursor}`);
    expect(rest.undos.map(({ step }: { step: number }) => step)).toEqual([1, 2]);
    expect((await ok("auditor", "GET", "/v1/horizon?within=90m")).undos.length).toBe(1);
    expect((await s.api("auditor", "GET", "/v1/horizon?within=soon")).status).toBe(400);
    expect((await s.api("agent", "GET", "/v1/horizon")).status).toBe(403);
    const closing = async () =>
      (await ok("auditor", "GET", "/v1/alerts")).alerts.filter(
        ({ kind }: { kind: string }) => kind === "undo_closing",
      );
    expect(await closing()).toEqual([]);
    const headers = { authorization: "Bearer auditor" };
    expect(await (await fetch(`${s.url}/metrics`, { headers })).text()).toContain("svc_undo_closing 2");
    expect((await (await loggedIn(s.url, "auditor")).get("/console")).text).toContain("Next undo to expire");

    env.forward(3_300_000);
    expect(await closing()).toMatchObject([{ run_id: run, step: 0 }]);
    env.forward(1_700_000);
    expect((await ok("auditor", "GET", "/v1/horizon")).undos.length).toBe(2);
    const { actions, fully_reversible } = await plan(run);
    expect(actions[2]).toMatchObject({ kind: "unrecoverable", closed: true, closes_ms: times[0] });
    expect(fully_reversible).toBe(false);
    expect(await rolledBack(run)).toMatchObject({ compensated: [2, 1], unrecoverable: [0] });
    const late = await s.api("operator", "POST", `/v1/runs/${run}/steps/0/compensation`, {});
    expect(late).toMatchObject({
      status: 409,
      body: { error: expect.stringContaining("its undo closed at") },
    });
    expect((await ok("auditor", "GET", "/v1/horizon")).undos).toEqual([]);
  });
});

describe("an undo that closes during a rollback", () => {
  it("is not tried again or begun, and older steps are undone all the same", async () => {
    verifies("beyond.horizon.meanwhile");
    const run = await opened();
    shelf.write("older", "as it was");
    await put(run, "older", "changed");
    const result = { until: new Date(env.now() + 3_600_000).toISOString() };
    for (const [step, tool] of [
      [1, "loan.make"],
      [2, "latch.set"],
    ] as const) {
      await ok("agent", "POST", `/v1/runs/${run}/intents`, { tool, args: {}, reason: "r" });
      await ok("agent", "POST", `/v1/runs/${run}/steps/${step}/outcome`, { status: "succeeded", result });
    }
    const report = rolledBack(run, { retries: 3 });
    await until(() => shelf.text("latch") === "tried", "the first attempt");
    env.forward(7_200_000);
    shelf.write("latch-go", "");
    expect(await report).toMatchObject({
      failed: [{ step: 2, error: expect.stringMatching(/^after 1 attempt: .*; its undo closed at /) }],
      unrecoverable: [1],
      compensated: [0],
    });
    expect([shelf.text("latch"), shelf.text("older")]).toEqual(["tried", "as it was"]);
    expect((await events(run, 1)).map(({ event }) => event)).toEqual(["intended", "succeeded"]);
  });
});

describe("a remote worker", () => {
  it("reports the state when it begins", async () => {
    verifies("beyond.conflict.worker");
    const run = await opened();
    shelf.write("w", "old");
    const step = await put(run, "w", "new");
    const begin = (body: object) =>
      s.api("operator", "POST", `/v1/runs/${run}/steps/${step}/compensation`, body);
    const read = { tool: "doc.get", arguments: { id: "w" } };
    expect((await plan(run)).actions[0]).toMatchObject({ step, before: read });
    expect(await begin({})).toEqual({
      status: 409,
      body: { error: expect.stringContaining("read doc.get first, with the arguments from the plan") },
    });
    const foreign = await begin({ current: { exists: true, text: "foreign" } });
    expect(foreign).toEqual({ status: 409, body: { error: expect.stringMatching(/^conflict: /) } });
    expect((await events(run, step)).length).toBe(2);
    expect(await begin({ current: shelf.show("w") })).toMatchObject({
      status: 200,
      body: { tool: "doc.put", args: { id: "w", text: "old" }, verification: { expect: { text: "old" } } },
    });
    shelf.write("w", "old");
    await ok("operator", "POST", `/v1/runs/${run}/steps/${step}/compensation/outcome`, {
      status: "succeeded",
      observed: shelf.show("w"),
    });
    const again = await put(run, "w", "new");
    shelf.write("w", "old");
    const body = { current: shelf.show("w") };
    expect(await ok("operator", "POST", `/v1/runs/${run}/steps/${again}/compensation`, body)).toEqual({
      run_id: run,
      step: again,
      status: "compensated",
    });
  });
});
