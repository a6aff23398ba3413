/** Values that are kept for a request: where they may be seen in the meantime, and that nothing of them is left. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { afterAll, describe, expect, it } from "vitest";
import { ValuePurger } from "../../src/operations/background/purge-values.ts";
import { openStore } from "../../src/store/open.ts";
import { freshDatabase } from "../support/postgres.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const CANARY = "canary-9d27";
const MANIFESTS = `
- {tool: pay.out, effect: irreversible, permission: pay, card: {title: "Pay {$args.to}"}}
`;
const POLICY = (more = "") => `
version: 1
rules: [{id: pays, match: {tool: pay.out}, action: require_approval, reason: look first}]
${more}
`;

function everyFile(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile());
}
const holding = (folder: string, text = CANARY) =>
  everyFile(folder).filter((path) => readFileSync(path).includes(text));

async function ask(s: TestServer, run_id: string) {
  await s.call("agent", "POST", "/v1/runs", { run_id, permissions: ["pay"] });
  const args = { to: CANARY, note: `for ${CANARY}` };
  const { body } = await s.call("agent", "POST", `/v1/runs/${run_id}/intents`, {
    tool: "pay.out",
    args,
    reason: "r",
  });
  return /apr_[0-9a-f-]{36}/.exec(JSON.stringify(body))![0];
}

async function end(s: TestServer): Promise<void> {
  const denied = await ask(s, "denied");
  expect((await s.call("approver", "GET", `/v1/approvals/${denied}/card`)).text).toContain(CANARY);
  await s.call("approver", "POST", `/v1/approvals/${denied}/deny`, {});
  const left = await ask(s, "left");
  await s.env.advance(25 * 3_600_000);
  expect((await s.call("approver", "POST", `/v1/approvals/${left}/approve`, {})).status).toBe(409);
  for (const id of [denied, left])
    expect((await s.call("admin", "GET", `/v1/approvals/${id}/card`)).text).not.toContain(CANARY);
}

describe("after the end of a request", () => {
  it.each(["files", "sqlite"] as const)("no file of %s holds a value within the hour", async (kind) => {
    verifies("beyond.card.files-clean");
    const data = join(tempDir("values"), "data");
    const store = await openStore({ store: kind, data, database_url: null, warn: () => {} });
    const s = await testServer({ manifests: MANIFESTS, policy: POLICY(), store });
    await end(s);
    expect(holding(data)).not.toEqual([]);
    // What continues four times an hour in every process.
    await new ValuePurger(store).tidy();
    expect(holding(data)).toEqual([]);
    const again = await ask(s, "again");
    await s.call("approver", "POST", `/v1/approvals/${again}/deny`, {});
    await s.app.close();
    expect(holding(data)).toEqual([]);
  });

  it("of a plan its values are gone, too, whichever way it ends and whichever record that leaves", async () => {
    verifies("beyond.card.files-clean");
    const data = join(tempDir("values"), "data");
    const store = await openStore({ store: "files", data, database_url: null, warn: () => {} });
    const manifests = `${MANIFESTS}- {tool: pay.look, effect: read, permission: pay}\n`;
    const s = await testServer({ manifests, policy: POLICY(), store });
    const forgotten = new ValuePurger(store);
    const propose = async (run_id: string, tools: string[]): Promise<string> => {
      await s.call("agent", "POST", "/v1/runs", { run_id, permissions: ["pay"] });
      const calls = tools.map((tool) => ({
        tool,
        args: { to: CANARY, mark: `mark of ${tool}` },
        reason: "r",
      }));
      const { body } = await s.call("agent", "POST", `/v1/runs/${run_id}/plans`, { reason: "p", calls });
      await forgotten.tidy();
      expect(holding(data)).not.toEqual([]);
      return body.id;
    };
    const denied = await propose("plan-denied", ["pay.out"]);
    await s.call("approver", "POST", `/v1/plans/${denied}/deny`, {});
    await forgotten.tidy();
    expect(holding(data)).toEqual([]);
    const made = await propose("plan-made", ["pay.look", "pay.out"]);
    await s.call("approver", "POST", `/v1/plans/${made}/approve`, {});
    const use = async (tool: string) => {
      await forgotten.tidy();
      const intent = { tool, args: { to: CANARY, mark: `mark of ${tool}` }, reason: "r" };
      const { body } = await s.call("agent", "POST", "/v1/runs/plan-made/intents", intent);
      expect(body.decision).toBe("allow");
      await forgotten.tidy();
      const done = { status: "succeeded", result: {} };
      await s.call("agent", "POST", `/v1/runs/plan-made/steps/${body.step}/outcome`, done);
      expect(holding(data, `mark of ${tool}`)).not.toEqual([]);
      await forgotten.tidy();
      expect(holding(data, `mark of ${tool}`)).toEqual([]);
    };
    await use("pay.look");
    await use("pay.out");
    expect((await s.call("auditor", "GET", `/v1/plans/${made}`)).body.status).toBe("done");
    expect(holding(data)).toEqual([]);
    await s.app.close();
  });

  it("no row of the database holds a value", async () => {
    verifies("beyond.card.files-clean");
    const database = await freshDatabase();
    afterAll(() => database.drop());
    const store = await openStore({
      store: "postgres",
      data: tempDir("none"),
      database_url: database.url,
      warn: () => {},
    });
    const s = await testServer({ manifests: MANIFESTS, policy: POLICY(), store });
    await end(s);
    const client = new pg.Client(database.url);
    await client.connect();
    const { rows } = await client.query("SELECT tbl, key FROM svc_docs WHERE position($1 in doc) > 0", [
      CANARY,
    ]);
    const { rows: lines } = await client.query("SELECT 1 FROM svc_ledger WHERE position($1 in line) > 0", [
      CANARY,
    ]);
    await client.end();
    expect([rows, lines]).toEqual([[], []]);
    await s.app.close();
  });
});

describe("while a request is open", () => {
  it("its values are in no listing, log, metric, notification, search, export or record", async () => {
    verifies("beyond.card.listing-names", "beyond.card.no-leak");
    const s = await testServer({ manifests: MANIFESTS, policy: POLICY() });
    const told: unknown[] = [];
    s.app.notifier.notify = ((event: unknown) => void told.push(event)) as never;
    const id = await ask(s, "open");
    expect(told).toHaveLength(1);
    const paths = [
      "/v1/approvals",
      `/v1/approvals/${id}`,
      "/v1/search/records?run_id=open",
      "/v1/search/runs",
      "/v1/runs/open",
      "/v1/runs/open/export",
      "/v1/runs/open/report",
      "/v1/report?format=json",
      "/v1/alerts",
      "/v1/status",
      "/metrics",
    ];
    for (const path of paths) {
      const { status, text } = await s.call("admin", "GET", path);
      expect(status, path).toBe(200);
      expect(text, path).not.toContain(CANARY);
    }
    expect(JSON.stringify(told)).not.toContain(CANARY);
    expect(s.logged.join("\n")).not.toContain(CANARY);
    const [listed] = (await s.call("auditor", "GET", "/v1/approvals")).body.approvals;
    expect(listed.arg_names).toEqual(["note", "to"]);
  });

  it("only names are kept if the policy asks for it", async () => {
    verifies("beyond.card.show-names");
    const s = await testServer({ manifests: MANIFESTS, policy: POLICY("approvals: {show: names}") });
    const id = await ask(s, "names");
    const { body, text } = await s.call("approver", "GET", `/v1/approvals/${id}/card`);
    expect(text).not.toContain(CANARY);
    expect(body).toMatchObject({ sentence: "Pay (not kept)", arguments: null, arg_names: ["note", "to"] });
    const decided = await s.call("approver", "POST", `/v1/approvals/${id}/approve`, {
      card_hash: body.card_hash,
    });
    expect(decided.body.status).toBe("approved");
    expect(await s.app.core.store.count("approval_values")).toBe(0);
  });

  it("they go with the run", async () => {
    verifies("beyond.card.purged");
    const s = await testServer({
      manifests: MANIFESTS,
      policy: POLICY("approvals: {ttl: 90d}\nretention: {default_days: 1}"),
    });
    await ask(s, "old");
    expect(await s.app.core.store.count("approval_values")).toBe(1);
    await s.env.advance(3 * 86_400_000);
    const { body } = await s.call("admin", "POST", "/v1/retention/apply", {});
    expect(body.deleted).toEqual(["old"]);
    expect(await s.app.core.store.count("approval_values")).toBe(0);
  });
});
