/** Plans in the console, in a real browser. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { svc } from "../support/cli.ts";
import { verifies } from "../support/verifies.ts";
import { Browsing, inaccessible } from "./support/browsing.ts";
import { type ConsoleServer, consoleServer, POLICY } from "./support/server.ts";

const RULES = `rules:
  - {id: mails, match: {tool: mail.send}, action: require_approval}
  - {id: huge, match: {tool: pay.refund}, when: [{path: $args.amount, op: gt, value: 5000}], action: require_approval, approval: {groups: [finance]}}
  - {id: contacts, match: {tool: crm.create}, action: require_approval, approval: {groups: [sales]}}`;

let server: ConsoleServer;
let browsing: Browsing;
beforeAll(async () => {
  server = await consoleServer({
    policy: POLICY.replace("rules:", RULES),
    keys: ["finance", "sales"].map((group) => ({ name: `${group}-lead`, role: "approver", groups: [group] })),
  });
  browsing = await Browsing.at(server.url);
});
afterAll(async () => {
  await browsing?.close();
  await server?.close();
});

it("shows a plan with each call's arguments to its approvers, and decides it once", async () => {
  verifies("beyond.plan.console");
  await server.api("agent", "POST", "/v1/runs", { run_id: "planned", permissions: ["pay.refund"] });
  const calls = [900, 901].map((amount) => ({ tool: "pay.refund", args: { amount } }));
  const { body } = await server.api("agent", "POST", "/v1/runs/planned/plans", {
    reason: "two refunds",
    calls,
  });
  const reader = await browsing.as("auditor");
  await reader.open(`/plans/${body.id}`);
  expect(await reader.page.locator("main").innerText()).not.toMatch(/900|Approve the plan/);
  const { page, open, complaints } = await browsing.as("approver");
  await open("/plans");
  await page.getByRole("link", { name: "two refunds" }).click();
  expect(await page.locator("#call-1").innerText()).toContain("901");
  expect(await inaccessible(page)).toEqual([]);
  await page.getByRole("button", { name: "Approve the plan" }).click();
  expect(await page.locator("main .notice").first().innerText()).toBe("Plan approved: two refunds");
  expect(complaints).toEqual([]);
  const ask = { tool: "pay.refund", args: { amount: 900 }, reason: "r" };
  expect((await server.api("agent", "POST", "/v1/runs/planned/intents", ask)).body).toMatchObject({
    decision: "allow",
  });
});

it("shows each decider the calls that are theirs, on the page and in the terminal, and no value of the others", async () => {
  verifies("beyond.plan.cards-surfaces");
  await server.api("agent", "POST", "/v1/runs", {
    run_id: "shared",
    permissions: ["pay.refund", "crm.write"],
  });
  const refund = { tool: "pay.refund", args: { amount: 7654.25 }, reason: "a broken parcel" };
  const contact = { tool: "crm.create", args: { name: "canary-name" }, reason: "a new customer" };
  const plans = "/v1/runs/shared/plans";
  const { body: plan } = await server.api("agent", "POST", plans, {
    reason: "both",
    calls: [refund, contact],
  });
  const { body: asked } = await server.api("agent", "POST", "/v1/runs/shared/intents", contact);
  const id = /apr_[\w-]+/.exec(JSON.stringify(asked))![0];

  const sees = { "finance-lead": [true, false], "sales-lead": [false, true] } as const;
  for (const [key, [money, name]] of Object.entries(sees)) {
    const env = { SVC_SERVER: server.url, SVC_TOKEN: key };
    const [terminal, request] = await Promise.all([
      svc(["plans", "show", plan.id], { env }),
      svc(["approvals", "show", id], { env }),
    ]);
    expect([terminal.out.includes("7654.25"), terminal.out.includes("canary-name")]).toEqual([money, name]);
    expect([request.code, request.out.includes("canary-name")]).toEqual(name ? [0, true] : [1, false]);
    const { page, open } = await browsing.as(key);
    await open(`/plans/${plan.id}`);
    const shown = await page.locator("main").innerText();
    expect([shown.includes("7,654.25") || shown.includes("7654.25"), shown.includes("canary-name")]).toEqual([
      money,
      name,
    ]);
    expect(shown).toContain("Only users who can decide this call see the values.");
    await open(`/approvals/${id}`);
    const card = await page.locator(`article#${id}`).innerText();
    expect([card.includes("canary-name"), card.includes("Approvers in sales")]).toEqual([name, !name]);
  }
});

it("asks for the box, too, if nothing undoes the approved or offered call", async () => {
  verifies("beyond.plan.console", "beyond.card.second-gesture");
  const mail = (to: string) => ({ tool: "mail.send", args: { to, text: "a\u202eb" }, reason: "asked for" });
  await server.api("agent", "POST", "/v1/runs", { run_id: "mails", permissions: ["mail.send"] });
  const plans = "/v1/runs/mails/plans";
  const { body: plan } = await server.api("agent", "POST", plans, { reason: "a mail", calls: [mail("ann")] });
  const { page, open, complaints } = await browsing.as("approver");
  const said = () => page.locator("main .notice").first().innerText();
  await open(`/plans/${plan.id}`);
  const { cards } = (await server.api("approver", "GET", `/v1/plans/${plan.id}`)).body;
  const shown = await page.locator("#call-0").innerText();
  for (const text of [
    cards[0].sentence,
    cards[0].way_back.text,
    ...cards[0].more.map((one: { text: string }) => one.text),
  ])
    expect(shown).toContain(text);
  await page.getByRole("button", { name: "Approve the plan" }).click();
  expect(await said()).toMatch(/^Not approved yet: confirm/);
  await page.getByRole("checkbox").check();
  await page.getByRole("button", { name: "Approve the plan" }).click();
  expect(await said()).toBe("Plan approved: a mail");

  const { body: blocked } = await server.api("agent", "POST", "/v1/runs/mails/intents", mail("bob"));
  const id = /apr_[0-9a-f-]{36}/.exec(JSON.stringify(blocked))![0];
  await open(`/approvals/${id}`);
  const offering = page.locator("details", { hasText: "Deny and offer other arguments" });
  const typed = offering.getByLabel("Arguments that you would approve");
  const offer = async (text: string, ticked: boolean) => {
    await typed.fill(text);
    if (ticked) await offering.getByRole("checkbox").check();
    await offering.getByRole("button", { name: "Deny and offer" }).click();
    return said();
  };
  await offering.locator("summary").click();
  expect(await typed.inputValue()).toContain('"a\\u202eb"');
  verifies("beyond.offer.kept");
  await offering.getByLabel("Why").fill("rather cy");
  const args = JSON.stringify({ to: "cy" });
  expect(await offer(args, false)).toMatch(/^Nothing was offered yet: confirm/);
  expect(await offer('{"to": <b>', true)).toMatch(/^Nothing was offered yet: the arguments are not JSON/);
  expect(await typed.inputValue()).toBe('{"to": <b>');
  expect(await offering.getByLabel("Why").inputValue()).toBe("rather cy");
  expect((await server.api("agent", "GET", `/v1/approvals/${id}`)).body.status).toBe("pending");
  expect(await offer(args, true)).toMatch(
    /^Denied: mail\.send for agent\. The agent can use your offer instead/,
  );
  expect(complaints).toEqual([]);
});

it("draws a bounded number of lines of a long plan, and opens each further call by its link", async () => {
  verifies("beyond.heavy.page");
  await server.api("agent", "POST", "/v1/runs", { run_id: "long-plan", permissions: ["crm.write"] });
  const text = (i: number) => Array.from({ length: 300 }, (_, n) => `line ${n} of ${i}`).join("\n");
  const calls = Array.from({ length: 60 }, (_, i) => ({
    tool: "crm.create",
    args: { name: "x".repeat(5_000), note: text(i) },
  }));
  const { body } = await server.api("agent", "POST", "/v1/runs/long-plan/plans", { reason: "much", calls });
  const { page, open } = await browsing.as("sales-lead");
  await open(`/plans/${body.id}`);
  const drawn = () => page.locator(".judged").count();
  expect(await drawn()).toBeGreaterThan(5);
  expect(await drawn()).toBeLessThan(60);
  const last = page.locator("#call-59");
  expect(await last.locator(".judged").count()).toBe(0);
  await last.getByRole("link", { name: "Show this call" }).click();
  expect(await page.locator("#call-59 .judged").textContent()).toContain("line 299 of 59");
  expect(await drawn()).toBeLessThan(60);
  // Calls that the page does not show are not approved in passing.
  await page.getByRole("button", { name: "Approve the plan" }).click();
  await page.locator(".notice").first().waitFor();
  expect(await page.locator(".notice").first().innerText()).toContain(
    "open the calls that the page does not show",
  );
  expect((await server.api("agent", "GET", `/v1/plans/${body.id}`)).body.status).toBe("pending");
});
