/** The report on oversight: its figures from decisions that really happened, on each surface. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { registerOversight } from "../../src/cli/commands/approvals/oversight.ts";
import { mountConsole } from "../../src/console/mount.ts";
import { program } from "../support/programs.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { command } from "./support/command.ts";

const POLICY = `
version: 1
rules:
  - {id: ask-mail, match: {tool: mail.send}, action: require_approval}
  - {id: ask-create, match: {tool: crm.create}, action: require_approval}
  - {id: no-get, match: {tool: crm.get}, action: deny, reason: reading is closed}
  - {id: pairs, match: {tool: crm.sync}, action: require_approval, approval: {quorum: 2}}
  - {id: idle, match: {tool: nothing.ever}, action: deny}
`;
const MANIFESTS = `
- {tool: crm.get, effect: read, permission: crm.read}
- {tool: crm.create, effect: idempotent, permission: crm.write}
- {tool: crm.sync, effect: idempotent, permission: crm.write}
- {tool: mail.send, effect: irreversible, permission: mail.send}
`;
const PYTHON = await program("python3");
// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies freely
type Json = any;

/** Reads nothing but the records: who asked when, who decided when. */
const RECOUNT = `
import json, math, re, statistics, sys
asked, by_call, ended, people, plans, glass = {}, {}, {}, {}, {}, 0
def vote(record, event, asked_at, times=1):
    one = people.setdefault(record["actor"], {"approved": 0, "denied": 0, "waits": [], "without_card": 0, "in_group": 0})
    grouped = re.match(r"request \\S+( \\(\\d+ of \\d+\\))? in a group of \\d+", record["detail"])
    one["in_group"] += times if grouped else 0
    one[event] += times
    one["waits"] += [record["ts_ms"] - asked_at] * times
    one["without_card"] += 0 if re.search(r"; card sha256:[0-9a-f]{64}$", record["detail"]) and not grouped else times
for line in sys.stdin:
    record = json.loads(line)
    event, detail, at = record["event"], record.get("detail", ""), record["ts_ms"]
    found = re.search(r"apr_[0-9a-f-]{36}", detail)
    request = found.group() if found else None
    call = (record.get("run_id"), record.get("tool"), record.get("args_hash"))
    if event == "blocked":
        for opened in re.findall(r"request (apr_[0-9a-f-]{36}) is pending", line):
            asked.setdefault(opened, at)
            by_call[call] = opened
    plan = re.search(r"pln_[0-9a-f-]{36}", detail)
    if event == "plan_proposed":
        plans[plan.group()] = (at, int(re.search(r"(\\d+) need approval", detail).group(1)))
    if event in ("plan_approved", "plan_denied"):
        vote(record, event[5:], *plans[plan.group()])
    if event not in ("approved", "denied") or record["actor"] == "engine":
        continue
    if detail.startswith("break-glass:"):
        glass += 1
        ended[by_call[call]] = (None, at)
        continue
    if not re.match(r"request \\S+ \\(\\d+ of \\d+\\)", detail):
        ended[request] = (event, at)
    if plan:
        asked[request] = plans[plan.group()][0]
    else:
        vote(record, event, asked[request])
waits = sorted(at - asked[request] for request, (_, at) in ended.items())
verdicts = [verdict for verdict, _ in ended.values()]
approved, denied = verdicts.count("approved"), verdicts.count("denied")
middle = lambda values: statistics.median(values) if values else None
print(json.dumps({
    "requests": {"opened": len(asked), "approved": approved, "denied": denied},
    "approve_rate": round(approved / (approved + denied), 3),
    "time_to_decide": {"median_ms": middle(waits), "p90_ms": waits[math.ceil(len(waits) * 0.9) - 1]},
    "break_glass": glass,
    "by_approver": {name: {"approved": one["approved"], "denied": one["denied"], "median_ms": middle(one["waits"]),
        "under_5s": sum(wait < 5000 for wait in one["waits"]), "without_card": one["without_card"],
        "in_group": one["in_group"]}
        for name, one in people.items()},
}))
`;
let server: TestServer;

beforeAll(async () => {
  server = await testServer({
    manifests: MANIFESTS,
    policy: POLICY,
    config: "console: {mode: open}\n",
    keys: [{ name: "bob", role: "approver" }],
  });
  mountConsole(server.http, { app: server.app, auth: server.app.auth });
  await server.call("agent", "POST", "/v1/runs", {
    run_id: "r",
    permissions: ["mail.send", "crm.write", "crm.read"],
  });
  await decided("mail.send", 1, "approver", "approve", 2_000);
  await decided("mail.send", 2, "approver", "approve", 60_000);
  await decided("mail.send", 3, "bob", "approve", 120_000);
  await decided("crm.create", 4, "bob", "deny", 8_000);
  const id = await asked("mail.send", 5);
  server.env.advance(30_000);
  await server.call("admin", "POST", `/v1/approvals/${id}/break-glass`, { reason: "the pager is ringing" });
  await server.call("agent", "POST", "/v1/runs/r/intents", { tool: "crm.get", args: {}, reason: "look" });
});

