/** The approver's screen at phone size, in a real browser. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { verifies } from "../support/verifies.ts";
import { Browsing, inaccessible, scrollsSideways } from "./support/browsing.ts";
import { type ConsoleServer, consoleServer } from "./support/server.ts";

const MANIFESTS = `
- {tool: pay.refund, effect: compensable, permission: p, compensation: {tool: pay.charge, args: {id: $args.id}}}
- tool: mail.send
  effect: irreversible
  permission: p
  card: {title: "Mail {$args.subject}", fields: [{label: Recipients, path: $args.recipients, as: code}, {label: Body, path: $args.body}]}
- tool: files.edit
  effect: compensable
  permission: p
  compensation: {tool: files.restore, args: {path: $args.path}}
  card: {title: "Edit {$args.path}", fields: [{label: Edit, path: $args.edit, as: diff}]}
`;
const POLICY = `version: 1
rules: [{id: ask, match: {tool: "*"}, action: require_approval, reason: a person looks}]
risk: {}
`;
const lines = Array.from({ length: 14 }, (_, i) => `line ${i}`);
const edit = {
  old_string: lines.join("\n"),
  new_string: lines.map((line, i) => (i === 6 ? "another" : line)).join("\n"),
};
const mail = {
  subject: "Your order",
  recipients: Array.from({ length: 40 }, (_, i) => `customer.${i}@example.com`),
  body: `Dear customer,\n${"we write because of your order. ".repeat(60)}\nthe last words`,
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

async function ask(tool: string, args: object): Promise<string> {
  const run_id = `s${n++}`;
  await server.api("agent", "POST", "/v1/runs", { run_id, permissions: ["p"] });
  const call = { tool, args, reason: "the customer waits" };
  const { body } = await server.api("agent", "POST", `/v1/runs/${run_id}/intents`, call);
  return /apr_[0-9a-f-]{36}/.exec(JSON.stringify(body))![0];
}
const statusOf = async (id: string) => (await server.api("admin", "GET", `/v1/approvals/${id}`)).body.status;
const verbs = (page: Page) => page.locator("article.approval .verbs");
/** The button is what a finger meets in its middle. */
const isInReach = (page: Page, verb: "approve" | "deny"): Promise<boolean> =>
  page.evaluate(`(() => {
    const button = document.querySelector(':is(.approval, #decide) .verbs button[value="${verb}"]');
    const { top, bottom, left, width } = button.getBoundingClientRect();
    return top >= 0 && bottom <= innerHeight && document.elementFromPoint(left + width / 2, (top + bottom) / 2) === button;
  })()`);
const topOf = (page: Page, selector: string): Promise<number> =>
  page.evaluate(`document.querySelector("${selector}").getBoundingClientRect().top`);

it("shows the card first, with its buttons in reach wherever one scrolls to", async () => {
  verifies("beyond.phone.card-first", "beyond.phone.in-reach");
  const id = await ask("pay.refund", { id: 1, amount: 412 });
  for (const script of [true, false]) {
    const { page, open, complaints } = await browsing.as("approver", { phone: true, script });
    await open(`/approvals/${id}`);
    // Before its style sheet arrives, a page without script is laid out, but not painted.
    await page.waitForLoadState("load");
    const card = await topOf(page, "article.approval h2");
    expect(card).toBeLessThan(140);
    // Nothing here is signed, so the card says nothing of signatures.
    expect(await page.locator("article.approval").innerText()).not.toContain("signature");
    for (const later of [".top", "#nav"]) expect(await topOf(page, later)).toBeGreaterThan(card + 400);
    const order =
      "document.querySelector('.fields').compareDocumentPosition(document.querySelector('.verbs')) & 4";
    expect(await page.evaluate(order)).toBe(4);
    for (const at of [0, 0.3, 0.6]) {
      await page.evaluate(
        `scrollTo(0, document.querySelector("article.approval").scrollHeight * ${at} - 200)`,
      );
      for (const verb of ["approve", "deny"] as const)
        await expect.poll(() => isInReach(page, verb), { message: `${verb} at ${at}` }).toBe(true);
    }
    await page.evaluate("scrollTo(0, 0)");
    await expect.poll(() => page.getByText("More to read below").isVisible()).toBe(script);
    expect(await scrollsSideways(page)).toBe(false);
    if (!script) continue;
    await page.getByText("More to read below").click();
    await page.getByLabel("Note").scrollIntoViewIfNeeded();
    await expect.poll(() => page.getByText("More to read below").isVisible()).toBe(false);
    expect(await inaccessible(page)).toEqual([]);
    expect(complaints).toEqual([]);
  }
  await server.api("operator", "POST", `/v1/approvals/${id}/deny`, {});
});

