/** Grants in the console, in a real browser: from a card, from the page, and taken back. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { LIMITS } from "../../src/kernel/limits.ts";
import { verifies } from "../support/verifies.ts";
import { Browsing, inaccessible } from "./support/browsing.ts";
import { loggedIn } from "./support/client.ts";
import { type ConsoleServer, consoleServer, MANIFESTS, POLICY } from "./support/server.ts";

let server: ConsoleServer;
let browsing: Browsing;
beforeAll(async () => {
  server = await consoleServer({
    config: "console: login\ncapture: {enabled: true}\n",
    manifests: `${MANIFESTS}- {tool: pay.pair, effect: idempotent, permission: pay.refund}\n`,
    policy: POLICY.replace(
      "risk: {}",
      "  - {id: pairs, match: {tool: pay.pair}, action: require_approval, approval: {quorum: 2}}\nrisk: {}",
    ),
    keys: [
      { name: "twin", roles: ["agent", "approver"] },
      { name: "bot{1,2}", role: "agent" },
    ],
  });
  browsing = await Browsing.at(server.url);
});
afterAll(async () => {
  await browsing?.close();
  await server?.close();
});
let n = 0;
async function ask(amount: number, tool = "pay.refund", key = "agent") {
  const run_id = `gc${n++}`;
  await server.api(key, "POST", "/v1/runs", { run_id, permissions: ["pay.refund"] });
  const call = { tool, args: { amount }, reason: "because" };
  return (await server.api(key, "POST", `/v1/runs/${run_id}/intents`, call)).body;
}
async function request(amount: number, tool?: string, key?: string): Promise<string> {
  return /apr_[0-9a-f-]{36}/.exec(JSON.stringify(await ask(amount, tool, key)))![0];
}
const grantCount = async () => (await server.api("auditor", "GET", "/v1/grants")).body.grants.length;
const said = (page: Page) => page.locator("main .notice").first().innerText();

it("approves one and the next ones like it, shows what is used, gives, previews and revokes", async () => {
  verifies("beyond.grant.console");
  expect(await ask(900)).toMatchObject({ decision: "block" });
  const { page, open, complaints } = await browsing.as("approver");
  await open("/approvals");
  await page.getByText("Approve, and the next ones like this").click();
  await page.getByLabel("How many more").fill("2");
  await page.locator("article").getByLabel("Reason", { exact: true }).first().fill("the fair");
  await page.getByRole("button", { name: "Approve and grant" }).click();
  expect(await said(page)).toBe("Approved: pay.refund for agent, and the next 2 like it.");
  expect(await ask(901)).toMatchObject({ decision: "allow" });

  await open("/grants");
  const row = page.locator("#grants tbody tr").first();
  expect(await row.innerText()).toMatch(/in force[\s\S]*pay\.refund by agent[\s\S]*big-refunds[\s\S]*1 of 2/);
  expect(await inaccessible(page)).toEqual([]);
  await row.getByRole("button", { name: "Revoke" }).click();
  expect(await said(page)).toBe("Revoked: pay.refund by agent, 1 of 2 used.");
  expect(await ask(902)).toMatchObject({ decision: "block" });

  for (const verb of ["Preview on captured calls", "Give"]) {
    await page.getByLabel("Tools").fill("pay.*");
    await page.getByLabel("Actors").fill("agent");
    await page.getByLabel("Rules").fill("big-refunds");
    await page.getByLabel("Only when").fill("$args.amount lte 950");
    await page.getByLabel("Reason", { exact: true }).fill("a week of returns");
    await page.getByRole("button", { name: verb, exact: true }).click();
    if (verb === "Give") break;
    await page.getByText("would have been covered").waitFor();
    expect(await page.locator("#preview").innerText()).toMatch(
      /\d of the last \d captured calls would have been covered/,
    );
  }
  expect(await said(page)).toBe("Granted: the next 10 calls of pay.* by agent.");
  expect(await ask(949)).toMatchObject({ decision: "allow" });
  expect(complaints).toEqual([]);

  const reader = await browsing.as("auditor");
  await reader.open("/grants");
  expect(await reader.page.locator("main").innerText()).not.toMatch(/Give a grant|Revoke\b|950/);
});

const FILLED = { max_uses: "2", hours: "1", reason: "the fair" };
const WRONG: [fields: Record<string, string>, said: RegExp][] = [
  [{ budget_max: "600" }, /Budget: say which argument adds up to it/],
  [{ budget_path: "$args.amount" }, /Budget: say how much the argument may add up to/],
  [{ budget_path: "$args.amount", budget_max: "much" }, /Budget.max: must be a number/],
  [{ budget_path: "amount", budget_max: "600" }, /Budget.path: /],
  [{ max_uses: "0" }, /Max_uses: must be at least 1/],
  [{ max_uses: "" }, /Max_uses: must be a number/],
  [{ max_uses: "abc" }, /Max_uses: must be a number/],
  [{ max_uses: "5000" }, /Max_uses: at most 1000 uses/],
  [{ hours: "721" }, /Hours: for how long\? Write a number above 0 and at most 720/],
  [{ hours: "Infinity" }, /Hours: for how long/],
  [{ reason: "   " }, /Reason: must not be empty/],
];

it("decides and grants nothing where the form for the next ones is not right", async () => {
  verifies("beyond.grant.console-whole");
  const approver = await loggedIn(server.url, "approver");
  const before = await grantCount();
  const id = await request(1_500);
  const { card_hash } = (await server.api("approver", "GET", `/v1/approvals/${id}/card`)).body;
  const give = { tool: "pay.refund", actor: "agent", rules: "big-refunds" };
  for (const [fields, said] of WRONG) {
    for (const [path, more] of [
      [`/console/approvals/${id}/alike`, { card_hash }],
      ["/console/grants", give],
    ] as const) {
      const { status, text } = await approver.submit(path, { ...FILLED, ...more, ...fields });
      expect([fields, path, status, text]).toEqual([fields, path, 400, expect.stringMatching(said)]);
    }
  }
  const stale = { ...FILLED, card_hash: `sha256:${"0".repeat(64)}` };
  expect((await approver.submit(`/console/approvals/${id}/alike`, stale)).status).toBe(409);
  expect((await server.api("approver", "GET", `/v1/approvals/${id}`)).body).toMatchObject({
    status: "pending",
    votes: [],
  });
  expect(await grantCount()).toBe(before);
});

it("does not offer the next ones where the person's decision alone could not be repeated", async () => {
  verifies("beyond.grant.console-whole");
  const before = await grantCount();
  for (const [who, id] of [
    ["approver", await request(1, "pay.pair")],
    ["approver", await request(1_600, "pay.refund", "bot{1,2}")],
    ["twin", await request(1_601, "pay.refund", "twin")],
  ] as const) {
    const person = await loggedIn(server.url, who);
    const { text } = await person.get(`/console/approvals/${id}`);
    expect(text).toContain(">Approve</button>");
    expect(text).not.toContain("the next ones like this");
    const { status } = await person.submit(`/console/approvals/${id}/alike`, FILLED);
    expect([400, 403]).toContain(status);
    expect((await server.api("admin", "GET", `/v1/approvals/${id}`)).body).toMatchObject({
      status: "pending",
      votes: [],
    });
  }
  expect(await grantCount()).toBe(before);
});

it("decides nothing where there is no room for a grant like it any more", async () => {
  verifies("beyond.grant.console-whole");
  const id = await request(1_700, "pay.refund", "twin");
  const approver = await loggedIn(server.url, "approver");
  expect((await approver.get(`/console/approvals/${id}`)).text).toContain("the next ones like this");
  const { card_hash } = (await server.api("approver", "GET", `/v1/approvals/${id}/card`)).body;
  const expires_at = new Date(server.app.core.env.now() + 3_600_000).toISOString();
  const match = { tool: "pay.refund", actor: "twin" };
  const grant = { match, rules: ["big-refunds"], max_uses: 1, expires_at, reason: "one of many" };
  const given = Array.from({ length: LIMITS.grants_alike }, () =>
    server.api("approver", "POST", "/v1/grants", grant),
  );
  for (const { status } of await Promise.all(given)) expect(status).toBe(201);
  const { status, text } = await approver.submit(`/console/approvals/${id}/alike`, { ...FILLED, card_hash });
  expect([status, text]).toEqual([409, expect.stringContaining("revoke some, or let them end")]);
  expect((await server.api("approver", "GET", `/v1/approvals/${id}`)).body).toMatchObject({
    status: "pending",
    votes: [],
  });
  expect((await approver.get(`/console/approvals/${id}`)).text).not.toContain("the next ones like this");
});

it("says that a request still waits where the approval of several did not settle it", async () => {
  const approver = await loggedIn(server.url, "approver");
  const ids = [await request(2, "pay.pair"), await request(1_701)];
  const { to } = await approver.submit("/console/approvals", { id: ids, decision: "approve" });
  expect((await approver.get(to!)).text).toContain("1 request approved. 1 waits for others to approve too.");
});
