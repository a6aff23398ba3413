/** The line of a call: what everybody who can read the run sees of it, and where it never appears. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { newKeyPair } from "../../src/evidence/signing.ts";
import { manifestProblems } from "../../src/rules/manifest/load.ts";
import { loggedIn } from "../console/support/client.ts";
import { type ConsoleServer, consoleServer, shiftedEnv } from "../console/support/server.ts";
import { type Received, startReceiver } from "../golden/notify/support/receivers.ts";
import { svc } from "../support/cli.ts";
import { undoesAll } from "../support/commands.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = `
- tool: note.add
  effect: compensable
  permission: p
  compensation: {tool: note.drop, args: {id: $result.id}, requires_approval: true}
  audit: {redaction: [$args.secret_path, $args.deep.hidden]}
  card:
    title: "Add {$args.text}"
    line: "Note {$args.text} for {$args.secret_path}{$args.deep}"
    reveal: [$args.secret_path, $args.deep.hidden]
- {tool: plain.do, effect: idempotent, permission: p}
- {tool: gone.do, effect: irreversible, permission: p, card: {line: "Gone {$args.x}"}}
`;
const POLICY = `version: 1
rules: [{id: ask, match: {tool: note.add}, when: [{path: $args.ask, op: eq, value: true}], action: require_approval, reason: ask}]
retention: {default_days: 10}
`;

let s: ConsoleServer;
const env = shiftedEnv();
let notified: Received[];
let key: string;
let n = 0;
beforeAll(async () => {
  const receiver = await startReceiver();
  notified = receiver.received;
  s = await consoleServer({
    manifests: MANIFESTS,
    policy: POLICY,
    config: `console: login\nrollback: {compensator_cmd: "${undoesAll()}"}\nnotifications: {channels: [{name: hook, type: webhook, url: "${receiver.url()}"}]}\nsigning_key: evidence.key\n`,
    files: { "evidence.key": newKeyPair().private_pem },
    env,
  });
  key = join(tempDir("key"), "operator.key");
  writeFileSync(key, "operator", { mode: 0o600 });
  return async () => {
    await s.close();
    await receiver.close();
  };
});

async function open(): Promise<string> {
  const run_id = `lines-${n++}`;
  await s.api("agent", "POST", "/v1/runs", { run_id, permissions: ["p"] });
  return run_id;
}
const ask = async (run: string, tool: string, args: unknown) =>
  (await s.api("agent", "POST", `/v1/runs/${run}/intents`, { tool, args, reason: "r" })).body;
async function done(run: string, tool: string, args: unknown): Promise<number> {
  const { step } = await ask(run, tool, args);
  const outcome = { status: "succeeded", result: { id: 1 } };
  await s.api("agent", "POST", `/v1/runs/${run}/steps/${step}/outcome`, outcome);
  return step;
}
const lineOf = async (run: string, step: number) =>
  (await s.api("auditor", "GET", `/v1/runs/${run}`)).body.steps[step].line;
const remote = (...args: string[]) => svc([...args, "--server", s.url, "--key-file", key]);

describe("a line", () => {
  it("is a sentence with places for arguments, or the manifest does not load", () => {
    verifies("beyond.line.manifest");
    const problems = (line: string) =>
      manifestProblems(`- {tool: t, effect: read, permission: p, card: {line: "${line}"}}`, "m.yaml").join();
    expect(problems("Add {$args.x}")).toBe("");
    expect(problems("Add {$result.x}")).toContain("card.line: {$result.x} is not a path into the arguments");
    expect(problems("Add {x")).toContain("card.line: contains a brace");
  });

  it("masks credentials and redacted paths, stays one line and is cut at 200 characters", async () => {
    verifies("beyond.line.masked");
    const run = await open();
    const given = async (args: object) => lineOf(run, await done(run, "note.add", args));
    expect(await given({ text: "milk", secret_path: "/srv/canary-path" })).toBe(
      "Note milk for [REDACTED, 16 characters](not given)",
    );
    expect(await given({ text: "a", secret_path: "b", deep: { hidden: "canary", seen: 1 } })).not.toContain(
      "canary",
    );
    const token = `ghp_${"a1B2".repeat(9)}`;
    expect(await given({ text: `push with ${token}` })).not.toContain("a1B2");
    const tricky = (await given({ text: "first\nsecond \u202etxt.exe" })) as string;
    expect(tricky).toContain("Note first\\nsecond \\u202etxt.exe");
    const long = (await given({ text: "x".repeat(5_000), deep: "y".repeat(5_000) })) as string;
    expect(long.length).toBe(200);
    const late = (await given({ text: `${" ".repeat(150)}${token}` })) as string;
    expect(late).not.toContain("ghp_");
    const large = await given({ text: "big", other: Array.from({ length: 5_000 }, (_, i) => i) });
    expect(large).toBe("Note big for (not given)(not given)");
    expect(await lineOf(run, await done(run, "plain.do", { text: "x" }))).toBeUndefined();
  });

  it("is on every surface that shows a run, and a tool without one has its name there", async () => {
    verifies("beyond.line.run");
    const run = await open();
    await done(run, "note.add", { text: "milk" });
    await done(run, "plain.do", {});
    await done(run, "gone.do", { x: 7 });
    const shown = await remote("show", run);
    expect(shown.out).toMatch(/intended +Note milk for/);
    expect(shown.out).toMatch(/intended +plain\.do/);
    expect((await remote("plan", run)).out).toMatch(/0 +Note milk for .* compensate/);
    const undone = await remote("rollback", run, "--approve-compensations");
    expect(undone.out).toContain("compensated: 0 (Note milk for");
    expect(undone.out).toContain("unrecoverable: 2 (Gone 7)");
    const client = await loggedIn(s.url, "operator");
    const page = (await client.get(`/console/runs/${run}`)).text;
    expect(page).toContain("Note milk for");
    expect(page).toContain('<code class="step-tool">plain.do</code>');
    expect((await client.get(`/console/runs/${run}/report`)).text).toContain("Gone 7");
    const pdf = await fetch(`${s.url}/v1/runs/${run}/report.pdf`, {
      headers: { authorization: "Bearer auditor" },
    });
    expect(pdf.status).toBe(200);
  });

  it("is in lists of requests for those who may open the card alone", async () => {
    verifies("beyond.line.requests");
    const run = await open();
    await ask(run, "note.add", { text: "canary-list", ask: true });
    const asked = (who: string) => {
      writeFileSync(key, who, { mode: 0o600 });
      return remote("approvals", "list", "--run", run);
    };
    expect((await asked("approver")).out).toContain("Note canary-list for");
    const blind = await asked("auditor");
    expect(blind.out).toContain("(ask, text)");
    expect(blind.out).not.toContain("canary");
    expect((await (await loggedIn(s.url, "approver")).get("/console/approvals")).text).toContain(
      "Note canary-list for",
    );
    expect((await (await loggedIn(s.url, "auditor")).get("/console/approvals")).text).not.toContain(
      "canary-list",
    );
    writeFileSync(key, "operator", { mode: 0o600 });
  });

  it("is in no listing, notification, bundle, period report or record, and ends with the run", async () => {
    verifies("beyond.line.never", "beyond.line.deleted");
    const run = await open();
    await done(run, "note.add", { text: "canary-never" });
    await ask(run, "note.add", { text: "canary-never", ask: true });
    await until(() => notified.some(({ body }) => body.includes(run)), "the notification");
    const texts = await Promise.all(
      [
        "/v1/approvals",
        `/v1/runs/${run}/export`,
        `/v1/runs/${run}/bundle`,
        "/v1/report?since=1d",
        "/v1/search/records?q=canary-never",
      ].map(async (path) =>
        (await fetch(s.url + path, { headers: { authorization: "Bearer auditor" } })).text(),
      ),
    );
    for (const text of [...texts, JSON.stringify(notified)]) expect(text).not.toContain("canary-never");
    env.forward(12 * 86_400_000);
    expect((await s.api("admin", "POST", "/v1/retention/apply", {})).body.deleted).toContain(run);
    expect((await s.api("auditor", "GET", `/v1/runs/${run}`)).status).toBe(404);
    expect(await s.app.core.store.list("steps", { owner: run, limit: 1 })).toEqual([]);
  });
});
