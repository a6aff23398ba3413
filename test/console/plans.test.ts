/** Plans in the console, in a real browser. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { verifies } from "../support/verifies.ts";
import { Browsing, inaccessible } from "./support/browsing.ts";
import { type ConsoleServer, consoleServer, POLICY } from "./support/server.ts";

let server: ConsoleServer;
let browsing: Browsing;
beforeAll(async () => {
  server = await consoleServer({
    policy: `${POLICY.replace("rules:", "rules:\n  - {id: mails, match: {tool: mail.send}, action: require_approval}")}`,
  });
  browsing = await Browsing.at(server.url);
});
afterAll(async () => {
  await browsing?.close();
  await server?.close();
});

it("shows a plan with each call's arguments to whoever decides, and decides it once", async () => {
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

it("asks for the box, too, where nothing takes back what is approved or offered", async () => {
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
  expect(await said()).toMatch(/^Not approved yet: tick/);
  await page.getByRole("checkbox").check();
  await page.getByRole("button", { name: "Approve the plan" }).click();
  expect(await said()).toBe("Plan approved: a mail");

  const { body: blocked } = await server.api("agent", "POST", "/v1/runs/mails/intents", mail("bob"));
  const id = /apr_[0-9a-f-]{36}/.exec(JSON.stringify(blocked))![0];
  await open(`/approvals/${id}`);
  const offering = page.locator("details", { hasText: "Deny, and offer other arguments" });
  const offer = async (ticked: boolean) => {
    await offering.locator("summary").click();
    const args = offering.getByLabel("Arguments that you would approve");
    expect(await args.inputValue()).toContain('"a\\u202eb"');
    await args.fill(JSON.stringify({ to: "cy" }));
    if (ticked) await offering.getByRole("checkbox").check();
    await offering.getByRole("button", { name: "Deny and offer" }).click();
    return said();
  };
  expect(await offer(false)).toMatch(/^Nothing was offered yet: tick/);
  expect((await server.api("agent", "GET", `/v1/approvals/${id}`)).body.status).toBe("pending");
  expect(await offer(true)).toMatch(/^Denied: mail\.send for agent\. The offer stands/);
  expect(complaints).toEqual([]);
});