async function asked(tool: string, n: number): Promise<string> {
  const body = { tool, args: { n }, reason: "please" };
  const { text } = await server.call("agent", "POST", "/v1/runs/r/intents", body);
  return /apr_[0-9a-f-]{36}/.exec(text)![0];
}

async function decided(tool: string, n: number, by: string, how: "approve" | "deny", after_ms: number) {
  const id = await asked(tool, n);
  server.env.advance(after_ms);
  expect((await server.call(by, "POST", `/v1/approvals/${id}/${how}`, { note: "seen" })).status).toBe(200);
}

describe("the oversight report", () => {
  it("counts people's decisions, their speed, and their rules", async () => {
    verifies("beyond.oversight.http", "beyond.oversight.figures", "beyond.oversight.rules");
    const { status, body } = await server.call("auditor", "GET", "/v1/report/oversight?since=1d");
    expect(status).toBe(200);
    expect(body).toMatchObject({
      format: "svc-oversight-report",
      requests: { opened: 5, approved: 3, denied: 1, expired: 0 },
      approve_rate: 0.75,
      time_to_decide: { median_ms: 30_000, p90_ms: 120_000 },
      decisions: { total: 4, under_5s: 1, without_card: 4 },
      rules: {
        never_used: ["pairs", "idle"],
        always_approved: [{ rule: "ask-mail", requests: 3 }],
        always_denied: [{ rule: "ask-create", requests: 1 }],
      },
    });
    const bob = body.by_approver.find(({ name }: { name: string }) => name === "bob");
    expect(bob).toMatchObject({ approved: 1, denied: 1, approve_rate: 0.5, median_ms: 64_000, under_5s: 0 });
    const mail = body.by_rule.find(({ name }: { name: string }) => name === "ask-mail");
    expect(mail).toMatchObject({ requests: 4, approved: 3, denied: 0, median_ms: 60_000, under_5s: 1 });
    expect((await server.call("agent", "GET", "/v1/report/oversight")).status).toBe(403);
    for (const bad of ["since=never", "format=pdf", "anonymous=maybe"])
      expect((await server.call("auditor", "GET", `/v1/report/oversight?${bad}`)).status, bad).toBe(400);
  });

  it("counts each vote on a plan, by the hash that it was sent with, and its requests by the last", async () => {
    verifies("beyond.oversight.plans");
    const figures = async () => {
      const { body } = await server.call("auditor", "GET", "/v1/report/oversight?since=1d");
      const named = (list: Json[], wanted: string) => list.find(({ name }) => name === wanted);
      return {
        first: named(body.by_approver, "approver"),
        last: named(body.by_approver, "bob"),
        rule: named(body.by_rule, "pairs"),
      };
    };
    const propose = async () => {
      const call = (n: number) => ({ tool: "crm.sync", args: { n }, reason: "tidy" });
      const proposal = { reason: "a tidy week", calls: [call(1), call(2)] };
      return (await server.call("agent", "POST", "/v1/runs/r/plans", proposal)).body.id as string;
    };
    const vote = async (by: string, id: string, how: string, hashed: boolean) => {
      server.env.advance(10_000);
      const { card_hash } = (await server.call(by, "GET", `/v1/plans/${id}`)).body;
      const sent = await server.call(by, "POST", `/v1/plans/${id}/${how}`, hashed ? { card_hash } : {});
      expect(sent.status, sent.text).toBe(200);
    };
    const before = await figures();
    const id = await propose();
    await vote("approver", id, "approve", true);
    await vote("bob", id, "approve", true);
    const after = await figures();
    expect(after.first).toMatchObject({ approved: before.first.approved + 2, without_card: 2 });
    expect(after.last).toMatchObject({ approved: before.last.approved + 2, without_card: 2 });
    expect(after.rule).toMatchObject({ requests: 2, approved: 2, without_card: 0, median_ms: 20_000 });
    await vote("bob", await propose(), "deny", false);
    expect((await figures()).last).toMatchObject({ denied: before.last.denied + 2, without_card: 4 });
  });

  it("counts a decision in a group separately, and not as one that opened the card", async () => {
    verifies("beyond.oversight.group", "beyond.oversight.group-record");
    const figures = async () => (await server.call("auditor", "GET", "/v1/report/oversight?since=1d")).body;
    const named = (list: Json[], wanted: string) => list.find(({ name }) => name === wanted);
    const before = await figures();
    for (const [n, group_of] of [
      [20, 2],
      [21, 2],
      [22, undefined],
    ] as const) {
      const id = await asked("mail.send", n);
      server.env.advance(10_000);
      const { card_hash } = (await server.call("bob", "GET", `/v1/approvals/${id}/card`)).body;
      // What a note says does not count.
      const given = { note: "x in a group of 9", card_hash, ...(group_of && { group_of }) };
      expect((await server.call("bob", "POST", `/v1/approvals/${id}/approve`, given)).status).toBe(200);
    }
    const after = await figures();
    expect(after.decisions).toEqual({
      ...before.decisions,
      total: before.decisions.total + 3,
      without_card: before.decisions.without_card + 2,
      in_group: 2,
    });
    expect(named(after.by_approver, "bob").in_group).toBe(2);
    expect(named(after.by_approver, "approver").in_group).toBe(0);
    expect(named(after.by_rule, "ask-mail")).toMatchObject({ in_group: 2 });
    const [last] = (await server.app.core.store.records({ event: "approved", limit: 1_000 })).slice(-2);
    expect(JSON.parse(last!).detail).toMatch(
      /^request \S+ in a group of 2: x in .*; card sha256:[0-9a-f]{64}$/,
    );
    const { text } = await server.call("auditor", "GET", "/v1/report/oversight?since=1d&format=md");
    expect(text).toContain("- decided in a group: 2");
  });

  it("reports only figures that a separate program can count again from the ledger", async () => {
    verifies("beyond.oversight.recounted");
    const { body } = await server.call("auditor", "GET", "/v1/report/oversight?since=1d");
    const ledger = (await server.app.core.store.records({ limit: 1_000 })).join("\n");
    const counted = JSON.parse(execFileSync(PYTHON, ["-c", RECOUNT], { input: ledger, encoding: "utf8" }));
    const people = body.by_approver.map(
      ({ name, approved, denied, median_ms, under_5s, without_card, in_group }: Json) => [
        name,
        { approved, denied, median_ms, under_5s, without_card, in_group },
      ],
    );
    const { opened, approved, denied } = body.requests;
    expect(counted).toEqual({
      requests: { opened, approved, denied },
      approve_rate: body.approve_rate,
      time_to_decide: body.time_to_decide,
      break_glass: body.break_glass.count,
      by_approver: Object.fromEntries(people),
    });
  });

  it("knows the broken glass, names no approver where asked, and claims nothing of the law", async () => {
    verifies("beyond.oversight.break-glass", "beyond.oversight.anonymous", "beyond.oversight.duties");
    const { body } = await server.call("auditor", "GET", "/v1/report/oversight?since=1d");
    expect(body.break_glass).toMatchObject({
      count: 1,
      latest: [{ by: "admin", tool: "mail.send", run_id: "r" }],
    });
    expect(body.grants).toEqual({ given: 0, revoked: 0, uses: 0, by_grant: [] });
    expect(body.supports.length).toBeGreaterThan(3);
    const hidden = await server.call("auditor", "GET", "/v1/report/oversight?since=1d&anonymous=1");
    expect(hidden.text).not.toMatch(/"(?:bob|approver|admin)"/);
    expect(hidden.body.by_approver.map(({ name }: { name: string }) => name)).toEqual([
      "approver 1",
      "approver 2",
    ]);
    for (const format of ["md", "html"]) {
      const { text } = await server.call("auditor", "GET", `/v1/report/oversight?since=1d&format=${format}`);
      expect(text).toContain("Human oversight");
      expect(text).toContain("Article 14");
      expect(text).toContain("does not show that a duty is met");
      expect(text).toContain("decided without opening the card (sent without its hash)");
      expect(text).not.toMatch(/\bcompliant\b|complies with/);
    }
  });

  it("is the same on the command line, against the server", async () => {
    verifies("beyond.oversight.command");
    const address = await server.http.listen({ port: 0, host: "127.0.0.1" });
    const env = { SVC_SERVER: address, SVC_TOKEN: "auditor" };
    const run = (...argv: string[]) =>
      command(registerOversight, ["oversight", ...argv], { cwd: tempDir(), env });
    const { code, out } = await run("--since", "1d", "--format", "json", "--anonymous");
    const over = await server.call("auditor", "GET", "/v1/report/oversight?since=1d&anonymous=1");
    expect([code, JSON.parse(out)]).toEqual([0, over.body]);
    expect((await run("--since", "1d")).out).toContain("decisions under five seconds: 1");
    expect((await run("--format", "pdf")).err).toContain("must be one of md, html, json");
    const file = join(tempDir(), "o.html");
    writeFileSync(file, "");
    expect((await run("--out", file, "--format", "html")).out).toContain("wrote");
  });

  it("is a page of the console", async () => {
    verifies("beyond.oversight.console");
    const answer = await server.http.inject({
      url: "/console/oversight?since=1d",
      headers: { host: "127.0.0.1" },
    });
    expect(answer.statusCode).toBe(200);
    for (const text of ["Oversight", "ask-mail", "bob", "Rules never used", "idle"])
      expect(answer.body).toContain(text);
    const hidden = await server.http.inject({
      url: "/console/oversight?since=1d&anonymous=1",
      headers: { host: "127.0.0.1" },
    });
    expect(hidden.body).not.toContain("bob");
    verifies("beyond.oversight.linked");
    for (const url of ["approvals", "approvals/decided", "plans", "grants", "oversight", "evidence"]) {
      const page = await server.http.inject({ url: `/console/${url}`, headers: { host: "127.0.0.1" } });
      expect([url, page.body.includes('href="/console/oversight"')]).toEqual([url, true]);
    }
  });
});
