/** A card on a phone, in a real browser: nothing of a call is out of sight before an irreversible call is confirmed. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { verifies } from "../support/verifies.ts";
import { Browsing, inaccessible, scrollsSideways, type Visitor } from "./support/browsing.ts";
import { loggedIn } from "./support/client.ts";
import { type ConsoleServer, consoleServer } from "./support/server.ts";

const MANIFESTS = `
- tool: mail.send
  effect: irreversible
  permission: p
  risk: {blast_radius: external}
  card: {title: "Mail {$args.recipients}", fields: [{label: Recipients, path: $args.recipients, as: code}, {label: Body, path: $args.body}, {label: Edit, path: $args.edit, as: diff}]}
- tool: crm.note
  effect: compensable
  permission: p
  compensation: {tool: crm.drop, args: {id: $args.id}}
`;
const POLICY = `version: 1
approvals: {flood: {max: 1, window: 10m}}
rules: [{id: ask, match: {tool: "*"}, action: require_approval, reason: a person looks}]
risk: {}
`;
const PHONE = { width: 360, height: 740 };
const OFFERED = ".decide input[name=irreversible]:enabled";
const recipients = Array.from({ length: 40 }, (_, i) => `customer.number.${i}@example.com`);
const body = `Dear customer,\n${"we write to you because of your order. ".repeat(79)}\nthe last words`;
const args = {
  recipients,
  body,
  edit: { old: "a", new: "b", replace_all: true },
  Subject: "urgent",
};

let server: ConsoleServer;
let browsing: Browsing;
let n = 0;
beforeAll(async () => {
  server = await consoleServer({ manifests: MANIFESTS, policy: POLICY });
  browsing = await Browsing.at(server.url);
});
afterAll(async () => {
  await browsing.close();
  await server.close();
});

async function asked(tool: string, given: unknown): Promise<string> {
  const run_id = `phone${n++}`;
  await server.api("agent", "POST", "/v1/runs", { run_id, permissions: ["p"] });
  const call = { tool, args: given, reason: "the customers wait" };
  const { body } = await server.api("agent", "POST", `/v1/runs/${run_id}/intents`, call);
  return /apr_[0-9a-f-]{36}/.exec(JSON.stringify(body))![0];
}

async function onPhone(id: string, script = true): Promise<Visitor> {
  const visitor = await browsing.as("approver", { phone: true, script });
  await visitor.page.setViewportSize(PHONE);
  await visitor.open(`/approvals/${id}`);
  return visitor;
}

/** Elements of the card whose content is cut: taller or wider than the box that shows it. */
const CUT = `[...document.querySelectorAll("article.approval, article.approval *")].filter((one) => {
  const style = getComputedStyle(one);
  if (one.closest(".unseen, form") || style.display === "inline") return false;
  const shuts = (way) => ["hidden", "clip", "auto", "scroll"].includes(way);
  return (shuts(style.overflowY) && one.scrollHeight > one.clientHeight + 1) || (shuts(style.overflowX) && one.scrollWidth > one.clientWidth + 1);
}).map((one) => one.outerHTML.slice(0, 120))`;

it("shows counts, folds long values, and offers the box of an irreversible call once all were opened", async () => {
  verifies("beyond.card.sizes", "beyond.card.expand", "beyond.card.expand-first", "beyond.card.name-quoted");
  const id = await asked("mail.send", args);
  const { page, context, complaints } = await onPhone(id);
  const card = page.locator("article.approval");
  const text = await card.innerText();
  for (const part of [
    "Show all 40 recipients",
    `Show all ${body.length.toLocaleString("en")} characters`,
    '"Subject"',
    "not declared by the tool",
    "not part of the diff",
  ])
    expect(text).toContain(part);
  expect(text).not.toContain("the last words");
  const folded = card.locator("details.long");
  expect(await folded.count()).toBe(2);
  const box = card.locator('.decide input[name="irreversible"]');
  const approve = card.getByRole("button", { name: "Approve", exact: true });
  const state = async () => [await box.isDisabled(), await approve.isDisabled()];
  expect(await state()).toEqual([true, true]);
  expect(await card.getByRole("button", { name: "Deny", exact: true }).isEnabled()).toBe(true);
  expect(await page.locator(".expand-first").innerText()).toContain("Open the 2 long values above first.");
  expect(await page.evaluate(CUT)).toEqual([]);
  expect(await scrollsSideways(page)).toBe(false);
  expect(await inaccessible(page)).toEqual([]);

  await folded.nth(1).locator("summary").click();
  await page.locator(".expand-first", { hasText: "Open the long value above first." }).waitFor();
  expect(await state()).toEqual([true, true]);
  expect(await card.innerText()).toContain("the last words");
  await folded.nth(0).locator("summary").click();
  await page.locator(OFFERED).waitFor();
  expect(await state()).toEqual([false, false]);
  const open = await card.innerText();
  for (const one of recipients) expect(open).toContain(one);
  expect(await page.evaluate(CUT)).toEqual([]);
  expect(await scrollsSideways(page)).toBe(false);
  expect(await inaccessible(page)).toEqual([]);

  await box.check();
  await approve.click();
  expect(await page.locator("main .notice").first().innerText()).toBe("Approved: mail.send for agent.");
  expect(complaints).toEqual([]);
  await context.close();
});