it("is in its place when it is first painted, and stays there", async () => {
  verifies("beyond.phone.first-paint");
  await server.api("agent", "POST", "/v1/runs", { run_id: "painted", permissions: ["p"] });
  const calls = [1, 2, 3].map((id) => ({ tool: "pay.refund", args: { id } }));
  const { body: plan } = await server.api("agent", "POST", "/v1/runs/painted/plans", { reason: "r", calls });
  const requests = [
    await ask("pay.refund", { id: 7, amount: 412 }),
    await ask("mail.send", mail),
    await ask("files.edit", { path: "/etc/limits", edit }),
  ];
  for (const path of [...requests.map((id) => `/approvals/${id}`), `/plans/${plan.id}`])
    for (const script of [true, false]) {
      const { page, context, open } = await browsing.as("approver", { phone: true, script });
      const session = await context.newCDPSession(page);
      const moved: string[] = [];
      session.on("PerformanceTimeline.timelineEventAdded", ({ event }) => {
        const sources = event.layoutShiftDetails?.sources ?? [];
        for (const { previousRect: a, currentRect: b } of sources) moved.push(`${a.y} to ${b.y}`);
      });
      await session.send("PerformanceTimeline.enable", { eventTypes: ["layout-shift"] });
      let release = () => {};
      const held = new Promise<void>((resolve) => {
        release = resolve;
      });
      await page.route(/console\.css/, async (route) => {
        await held;
        await route.continue();
      });
      const opened = open(path);
      if (!script) {
        // With script, the end of the page waits for the style sheet.
        await opened;
        expect(await page.evaluate("performance.getEntriesByType('paint').length")).toBe(0);
      }
      release();
      await opened;
      await page.waitForLoadState("load");
      const top = await topOf(page, path.startsWith("/plans") ? "main h1" : "article.approval h2");
      expect([path, script, top < 140]).toEqual([path, script, true]);
      await expect.poll(() => page.evaluate("performance.getEntriesByType('paint').length")).toBe(2);
      if (script) {
        await page.locator(".more-below").first().waitFor({ state: "attached" });
        await page.evaluate(
          "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))",
        );
      }
      expect([path, script, moved]).toEqual([path, script, []]);
      await context.close();
    }
  for (const id of requests) await server.api("operator", "POST", `/v1/approvals/${id}/deny`, {});
  await server.api("operator", "POST", `/v1/plans/${plan.id}/deny`, {});
});

it("goes from one request to the next, and decides in two taps after the notification", async () => {
  verifies("beyond.phone.one-by-one", "beyond.phone.taps", "beyond.phone.decided", "beyond.phone.no-script");
  const ids = [
    await ask("pay.refund", { id: 2 }),
    await ask("pay.refund", { id: 3 }),
    await ask("pay.refund", { id: 4 }),
  ];
  for (const script of [true, false]) {
    const { page, open } = await browsing.as("approver", { phone: true, script });
    await open(`/approvals/${ids[0]}`);
    const place = page.getByRole("navigation", { name: "Requests" });
    expect(await place.innerText()).toMatch(/Previous\s*1 of 3\s*Next/);
    expect(await place.getByRole("link", { name: "Previous" }).count()).toBe(0);
    await place.getByRole("link", { name: "Next" }).click();
    await page.waitForURL(new RegExp(ids[1]!));
    await place.getByRole("link", { name: "Previous" }).click();
    await page.waitForURL(new RegExp(ids[0]!));
  }
  // A tap on the notification opens the card (push.test.ts); the second one decides.
  const { page, open } = await browsing.as("approver", { phone: true, script: false });
  await open(`/approvals/${ids[0]}`);
  await page.getByRole("button", { name: "Approve", exact: true }).click();
  expect(await page.locator("main .notice").first().innerText()).toContain("Approved: pay.refund");
  expect(await statusOf(ids[0]!)).toBe("approved");

  await open(`/approvals/${ids[1]}`);
  await server.api("operator", "POST", `/v1/approvals/${ids[1]}/deny`, { note: "paid already" });
  await page.getByRole("button", { name: "Approve", exact: true }).click();
  expect(await page.locator("main").innerText()).toMatch(/already|denied/i);
  expect(await statusOf(ids[1]!)).toBe("denied");
  await open(`/approvals/${ids[1]}`);
  expect(await page.locator(".voters").innerText()).toBe("denied by operator: paid already.");
  expect(await topOf(page, ".voters")).toBeLessThan(300);
  const card = await page.locator("article.approval").innerText();
  expect(card).toMatch(/^Call pay\.refund[\s\S]*The values were deleted when the request ended\./);
  expect(card).not.toContain("not kept");
  await server.api("operator", "POST", `/v1/approvals/${ids[2]}/deny`, {});
});

