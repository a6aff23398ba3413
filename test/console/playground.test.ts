/** The Policy page's bench, in a real browser: a call decided as one types, kept as a test, claims, and comparisons. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { verifies } from "../support/verifies.ts";
import { Browsing, inaccessible, scrollsSideways } from "./support/browsing.ts";
import { type ConsoleServer, consoleServer } from "./support/server.ts";

const MANIFESTS = `
- {tool: crm.get, effect: read, permission: p, risk: {source: customers}}
- {tool: mail.send, effect: irreversible, permission: p, risk: {sink: internet}}
- {tool: pay.refund, effect: compensable, permission: p, compensation: {tool: pay.reclaim, args: {id: $result.id}}}
`;
const POLICY = `# Ours.
version: 1
rules:
  - id: big-refunds
    match: {tool: pay.refund}
    when: [{path: $args.amount, op: gt, value: 500}]
    action: require_approval
    reason: refunds over 500 need a person
flows:
  - {id: stays, after: {source: customers}, then: {sink: internet}, action: deny, hint: write to the wiki}
limits:
  - {id: few, match: {tool: pay.refund}, max: 2, per: run, window: 1h}
windows:
  - {id: office, match: {tool: mail.send}, days: [mon, tue, wed, thu, fri], action: require_approval}
`;
const CLAIM = (over: number) =>
  `claims: [{name: big ones wait, match: {tool: pay.refund}, when: [{path: $args.amount, op: gt, value: ${over}}], at_least: require_approval}]\n`;

let server: ConsoleServer;
let browsing: Browsing;
beforeAll(async () => {
  server = await consoleServer({
    manifests: MANIFESTS,
    policy: POLICY,
    config: "console: login\nregistry: {manifests: $FOLDER/reg-m, policies: $FOLDER/reg-p}\n",
  });
  browsing = await Browsing.at(server.url);
});
afterAll(async () => {
  await browsing?.close();
  await server?.close();
});

const text = (page: Page) => page.getByLabel("Policy (YAML)").inputValue();
const trial = (page: Page) => page.locator("#trial");
const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).first().click();

describe("the playground", () => {
  it("decides a call as one types, and shows which rules, limits and flows spoke", async () => {
    verifies("beyond.playground.types", "beyond.playground.spoke");
    const { page, open, complaints } = await browsing.as("auditor");
    await open("/policy");
    await page.getByLabel("Tool", { exact: true }).fill("pay.refund");
    await trial(page).getByText("No rule, limit, flow or check").waitFor();
    await page.getByLabel("Arguments (JSON or YAML)").fill('{"amount": 900}');
    await trial(page).getByText("refunds over 500 need a person").waitFor();
    expect(await trial(page).innerText()).toMatch(/require approval by big-refunds/);
    await page.getByText("Tenant, environment and earlier calls").click();
    await page.getByLabel("Repeat").fill("3");
    await trial(page).getByText("limit few: 2 calls per run").waitFor();
    expect(await trial(page).innerText()).toMatch(/deny by few[\s\S]*rule big-refunds/);
    verifies("beyond.first.undeclared-verdict");
    await page.getByLabel("Tool", { exact: true }).fill("pay.refnd");
    await trial(page).getByText("The policy alone says allow").waitFor();
    expect(await trial(page).locator(".verdict").innerText()).toBe("block");
    expect(await trial(page).locator(".mark.good").count()).toBe(0);
    verifies("beyond.authors.undeclared-first");
    expect(await trial(page).innerText()).toMatch(/^No manifest declares pay\.refnd[\s\S]*?\nblock\n/);
    await page.getByLabel("Tool", { exact: true }).fill("pay.refund");
    await page.getByLabel("Arguments (JSON or YAML)").fill("{amount: [");
    await trial(page).getByText("arguments:1").first().waitFor();
    await page.getByLabel("Arguments (JSON or YAML)").fill("");
    await page.getByLabel("Repeat").fill("");
    await page.getByLabel("Tool", { exact: true }).fill("mail.send");
    await page.getByLabel("Time").fill("2026-11-15T10:00:00Z");
    await trial(page).getByText("window office", { exact: true }).waitFor();
    await page.getByLabel("Earlier calls of the run").fill("- {tool: crm.get}");
    await trial(page).getByText("follows step 0 (crm.get) of this run").waitFor();
    expect(await trial(page).innerText()).toMatch(/deny by stays[\s\S]*write to the wiki/);
    await page.getByLabel("Policy (YAML)").fill("version: 1\n");
    await trial(page).getByText("No rule, limit, flow or check").waitFor();
    await page.getByLabel("Tool", { exact: true }).fill("nobody.knows");
    await trial(page).getByText("No manifest declares nobody.knows").waitFor();
    expect(await inaccessible(page)).toEqual([]);
    await page.setViewportSize({ width: 390, height: 800 });
    expect(await scrollsSideways(page)).toBe(false);
    expect(complaints).toEqual([]);
  });

  it("works by its button without scripts, and keeps the call as a test of the policy's text", async () => {
    verifies("beyond.playground.button", "beyond.playground.keeps");
    const { page, open, complaints } = await browsing.as("operator", { script: false });
    await open("/policy");
    await page.getByLabel("Tool", { exact: true }).fill("pay.refund");
    await page.getByLabel("Arguments (JSON or YAML)").fill("amount: 900");
    await press(page, "Evaluate");
    expect(await trial(page).innerText()).toMatch(/require approval by big-refunds/);
    await page.getByLabel("Test name").fill("a big one waits");
    await press(page, "Keep as a test");
    expect(await page.locator("main .notice").first().innerText()).toContain(
      "Added the test “a big one waits”",
    );
    expect(await page.locator(".tests").innerText()).toMatch(/ok a big one waits/);
    const line =
      "  - {name: a big one waits, input: {tool: pay.refund, args: {amount: 900}}, expect: require_approval, rule: big-refunds}";
    expect(await text(page)).toBe(`${POLICY}tests:\n${line}\n`);
    await press(page, "Publish as draft");
    expect(await page.locator("main .notice").first().innerText()).toContain("1 test passed");
    await open("/policy?version=1");
    expect(await text(page)).toContain(line);
    expect(complaints).toEqual([]);
  });
});

describe("claims and comparisons", () => {
  it("says of each claim whether it is proved, and a counterexample becomes a test in one click", async () => {
    verifies("beyond.claim.console", "beyond.playground.counterexample");
    const { page, open, complaints } = await browsing.as("auditor");
    await open("/policy");
    await page.getByLabel("Policy (YAML)").fill(POLICY + CLAIM(500));
    await press(page, "Validate and run its tests");
    expect(await page.locator("#claims tbody").innerText()).toMatch(/big ones wait\s+proved/);
    await page.getByLabel("Policy (YAML)").fill(POLICY + CLAIM(100));
    await press(page, "Validate and run its tests");
    expect(await page.locator("#claims tbody").innerText()).toMatch(/counterexample[\s\S]*"amount":101/);
    await page.locator("#claims").getByRole("button", { name: "Keep as a test" }).click();
    await page.getByText("Added the test “big ones wait”").waitFor();
    expect(await text(page)).toMatch(/tests:\n {2}- \{name: big ones wait, input: .*amount: 101/);
    expect(await page.locator(".tests").innerText()).toContain("FAIL big ones wait");
    expect(complaints).toEqual([]);
  });

  it("compares the text with the policy in force or a version: looser, stricter, other, with examples", async () => {
    verifies("beyond.diff.console");
    const { page, open, complaints } = await browsing.as("operator");
    await open("/policy");
    const looser = POLICY.replaceAll("500", "800").replace("max: 2", "max: 1");
    await page.getByLabel("Policy (YAML)").fill(looser);
    await press(page, "Compare all calls");
    const found = page.locator("#difference");
    expect(await found.innerText()).toContain("compared with the active policy");
    expect(await found.innerText()).toMatch(/Looser[\s\S]*require approval big-refunds[\s\S]*"amount":501/);
    expect(await found.innerText()).toMatch(/Stricter[\s\S]*few/);
    await page.getByLabel("Compare with").selectOption("1");
    await page.getByLabel("Policy (YAML)").fill(POLICY);
    await press(page, "Compare all calls");
    expect(await found.innerText()).toMatch(/compared with version 1[\s\S]*The same decision for every call/);
    expect(complaints).toEqual([]);
    const reader = await browsing.as("auditor");
    await reader.open("/policy");
    expect(await reader.page.locator("main").innerText()).not.toContain("Compare all calls");
  });
});