it("opens everything with one press, and keeps it open when the page is renewed", async () => {
  verifies("beyond.card.expand-first");
  const id = await asked("mail.send", { ...args, Subject: "again" });
  const { page, context } = await onPhone(id);
  await page.getByRole("button", { name: "Show everything" }).click();
  await page.locator(OFFERED).waitFor();
  expect(await page.locator("details.long[open]").count()).toBe(2);
  // The live page is exchanged when something happens elsewhere; values that were opened stay open.
  await asked("crm.note", { id: 1, text: "elsewhere" });
  await page.locator("#waiting .request-what", { hasText: "crm.note" }).waitFor({ state: "attached" });
  expect(await page.locator("details.long[open]").count()).toBe(2);
  expect(await page.locator('.decide input[name="irreversible"]').isDisabled()).toBe(false);
  await context.close();
});

it("has everything open and decides without script", async () => {
  verifies("beyond.card.expand");
  const id = await asked("mail.send", { ...args, Subject: "no script" });
  const { page, context } = await onPhone(id, false);
  const card = page.locator("article.approval");
  const text = await card.innerText();
  for (const part of [...recipients, "the last words", "40 recipients"]) expect(text).toContain(part);
  expect(await card.locator(".expand-first").isVisible()).toBe(false);
  const box = card.locator('.decide input[name="irreversible"]');
  expect(await box.isDisabled()).toBe(false);
  await box.check();
  await card.getByRole("button", { name: "Approve", exact: true }).click();
  expect(await page.locator("main .notice").first().innerText()).toBe("Approved: mail.send for agent.");
  await context.close();

  const other = await asked("mail.send", { ...args, Subject: "no box" });
  const client = await loggedIn(server.url, "approver");
  const refused = await client.submit(`/console/approvals/${other}`, { decision: "approve" });
  expect(refused.to).toBe(`/console/approvals/${other}`);
  expect((await server.api("auditor", "GET", `/v1/approvals/${other}`)).body.status).toBe("pending");
});

it("asks for the long values of every call of a plan", async () => {
  verifies("beyond.card.expand-first");
  await server.api("agent", "POST", "/v1/runs", { run_id: "planned", permissions: ["p"] });
  const call = (Subject: string) => ({ tool: "mail.send", args: { ...args, Subject }, reason: "r" });
  const { body: plan } = await server.api("agent", "POST", "/v1/runs/planned/plans", {
    reason: "two mails",
    calls: [call("one"), call("two")],
  });
  const { page, context, open } = await browsing.as("approver", { phone: true });
  await page.setViewportSize(PHONE);
  await open(`/plans/${plan.id}`);
  expect(await scrollsSideways(page)).toBe(false);
  expect(await page.locator("details.long").count()).toBe(4);
  expect(await page.getByRole("checkbox").isDisabled()).toBe(true);
  await page.getByRole("button", { name: "Show everything" }).click();
  await page.locator(OFFERED).waitFor();
  expect(await page.locator("details.long[open]").count()).toBe(4);
  await context.close();
});

it("marks a group by its highest risk and as irreversible", async () => {
  verifies("beyond.card.group-marks");
  for (const to of ["a", "b"]) await asked("mail.send", { recipients: [to] });
  const { page, open, context } = await browsing.as("approver");
  await open("/approvals");
  const group = page.locator("section.group", { hasText: "mail.send" }).first();
  const marks = await group.locator(".request-facts").first().innerText();
  expect(marks).toMatch(/risk up to \d+/);
  expect(marks).toContain("irreversible");
  await context.close();
});