it("does not confirm an irreversible call by the button in reach", async () => {
  verifies("beyond.phone.read-first");
  const id = await ask("mail.send", mail);
  const { page, open, complaints } = await browsing.as("approver", { phone: true });
  await open(`/approvals/${id}`);
  const approve = page.getByRole("button", { name: "Approve", exact: true });
  expect(await approve.isDisabled()).toBe(true);
  // The bar that holds the disabled button says what to do first, and does it.
  const hint = page.locator(".more-below");
  await expect.poll(() => hint.innerText()).toBe("Open the 2 long values to approve");
  await page.locator(".card-field", { hasText: "Recipients" }).locator("summary").first().click();
  await expect.poll(() => hint.innerText()).toBe("Open the long value to approve");
  expect(await approve.isDisabled()).toBe(true);
  await hint.click();
  for (const label of ["Recipients", "Body"])
    expect(await page.locator(".card-field", { hasText: label }).locator("pre").isVisible()).toBe(true);
  await expect.poll(() => approve.isDisabled()).toBe(false);
  await expect.poll(() => hint.innerText()).toBe("More to read below");
  await approve.click();
  const box = page.getByLabel("I have read the values");
  const focused = "document.activeElement.name";
  await expect.poll(() => page.evaluate(focused)).toBe("irreversible");
  await expect.poll(() => topOf(page, ".second")).toBeLessThan(700);
  expect(await statusOf(id)).toBe("pending");
  await box.check();
  await approve.click();
  await expect.poll(() => statusOf(id)).toBe("approved");
  expect(complaints).toEqual([]);
});

it("folds the raw value behind a diff, and leaves nothing of it out", async () => {
  verifies("beyond.phone.raw-behind");
  const id = await ask("files.edit", { path: "/etc/limits", edit });
  const { page, open } = await browsing.as("approver", { phone: true });
  await open(`/approvals/${id}`);
  const field = page.locator(".card-field", { hasText: "Edit" }).last();
  const raw = field.locator("details.long").last();
  expect(await field.innerText()).not.toContain("old_string");
  expect(await raw.locator("summary").innerText()).toMatch(/raw value, \d+ characters/);
  await raw.locator("summary").click();
  expect(JSON.parse(await raw.locator("pre").innerText())).toEqual(edit);
  // Without script it is open from the start.
  const plain = await browsing.as("approver", { phone: true, script: false });
  await plain.open(`/approvals/${id}`);
  expect(await plain.page.locator("article.approval").innerText()).toContain("old_string");
  await server.api("operator", "POST", `/v1/approvals/${id}/deny`, {});
});

it("keeps the buttons of a plan in reach, and a halt of another agent on one line", async () => {
  verifies("beyond.phone.in-reach", "beyond.phone.halt-line");
  const halted = await server.api("admin", "POST", "/v1/halt", {
    actor: "another-bot",
    reason: "it loops over the same ticket, again and again, since this morning",
  });
  expect(halted.status).toBeLessThan(300);
  await server.api("agent", "POST", "/v1/runs", { run_id: "planned", permissions: ["p"] });
  const calls = [1, 2, 3].map((id) => ({ tool: "pay.refund", args: { id } }));
  const { body } = await server.api("agent", "POST", "/v1/runs/planned/plans", { reason: "refunds", calls });
  const { page, open } = await browsing.as("approver", { phone: true });
  await open(`/plans/${body.id}`);
  const { height } = (await page.locator("#halted").boundingBox())!;
  expect(height).toBeLessThan(60);
  for (const at of [0, 400]) {
    await page.evaluate(`scrollTo(0, ${at})`);
    for (const verb of ["approve", "deny"] as const)
      await expect.poll(() => isInReach(page, verb), { message: `${verb} at ${at}` }).toBe(true);
  }
  expect(await inaccessible(page)).toEqual([]);
  await page.getByRole("button", { name: "Approve the plan" }).click();
  await expect.poll(() => page.locator("main .notice").first().innerText()).toBe("Plan approved: refunds");
  await open("/approvals");
  expect(await verbs(page).count()).toBeLessThan(2);
});
