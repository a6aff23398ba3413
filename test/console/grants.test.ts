/** Grants in the console, in a real browser: given from a card and from the page, and revoked. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { SERVICE_LIMITS } from "../../src/kernel/limits.ts";
import { verifies } from "../support/verifies.ts";
import { Browsing, inaccessible } from "./support/browsing.ts";
import { loggedIn } from "./support/client.ts";
import { type ConsoleServer, consoleServer, MANIFESTS, POLICY } from "./support/server.ts";

let server: ConsoleServer;
let browsing: Browsing;
beforeAll(async () => {
  server = await consoleServer({
    config: "console: login\ncapture: {enabled: true}\n",
    manifests: `${MANIFESTS}- {tool: pay.pair, effect: idempotent, permission: pay.refund}
- {tool: pay.masked, effect: idempotent, permission: pay.refund, audit: {redaction: [$args.note]}}
`,
    policy: POLICY.replace(
      "risk: {}",
      "  - {id: masked, match: {tool: pay.masked}, action: require_approval}\n  - {id: pairs, match: {tool: pay.pair}, action: require_approval, approval: {quorum: 2}}\nrisk: {}",
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
const ask = (amount: number, tool = "pay.refund", key = "agent") => askWith({ amount }, { tool, key });
async function askWith(args: object, { tool = "pay.refund", key = "agent" } = {}) {
  const run_id = `gc${n++}`;
  await server.api(key, "POST", "/v1/runs", { run_id, permissions: ["pay.refund"] });
  const call = { tool, args, reason: "because" };
  return (await server.api(key, "POST", `/v1/runs/${run_id}/intents`, call)).body;
}
const requestIn = (asked: unknown) => /apr_[0-9a-f-]{36}/.exec(JSON.stringify(asked))![0];
async function request(amount: number, tool?: string, key?: string): Promise<string> {
  return requestIn(await ask(amount, tool, key));
}
const grantCount = async () => (await server.api("auditor", "GET", "/v1/grants")).body.grants.length;
async function revokeAll(): Promise<void> {
  for (const { id } of (await server.api("auditor", "GET", "/v1/grants")).body.grants)
    await server.api("admin", "DELETE", `/v1/grants/${id}`);
}
const said = (page: Page) => page.locator("main .notice").first().innerText();

it("approves one and the next ones like it, shows the uses, gives, previews and revokes", async () => {
  verifies("beyond.grant.console");
  expect(await ask(900)).toMatchObject({ decision: "block" });
  const { page, open, complaints } = await browsing.as("approver");
  await open("/approvals");
  await page.getByText("Approve, and the next ones like this").click();
  await page.getByLabel("Number of calls").fill("2");
  await page.locator("article").getByLabel("Reason", { exact: true }).first().fill("the fair");
  await page.getByRole("button", { name: "Approve and grant" }).click();
  expect(await page.locator(".allows").innerText()).toBe(
    "This would allow: pay.refund by agent, no tenant, no environment, amount at most 900, no other arguments; 2 uses within 1 hour, 900 in total.",
  );
  await page.getByRole("button", { name: "Approve and grant" }).click();
  expect(await said(page)).toBe("Approved: pay.refund for agent, and the next 2 like it.");
  expect(await ask(601)).toMatchObject({ decision: "allow" });

  await open("/grants");
  const row = page.locator("#grants tbody tr").first();
  expect(await row.innerText()).toMatch(/active[\s\S]*pay\.refund by agent[\s\S]*big-refunds[\s\S]*1 of 2/);
  expect(await inaccessible(page)).toEqual([]);
  await row.getByRole("button", { name: "Revoke" }).click();
  expect(await said(page)).toBe("Revoked: pay.refund by agent, 1 of 2 used.");
  expect(await ask(902)).toMatchObject({ decision: "block" });

  for (const verb of ["Preview on captured calls", "Create grant"]) {
    await page.getByLabel("Tools").fill("pay.*");
    await page.getByLabel("Actors").fill("agent");
    await page.getByLabel("Rules").fill("big-refunds");
    await page.getByLabel("Only when").fill("$args.amount lte 950");
    await page.getByLabel("Reason", { exact: true }).fill("a week of returns");
    await page.getByRole("button", { name: verb, exact: true }).click();
    if (verb === "Create grant") break;
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
  expect(await reader.page.locator("main").innerText()).not.toMatch(/Create a grant|Revoke\b|950/);
});

const REFUND = { amount: 1_840, currency: "EUR", customer: "c-771", lines: [{ sku: "a", n: 1 }], memo: null };

it("starts from the call: no more money, nobody else, nothing added, and not for long", async () => {
  verifies("beyond.grant.like-call", "beyond.grant.like-call-sentence");
  await revokeAll();
  for (const script of [true, false]) {
    const id = requestIn(await askWith(REFUND));
    const { page, open, complaints, context } = await browsing.as("approver", { script });
    await open(`/approvals/${id}`);
    await page.getByText("Approve, and the next ones like this").click();
    expect(await page.locator(".allows").innerText()).toBe(
      'This would allow: pay.refund by agent, no tenant, no environment, amount at most 1,840, currency EUR, customer c-771, lines [{"sku":"a","n":1}], memo null, no other arguments; 3 uses within 1 hour, 1,840 in total.',
    );
    if (script) expect(await inaccessible(page)).toEqual([]);
    await page.locator("form.alike").getByLabel("Reason", { exact: true }).fill("the fair");
    await page.getByRole("button", { name: "Approve and grant" }).click();
    expect(await said(page)).toBe("Approved: pay.refund for agent, and the next 3 like it.");
    expect(complaints).toEqual([]);
    await context.close();
    const { memo: _, ...without } = REFUND;
    for (const other of [
      { ...REFUND, amount: 1_000_000 },
      { ...REFUND, amount: 1_841 },
      { ...REFUND, amount: "1840" },
      { ...REFUND, amount: 900, customer: "somebody else" },
      { ...REFUND, amount: 900, currency: "USD" },
      { ...REFUND, amount: 900, lines: [{ sku: "a", n: 1, to: "x" }] },
      { ...REFUND, amount: 900, recipient2: "mallory" },
      { ...without, amount: 900 },
    ])
      expect([other, (await askWith(other)).decision]).toEqual([other, "block"]);
    expect(await askWith({ ...REFUND, amount: 1_000 })).toMatchObject({ decision: "allow" });
    // 900 more is over the budget of 1,840; 840 is not.
    expect(await askWith({ ...REFUND, amount: 900 })).toMatchObject({ decision: "block" });
    expect(await askWith({ ...REFUND, amount: 840 })).toMatchObject({ decision: "allow" });
    expect(await askWith({ ...REFUND, amount: 501 })).toMatchObject({ decision: "block" });
    const { grants } = (await server.api("approver", "GET", "/v1/grants")).body;
    expect(grants[0]).toMatchObject({ max_uses: 3, uses: 2, args_only: Object.keys(REFUND).sort() });
    expect(grants[0].expires_ms - grants[0].created_ms).toBeLessThanOrEqual(3_600_000);
    expect((await server.api("approver", "DELETE", `/v1/grants/${grants[0].id}`)).status).toBe(200);
  }
  verifies("beyond.grant.no-values-recorded");
  const lines = await server.app.core.store.records({ event: "granted", limit: 100 });
  expect(lines.join("\n")).toContain("$args.amount within a budget");
  expect(lines.join("\n")).not.toMatch(/1840|c-771/);
});

it("is widened argument by argument, and says what that allows before it is given", async () => {
  verifies("beyond.grant.like-call-sentence");
  await revokeAll();
  const before = await grantCount();
  const id = requestIn(await askWith(REFUND));
  const { page, open, context } = await browsing.as("approver", { script: false });
  await open(`/approvals/${id}`);
  await page.getByText("Approve, and the next ones like this").click();
  await page.getByLabel("customer (now c-771)").selectOption("any value");
  await page.getByLabel("amount at most", { exact: true }).fill("2000");
  await page.getByLabel("Maximum total").fill("5000.5");
  await page.locator("form.alike").getByLabel("Reason", { exact: true }).fill("the fair");
  await page.getByRole("button", { name: "Approve and grant" }).click();
  expect(await page.locator("main").innerText()).toContain("Nothing is approved yet.");
  expect(await page.locator(".allows").innerText()).toContain(
    "amount at most 2,000, currency EUR, any customer, lines",
  );
  expect(await page.locator(".allows").innerText()).toContain("5,000.50 in total");
  expect(await grantCount()).toBe(before);
  expect((await server.api("approver", "GET", `/v1/approvals/${id}`)).body.status).toBe("pending");
  await page.getByRole("button", { name: "Approve and grant" }).click();
  expect(await said(page)).toBe("Approved: pay.refund for agent, and the next 3 like it.");
  expect(await askWith({ ...REFUND, amount: 1_999, customer: "c-1" })).toMatchObject({ decision: "allow" });
  expect(await askWith({ ...REFUND, amount: 1_999, customer: "c-1", x: 1 })).toMatchObject({
    decision: "block",
  });
  const { grants } = (await server.api("approver", "GET", "/v1/grants")).body;
  await server.api("approver", "DELETE", `/v1/grants/${grants[0].id}`);
  await context.close();
});

it("does not name a masked value: the approver says any value, or nothing is approved", async () => {
  verifies("beyond.grant.like-call-masked");
  const args = { amount: 700, note: "hush", password: "correct horse" };
  const id = requestIn(await askWith(args, { tool: "pay.masked" }));
  const approver = await loggedIn(server.url, "approver");
  const { text } = await approver.get(`/console/approvals/${id}`);
  expect(text).toContain("First choose a condition for note, password");
  expect(text).not.toMatch(/hush|correct horse/);
  const { card_hash } = (await server.api("approver", "GET", `/v1/approvals/${id}/card`)).body;
  const path = `/console/approvals/${id}/alike`;
  for (const fields of [
    {},
    { holds_1: "any" },
    { holds_1: "exact", holds_2: "exact" },
    { holds_1: "most", holds_2: "any" },
  ]) {
    const refused = await approver.submit(path, { card_hash, reason: "r", ...fields });
    expect([refused.status, refused.text]).toEqual([
      400,
      expect.stringMatching(/(?:Note|Password): its value is masked/),
    ]);
  }
  expect((await server.api("approver", "GET", `/v1/approvals/${id}`)).body.status).toBe("pending");
  const open = { card_hash, reason: "r", holds_1: "any", holds_2: "any" };
  const shown = await approver.submit(path, open);
  expect(shown.text).toContain("amount at most 700, any note, any password, no other arguments; 3 uses");
  const allows = /name="allows" value="([0-9a-f]{64})"/.exec(shown.text)![1]!;
  expect((await approver.submit(path, { ...open, allows })).status).toBe(303);
  const { grants } = (await server.api("approver", "GET", "/v1/grants")).body;
  expect(JSON.stringify(grants[0])).not.toMatch(/REDACTED|hush|horse/);
  expect(await askWith({ ...args, note: "other" }, { tool: "pay.masked" })).toMatchObject({
    decision: "allow",
  });
});

const FILLED = { max_uses: "2", hours: "1", reason: "the fair" };
const WRONG: [fields: Record<string, string>, said: RegExp][] = [
  [{ budget_max: "600" }, /Budget: name the argument to add up/],
  [{ budget_path: "$args.amount" }, /Budget: set the maximum total/],
  [{ budget_path: "$args.amount", budget_max: "much" }, /Budget.max: must be a number/],
  [{ budget_path: "amount", budget_max: "600" }, /Budget.path: /],
  [{ max_uses: "0" }, /Max_uses: must be at least 1/],
  [{ max_uses: "" }, /Max_uses: must be a number/],
  [{ max_uses: "abc" }, /Max_uses: must be a number/],
  [{ max_uses: "5000" }, /Max_uses: at most 1000 uses/],
  [{ hours: "721" }, /Hours: must be a number above 0 and at most 720/],
  [{ hours: "Infinity" }, /Hours: must be a number/],
  [{ reason: "   " }, /Reason: must not be empty/],
];

it("decides and grants nothing where the form for the next ones is not right", async () => {
  verifies("beyond.grant.console-whole");
  const approver = await loggedIn(server.url, "approver");
  const before = await grantCount();
  const id = await request(1_500);
  const { card_hash } = (await server.api("approver", "GET", `/v1/approvals/${id}/card`)).body;
  const shown = await approver.submit(`/console/approvals/${id}/alike`, { ...FILLED, card_hash });
  const allows = /name="allows" value="([0-9a-f]{64})"/.exec(shown.text)![1]!;
  const give = { tool: "pay.refund", actor: "agent", rules: "big-refunds" };
  for (const [fields, said] of WRONG) {
    for (const [path, more] of [
      [`/console/approvals/${id}/alike`, { card_hash, allows }],
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

it("decides nothing if there is not enough room for a grant like it", async () => {
  verifies("beyond.grant.console-whole");
  const id = await request(1_700, "pay.refund", "twin");
  const approver = await loggedIn(server.url, "approver");
  expect((await approver.get(`/console/approvals/${id}`)).text).toContain("the next ones like this");
  const { card_hash } = (await server.api("approver", "GET", `/v1/approvals/${id}/card`)).body;
  const expires_at = new Date(server.app.core.env.now() + 3_600_000).toISOString();
  const match = { tool: "pay.refund", actor: "twin" };
  const grant = { match, rules: ["big-refunds"], max_uses: 1, expires_at, reason: "one of many" };
  const given = Array.from({ length: SERVICE_LIMITS.grants_alike }, () =>
    server.api("approver", "POST", "/v1/grants", grant),
  );
  for (const { status } of await Promise.all(given)) expect(status).toBe(201);
  const { status, text } = await approver.submit(`/console/approvals/${id}/alike`, { ...FILLED, card_hash });
  expect([status, text]).toEqual([409, expect.stringContaining("revoke some, or wait until they expire")]);
  expect((await server.api("approver", "GET", `/v1/approvals/${id}`)).body).toMatchObject({
    status: "pending",
    votes: [],
  });
  expect((await approver.get(`/console/approvals/${id}`)).text).not.toContain("the next ones like this");
});

it("says that a request still waits where the approval of several did not settle it", async () => {
  const approver = await loggedIn(server.url, "approver");
  const ids = [await request(2, "pay.pair"), await request(1_701)];
  const { to } = await approver.submit("/console/approvals", {
    id: ids,
    decision: "approve",
    confirmed: "2",
  });
  expect((await approver.get(to!)).text).toContain(
    "1 request approved. 1 request still needs more approvals.",
  );
});
