/** Incidents over HTTP: the facts that open one, its tasks, the work of people on it, and its end. */
import { beforeEach, describe, expect, it } from "vitest";
import { PROBE_KEY } from "../../src/govern/port/docs.ts";
import { scopeSeal } from "../../src/govern/runs/run.ts";
import { pdfText } from "../evidence/support/pdf.ts";
import { afterInput, undoesAll } from "../support/commands.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- tool: thing.make
  effect: compensable
  permission: p
  compensation: {tool: thing.unmake, args: {id: $result.id}}
- tool: thing.lease
  effect: compensable
  permission: p
  compensation: {tool: thing.unlease, args: {}, requires_approval: true}
- {tool: thing.send, effect: irreversible, permission: p}
`;
const POLICY = `
version: 1
rules:
  - {id: mails, match: {tool: thing.send}, action: require_approval}
`;
const KEYS = [
  { name: "bot", role: "agent" },
  { name: "other-bot", role: "agent" },
];
const HOUR = 3_600_000;

let s: TestServer;
const open = (config = "") => testServer({ manifests: MANIFESTS, policy: POLICY, config, keys: KEYS });
beforeEach(async () => {
  s = await open();
});

const halt = (body: object) => s.call("admin", "POST", "/v1/halt", { reason: "runaway", ...body });
const list = async (key = "auditor", query = "") =>
  (await s.call(key, "GET", `/v1/incidents${query}`)).body.incidents;
const show = async (id: string) => (await s.call("auditor", "GET", `/v1/incidents/${id}`)).body;
async function only() {
  const [one, ...rest] = await list();
  expect(rest).toEqual([]);
  return one;
}

async function openRun(run_id: string, key = "bot") {
  await s.call(key, "POST", "/v1/runs", { run_id, permissions: ["p"] });
}
async function call(run_id: string, tool = "thing.make", key = "bot", args: object = { secret: "canary-7" }) {
  return s.call(key, "POST", `/v1/runs/${run_id}/intents`, { tool, args, reason: "r" });
}
async function made(run_id: string, step: number, tool = "thing.make") {
  await call(run_id, tool);
  await s.call("bot", "POST", `/v1/runs/${run_id}/steps/${step}/outcome`, {
    status: "succeeded",
    result: { id: 1 },
  });
}
async function rollBack(run_id: string) {
  await s.call("operator", "POST", `/v1/runs/${run_id}/rollback`, { confirm: true, retries: 1 });
  const state = async () => (await s.call("auditor", "GET", `/v1/runs/${run_id}/rollback`)).body.job.state;
  await until(async () => (await state()) !== "running", "the rollback to end");
}
async function contained(body: object) {
  const reply = await s.call("admin", "POST", "/v1/contain", { reason: "wild", confirm: true, ...body });
  const { id } = reply.body.job;
  const state = async () => (await s.call("auditor", "GET", `/v1/contain/${id}`)).body.job.state;
  await until(async () => (await state()) !== "running", "the containment to end");
  return id;
}

describe("opens", () => {
  it("on a halt that names one actor, and joins the open one", async () => {
    verifies("beyond.incidents.halt", "beyond.incidents.one-open");
    await openRun("r");
    await made("r", 0);
    await halt({ tool: "thing.*" });
    await halt({ actor: "b*" });
    expect(await list()).toEqual([]);
    const { id } = (await halt({ actor: "bot" })).body;
    await halt({ actor: "bot", tool: "thing.make" });
    const one = await only();
    expect(one).toMatchObject({
      id: expect.stringMatching(/^inc_[0-9a-f-]{36}$/),
      actor: "bot",
      tenant: null,
      status: "open",
      runs: ["r"],
      left: 2,
    });
    expect(one.causes).toHaveLength(2);
    expect(one.causes[0]).toMatchObject({ kind: "halt", text: "admin halted bot: runaway" });
    await halt({ actor: "other-bot" });
    expect(await list()).toHaveLength(2);
    expect((await show(one.id)).tasks[0]).toMatchObject({ kind: "lift", id, command: `svc halt lift ${id}` });
  });

  it("once when facts arrive at the same time", async () => {
    verifies("beyond.incidents.one-open");
    await Promise.all(Array.from({ length: 8 }, () => halt({ actor: "bot" })));
    expect((await only()).causes).toHaveLength(8);
  });

  it("on a containment, with the disabled key as a task", async () => {
    verifies("beyond.incidents.containment", "beyond.incidents.tasks");
    await openRun("r");
    await made("r", 0);
    await halt({ actor: "bot", tool: "thing.send" });
    await s.env.advance(1_000);
    const id = await contained({ actor: "bot" });
    const one = await only();
    expect(one.causes.map(({ kind }: { kind: string }) => kind)).toEqual(["halt", "containment"]);
    const { tasks, timeline } = await show(one.id);
    const enable = tasks.find(({ kind }: { kind: string }) => kind === "enable");
    expect(enable.command).toBe(`svc keys enable ${enable.id}`);
    verifies("beyond.incidents.task-roles");
    const roles = tasks.map(({ kind, role }: { kind: string; role: string }) => `${kind}: ${role}`);
    expect(new Set(roles)).toEqual(new Set(["lift: admin", "enable: admin"]));
    const lifts = tasks.filter(({ kind }: { kind: string }) => kind === "lift");
    expect((await s.call("operator", "POST", "/v1/resume", { id: lifts[0].id })).status).toBe(403);
    expect(enable.page).toMatch(/^\/console\/settings/);
    expect(timeline.some(({ text }: { text: string }) => text.startsWith(`${id}:`))).toBe(true);
  });

  it("on a rollback that failed, and once for the same run", async () => {
    verifies("beyond.incidents.failed-undo", "beyond.incidents.tasks");
    s = await open(`rollback: {compensator_cmd: "${afterInput("process.exit(3)")}"}\n`);
    await openRun("r");
    await made("r", 0);
    await rollBack("r");
    await rollBack("r");
    const one = await only();
    expect(one.causes).toEqual([
      expect.objectContaining({
        kind: "rollback",
        run_id: "r",
        step: 0,
        text: expect.stringContaining("step 0"),
      }),
    ]);
    expect((await show(one.id)).tasks).toEqual([
      expect.objectContaining({ kind: "undo", run_id: "r", step: 0, command: "svc rollback r" }),
    ]);
  });

  it("when an outcome is still unknown after its alert", async () => {
    verifies("beyond.incidents.outcome", "beyond.incidents.not-reopened");
    await openRun("r");
    await call("r");
    expect(await list()).toEqual([]);
    await s.env.advance(HOUR + 1_000);
    const one = await only();
    expect(one.causes[0]).toMatchObject({ kind: "outcome", run_id: "r", step: 0 });
    const { tasks } = await show(one.id);
    expect(tasks[0].command).toMatch(/^svc resolve r 0$/);
    // A person leaves it as it is: the same unknown outcome opens no other incident.
    const closing = await s.call("operator", "POST", `/v1/incidents/${one.id}/close`, { reason: "known" });
    expect(closing.status).toBe(200);
    await s.env.advance(HOUR);
    expect(await list("auditor", "?status=open")).toEqual([]);
    await halt({ actor: "bot" });
    const [next] = await list("auditor", "?status=open");
    expect(next.id).not.toBe(one.id);
  });

  it("on a broken probe, and ends after a good one", async () => {
    verifies("beyond.incidents.probe");
    const probed = (broken: string[]) =>
      s.app.core.store.transact({
        run: (tx) => tx.put("meta", PROBE_KEY, { at_ms: s.env.now(), holds: 3, not_checked: 0, broken }),
      });
    await probed(["halts hold (http)"]);
    const one = await only();
    expect(one).toMatchObject({ actor: "svc-probe", left: 1, causes: [{ kind: "probe" }] });
    await s.env.advance(1_000);
    await probed([]);
    expect(await show(one.id)).toMatchObject({ status: "closed", closed_by: null, tasks: [] });
  });
});

describe("the work of people", () => {
  let id = "";
  beforeEach(async () => {
    await halt({ actor: "bot" });
    ({ id } = await only());
  });
  const post = (what: string, body: object, key = "operator") =>
    s.call(key, "POST", `/v1/incidents/${id}/${what}`, body);

  it("keeps notes with author and time, without credentials, for operators alone", async () => {
    verifies("beyond.incidents.notes", "beyond.incidents.notes-redacted");
    const secret = "sk_live_4eC39HqLyjWDarjtT1zdp7dc";
    const note = await post("notes", { text: `key was ${secret}` });
    expect(note.status).toBe(201);
    expect(note.body).toMatchObject({ kind: "note", by: "operator", at_ms: s.env.now() });
    expect(JSON.stringify((await show(id)).notes)).not.toContain(secret);
    expect((await post("notes", { text: "a".repeat(4_000) })).status).toBe(201);
    for (const text of ["a".repeat(4_001), "", "  ", undefined])
      expect([text?.length, (await post("notes", { text })).status]).toEqual([text?.length, 400]);
    for (const key of ["auditor", "approver", "bot"])
      expect([key, (await post("notes", { text: "n" }, key)).status]).toEqual([key, 403]);
    for (const method of ["PATCH", "DELETE", "PUT"])
      expect((await s.call("admin", method, `/v1/incidents/${id}/notes`)).status).toBeGreaterThanOrEqual(404);
    expect((await show(id)).notes).toHaveLength(2);
  });

  it("names who took it, and needs a reason to close with something left", async () => {
    verifies("beyond.incidents.assign", "beyond.incidents.close-reason", "beyond.incidents.closed-409");
    expect((await post("assign", { to: "ada" })).body).toMatchObject({ kind: "assigned", text: "ada" });
    expect((await show(id)).assigned_to).toBe("ada");
    const early = await post("close", {});
    expect([early.status, early.body.error]).toEqual([400, expect.stringContaining("1 task is left")]);
    expect((await post("close", { reason: "handed over" })).status).toBe(200);
    const md = (await s.call("auditor", "GET", `/v1/incidents/${id}?format=md`)).text;
    expect(md).toContain("## Remaining tasks\n\nIt is closed, so its tasks are not listed.\n");
    expect(await show(id)).toMatchObject({
      status: "closed",
      closed_by: "operator",
      close_reason: "handed over",
      assigned_to: "ada",
    });
    for (const [what, body] of [
      ["notes", { text: "late" }],
      ["assign", { to: "bob" }],
      ["close", { reason: "again" }],
    ] as const)
      expect([what, (await post(what, body)).status]).toEqual([what, 409]);
    expect((await show(id)).notes).toHaveLength(2);
  });

  it("ends when the last task is done, and is not reopened", async () => {
    verifies("beyond.incidents.ends", "beyond.incidents.not-reopened");
    await s.call("admin", "POST", "/v1/resume", {});
    const ended = await show(id);
    expect(ended).toMatchObject({ status: "closed", closed_by: null, closed_ms: s.env.now(), left: 0 });
    await s.env.advance(1_000);
    await halt({ actor: "bot" });
    const [next, before] = await list();
    expect([next.status, before.id, before.status]).toEqual(["open", id, "closed"]);
  });

  it("is listed by status and in pages, for auditors and above", async () => {
    verifies("beyond.incidents.list");
    for (const actor of ["a1", "a2", "a3"]) {
      await s.env.advance(1_000);
      await halt({ actor });
    }
    await post("close", { reason: "done" });
    const names = (rows: { actor: string }[]) => rows.map(({ actor }) => actor);
    expect(names(await list())).toEqual(["a3", "a2", "a1", "bot"]);
    expect(names(await list("auditor", "?status=closed"))).toEqual(["bot"]);
    const first = (await s.call("auditor", "GET", "/v1/incidents?status=open&limit=2")).body;
    const rest = (await s.call("auditor", "GET", `/v1/incidents?status=open&cursor=${first.next_cursor}`))
      .body;
    expect([names(first.incidents), names(rest.incidents), rest.next_cursor]).toEqual([
      ["a3", "a2"],
      ["a1"],
      null,
    ]);
    expect((await s.call("bot", "GET", "/v1/incidents")).status).toBe(403);
    expect((await s.call("auditor", "GET", "/v1/incidents?status=none")).status).toBe(400);
    expect((await s.call("auditor", "GET", "/v1/incidents/inc_unknown")).status).toBe(404);
  });
});

describe("the timeline and the exports", () => {
  it("name the person, rule and card of each decision, and hold no value", async () => {
    verifies(
      "beyond.incidents.timeline",
      "beyond.incidents.json",
      "beyond.incidents.md",
      "beyond.incidents.pdf",
      "beyond.incidents.no-values",
    );
    for (let i = 0; i < 20; i++) {
      await openRun(`r${i}`);
      await call(`r${i}`);
    }
    await openRun("r");
    await call("r", "thing.send");
    const [request] = (await s.call("approver", "GET", "/v1/approvals")).body.approvals;
    const card = (await s.call("approver", "GET", `/v1/approvals/${request.id}/card`)).body;
    await s.call("approver", "POST", `/v1/approvals/${request.id}/approve`, {
      note: "fine](javascript:alert(1))",
      card_hash: card.card_hash,
    });
    await made("r", 0, "thing.send");
    await halt({ actor: "bot" });
    const { id } = await only();
    await s.call("operator", "POST", `/v1/incidents/${id}/notes`, { text: "# not a heading" });
    await s.call("operator", "POST", `/v1/incidents/${id}/notes`, { text: "two lines\n# of it" });
    const report = await show(id);
    const approved = report.timeline.find(({ event }: { event: string }) => event === "approved");
    expect(approved).toMatchObject({ by: "approver", rule: "mails", card_hash: card.card_hash, run_id: "r" });
    const events = report.timeline.map(({ event }: { event: string }) => event);
    expect(events).toEqual(expect.arrayContaining(["blocked", "intended", "succeeded", "halted", "note"]));
    expect(report.timeline.map(({ at_ms }: { at_ms: number }) => at_ms)).toEqual(
      report.timeline.map(({ at_ms }: { at_ms: number }) => at_ms).toSorted((a: number, b: number) => a - b),
    );
    const md = await s.call("auditor", "GET", `/v1/incidents/${id}?format=md`);
    expect(md.headers["content-type"]).toContain("text/markdown");
    expect(md.text).toContain("`svc halt lift ");
    expect(md.text).not.toMatch(/^# not a heading/m);
    expect(md.text).toContain("under rule mails");
    expect(md.text).toContain("note by `operator`:\n  - `two lines`\n  - `# of it`\n");
    expect(md.text).toMatch(/Z `call accepted by bot: thing\.send step 0 in r`$/m);
    expect(md.text).toContain("`waits for approval by bot: thing.send in r");
    const pdf = await s.http.inject({
      method: "GET",
      url: `/v1/incidents/${id}?format=pdf`,
      headers: { authorization: "Bearer auditor" },
    });
    expect(pdf.headers["content-type"]).toBe("application/pdf");
    const text = pdfText(new Uint8Array(pdf.rawPayload)).replaceAll(/\s+/g, " ");
    expect(text).toContain("Remaining tasks");
    expect(text).toContain("call accepted by bot: thing.send step 0 in r ");
    expect(text).not.toMatch(/call accepted:|intended/);
    expect(text).toMatch(/r18, r19, r, and 9 older runs/);
    verifies("beyond.incidents.cannot-undo");
    expect(report.cannot_undo).toEqual([
      { run_id: "r", step: 0, tool: "thing.send", at_ms: expect.any(Number), why: "it is irreversible" },
    ]);
    expect(report.cannot_undo_more).toBe(false);
    for (const shown of [md.text, text]) {
      expect(shown).toContain("Cannot be undone");
      expect(shown).toContain("thing.send, step 0 in r: it is irreversible");
    }
    for (const shown of [JSON.stringify(report), md.text, text]) expect(shown).not.toContain("canary-7");
  });

  it("show the agent's alerts in one line per group, and none of a namesake in another tenant", async () => {
    verifies("beyond.incidents.alert-groups");
    s = await testServer({
      manifests: MANIFESTS,
      keys: [{ name: "twin", role: "agent", tenant: "acme" }],
    });
    for (const run_id of ["a", "b"]) await openRun(run_id, "twin");
    for (let i = 0; i < 12; i++) await call("a", "thing.make", "twin");
    const { store } = s.app.core;
    await store.transact({
      needs: [["runs", "b"]],
      run: (tx) => {
        const run = tx.get("runs", "b")!;
        const { permissions } = run.scope;
        const facts = { run_id: "b", actor: "twin", mode: run.mode, tenant: "globex", permissions };
        tx.put("runs", "b", { ...run, tenant: "globex", scope: { permissions, seal: scopeSeal(facts) } });
      },
    });
    const elsewhere = await s.app.core.store.get("runs", "b");
    expect(elsewhere?.tenant).toBe("globex");
    await s.env.advance(2 * HOUR);
    const [one] = (await list()).filter(({ tenant }: { tenant: string }) => tenant === "acme");
    const report = await show(one.id);
    expect(report.alerts).toEqual([
      expect.objectContaining({
        kind: "unresolved_outcome",
        count: 12,
        message: expect.stringContaining("(and 11 more like it)"),
      }),
    ]);
    const md = await s.call("auditor", "GET", `/v1/incidents/${one.id}?format=md`);
    expect(md.text).toContain("## Alerts");
    expect(md.text.match(/more like it/g)).toHaveLength(1);
    expect((await s.call("auditor", "GET", "/v1/alerts")).body.alerts).toHaveLength(12);
    await s.call("operator", "POST", `/v1/incidents/${one.id}/close`, { reason: "r" });
    expect((await show(one.id)).alerts).toEqual([]);
  });

  it("an incident writes no separate record", async () => {
    verifies("beyond.incidents.no-events");
    await halt({ actor: "bot" });
    const { id } = await only();
    const before = await s.app.core.store.head();
    await s.call("operator", "POST", `/v1/incidents/${id}/notes`, { text: "n" });
    await s.call("operator", "POST", `/v1/incidents/${id}/assign`, { to: "ada" });
    await s.call("operator", "POST", `/v1/incidents/${id}/close`, { reason: "done" });
    expect(await s.app.core.store.head()).toEqual(before);
  });
});

it("a liar gains nothing: no agent writes to it, no field passes for another, no rival closes it twice", async () => {
  verifies("beyond.incidents.closed-409", "beyond.incidents.notes");
  s = await open(`rollback: {compensator_cmd: "${undoesAll()}"}\n`);
  await halt({ actor: "bot" });
  const { id } = await only();
  const path = `/v1/incidents/${id}`;
  expect((await s.call("other-bot", "GET", path)).status).toBe(403);
  for (const forged of [{ by: "admin" }, { at_ms: 1 }, { kind: "closed" }])
    expect((await s.call("operator", "POST", `${path}/notes`, { text: "n", ...forged })).status).toBe(400);
  const close = () => s.call("operator", "POST", `${path}/close`, { reason: "mine" });
  const statuses = (await Promise.all([close(), close(), close()])).map(({ status }) => status);
  expect(statuses.toSorted()).toEqual([200, 409, 409]);
  expect((await show(id)).notes).toHaveLength(1);
});
