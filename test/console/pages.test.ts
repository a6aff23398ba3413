/** Every page in a real browser: as every role, by day and by night, on a phone, and for those who do not see it. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sized } from "../support/long.ts";
import { verifies } from "../support/verifies.ts";
import { Browsing, inaccessible, scrollsSideways } from "./support/browsing.ts";
import { type Story, tellStory } from "./support/story.ts";

const PAGES = [
  ["", "Overview"],
  ["/approvals", "Approvals"],
  ["/approvals/decided", "Approvals"],
  ["/runs", "Runs"],
  ["/runs/ticket-48213", "ticket 48213: parcel lost"],
  ["/search?q=refund", "Search"],
  ["/alerts", "Alerts"],
  ["/incidents", "Incidents"],
  ["/incidents?status=all", "Incidents"],
  ["/actors/support-bot", "support-bot"],
  ["/tools", "Tools"],
  ["/tools/payments.refund", "payments.refund"],
  ["/policy", "Policy"],
  ["/impact", "Impact"],
  ["/impact?tool=payments.refund&args=%7B%22amount%22%3A900%7D", "Impact"],
  ["/evidence", "Evidence"],
  ["/settings", "Settings"],
] as const;

/** The checker looks at these alone in the other colours: together they have all parts of pages. */
const ALL_PARTS: readonly string[] = ["", "/approvals", "/runs/ticket-48213", "/settings", "/policy"];

/** Tables that hide a part of themselves at the edge of their card. */
const CUT_TABLES = `[...document.querySelectorAll(".table")]
  .filter((one) => one.scrollWidth > one.clientWidth + 1)
  .map((one) => one.getAttribute("aria-label"))`;

let story: Story;
let browsing: Browsing;
beforeAll(async () => {
  story = await tellStory(Date.now());
  browsing = await Browsing.at(story.url);
});
afterAll(async () => {
  await browsing?.close();
  await story?.close();
});

/** Each role sees every page once, each in another light and width; the checker looks where there is most to see. */
const EVERY = PAGES.map(([path]) => path);
const READERS = [
  { name: "lea.audit", width: 1280, dark: false, checked: [], rules: undefined },
  { name: "maria.finance", width: 768, dark: false, checked: [], rules: undefined },
  { name: "tom.ops", width: 1280, dark: true, checked: [], rules: undefined },
  { name: "noor.admin", width: 1280, dark: false, checked: EVERY, rules: undefined },
  {
    ...{ name: "noor.admin", width: 390, dark: true },
    ...{ checked: sized(ALL_PARTS, EVERY), rules: ["color-contrast", "target-size"] },
  },
];

describe("every page", () => {
  it.each(READERS)(
    `is there for $name at $width, whole and readable, and loads nothing from elsewhere ${verifies("core.purpose.surface-console", "core.purpose.process-server-console", "core.console.server-rendered", "core.console.tools", "core.console.alerts", "core.console.impact-page", "beyond.polish.tables-fit")}`,
    async ({ name, width, dark, checked, rules }) => {
      const { page, open, complaints, context } = await browsing.as(name, { width, dark });
      for (const [path, title] of PAGES) {
        await open(path);
        expect(await page.locator("h1").innerText(), path).toContain(title);
        expect(await page.locator("main").innerText()).not.toMatch(/undefined|\[object|NaN/);
        expect(await scrollsSideways(page), `${path} scrolls sideways`).toBe(false);
        if (width >= 1280) expect(await page.evaluate(CUT_TABLES), path).toEqual([]);
        if (checked.some((one) => one === path)) expect(await inaccessible(page, rules), path).toEqual([]);
      }
      expect(complaints).toEqual([]);
      await context.close();
    },
  );

  it("has a login page that anybody can read", async () => {
    const { page, open, context } = await browsing.as(null, { width: 360 });
    await open("/login");
    expect(await inaccessible(page)).toEqual([]);
    expect(await scrollsSideways(page)).toBe(false);
    await context.close();
  });

  it("is within reach of a thumb on a phone", async () => {
    const { page, open, context } = await browsing.as("noor.admin", { width: 360 });
    await open("");
    await page.getByRole("navigation", { name: "Quick" }).getByRole("link", { name: "More" }).click();
    await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Approvals" }).click();
    expect(await page.locator("h1").innerText()).toBe("Approvals");
    expect(await inaccessible(page)).toEqual([]);
    await context.close();
  });

  it(`offers what the role may do, and nothing else ${verifies("core.auth.console-follows-role", "ops.channel.console-list", "ops.retention.console")}`, async () => {
    const buttons = async (name: string, path: string) => {
      const { page, open, context } = await browsing.as(name);
      await open(path);
      const found = await page.locator("main button:not(.copy), main summary").allInnerTexts();
      await context.close();
      return found.map((text) => text.trim());
    };
    expect(await buttons("lea.audit", "/approvals")).toEqual([]);
    expect(await buttons("maria.finance", "/approvals")).toContain("Approve");
    expect(await buttons("maria.finance", "/approvals")).not.toContain("Break glass");
    expect(await buttons("noor.admin", "/approvals")).toContain("Break glass");
    expect(await buttons("maria.finance", "/runs/ticket-48213")).not.toContain("Roll back");
    expect(await buttons("tom.ops", "/runs/ticket-48213")).toContain("Roll back");
    expect(await buttons("tom.ops", "/evidence")).not.toContain("Block all new calls");
    expect(await buttons("noor.admin", "/evidence")).toContain("Block all new calls");
    expect(await buttons("lea.audit", "/settings")).toEqual(["Dry run"]);
    expect(await buttons("noor.admin", "/settings")).toEqual(
      expect.arrayContaining(["Send test", "Place a hold", "Dry run", "Apply", "Create a key", "Disable"]),
    );
  });
});

describe("what the pages tell", () => {
  const textAt = async (path: string, name = "tom.ops") => {
    const { page, open, context } = await browsing.as(name);
    await open(path);
    const text = await page.locator("main").innerText();
    await context.close();
    return text.replaceAll(/\s+/g, " ");
  };

  it("overview: calls, pending requests, runs that need attention, the ledger", async () => {
    const text = await textAt("");
    expect(text).toMatch(/Calls in 24 hours \d+/);
    expect(text).toMatch(/Waiting for approval 4 the oldest for 38 min/);
    expect(text).toContain("Outcome still unknown: deploy.rollout in release-2026-31");
    expect(text).toMatch(/records; not verified here yet/);
    const { page, open, context } = await browsing.as("tom.ops");
    await open("");
    expect(await page.locator("svg.chart").getAttribute("aria-label")).toMatch(
      /\d+ allowed, \d+ would be blocked, \d+ held for approval, \d+ refused/,
    );
    await context.close();
  });

  it("overview: the chart reads without colour, and times have 24 hours in every language", async () => {
    verifies("beyond.polish.chart", "beyond.polish.hours");
    const { page, open, context } = await browsing.as("tom.ops", { locale: "en-US" });
    await open("");
    const card = page.locator("section.card", { has: page.locator("svg.chart") });
    const fills = await card
      .locator("svg.chart rect[fill^=url]")
      .evaluateAll((bars) => [
        ...new Set((bars as { getAttribute(name: string): string }[]).map((bar) => bar.getAttribute("fill"))),
      ]);
    expect(fills.length).toBeGreaterThan(2);
    for (const fill of fills) expect(await page.locator(`pattern${fill.slice(4, -1)}`).count()).toBe(1);
    await card.getByText("As a table").click();
    const cells = await card.locator("tbody tr").first().locator("td").allInnerTexts();
    expect(cells).toHaveLength(5);
    expect(cells[0]).toMatch(/^\d\d:\d\d$/);
    for (const label of await card.locator("text[data-hour]").allTextContents())
      expect(label).toMatch(/^([01]\d|2[0-3]):00$/);
    await open("/runs/ticket-48213");
    expect(await page.locator("time[data-at=clock]").first().innerText()).toMatch(/ \d\d:\d\d:\d\d /);
    expect(await page.locator("main").innerText()).not.toMatch(/\d [AP]M\b/);
    await context.close();
  });

  it(`runs: those that need attention ${verifies("core.console.runs")}`, async () => {
    const { page, open, context } = await browsing.as("lea.audit");
    await open("/runs");
    expect(await page.locator("tbody tr").count()).toBe(50);
    await page.getByRole("link", { name: "Needing attention" }).click();
    await page.getByRole("link", { name: "Show all runs" }).waitFor();
    expect(await page.locator("tbody tr").allInnerTexts()).toHaveLength(1);
    expect(await page.locator("tbody").innerText()).toContain("release-2026-31");
    await page.getByRole("link", { name: "Show all runs" }).click();
    await page.getByLabel("Search").fill("parcel lost");
    await page.keyboard.press("Enter");
    await page.waitForURL(/q=parcel/);
    expect(await page.locator("tbody").innerText()).toContain("ticket-48213");
    expect(await page.locator("tbody").innerText()).toContain("waits for approval");
    expect(await page.locator("tbody").innerText()).toContain("ticket 48213: parcel lost");
    await context.close();
  });

  it("runs: an agent's endless id and reason leave room for the state", async () => {
    const run_id = `${"x".repeat(100)}-run`;
    const reason = "because ".repeat(60);
    await story.api("support-bot", "POST", "/v1/runs", { run_id, permissions: [], reason });
    for (const width of [1100, 390]) {
      const { page, open, context } = await browsing.as("lea.audit", { width });
      await open(`/runs?q=${run_id}`);
      const state = await page.locator("tbody tr").getByText("settled").boundingBox();
      expect(state!.x + state!.width, `at ${width}`).toBeLessThanOrEqual(width);
      const row = await page.locator("tbody tr").boundingBox();
      expect(row!.height).toBeLessThan(220);
      await context.close();
    }
  });

  it(`a run: steps, dependencies, plan, residue, trail, documents ${verifies("core.console.run-steps", "core.console.run-plan", "core.console.run-trail", "core.console.run-links")}`, async () => {
    const text = await textAt("/runs/ticket-48213");
    for (const part of [
      "inventory.reserve",
      "hold a replacement",
      "409 from the CRM",
      "not fully reversible",
      "Cannot be undone: step 4 (mail.send)",
      "Has to wait: step 2 (inventory.reserve)",
      "the customer has seen the refund on their statement",
      "no manifest is registered for this tool",
      "Can be undone with crm.restore_contact, exactly and read back.",
      "Can be undone after step 4, which depends on it.",
      "Cannot be undone.",
    ])
      expect(text).toContain(part);
    verifies("beyond.first.run-page");
    // What proves it is a press away.
    for (const part of ["Scope seal", "arguments", "#1 call"]) expect(text).not.toContain(part);
    const { page, open, context } = await browsing.as("lea.audit");
    await open("/runs/ticket-48213");
    await page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true");
    const whole = (await page.locator("main").innerText()).replaceAll(/\s+/g, " ");
    for (const part of [
      "Scope seal",
      "needs 0 needed by 4",
      "arguments",
      "call accepted",
      "waits for approval",
    ])
      expect(whole).toContain(part);
    expect(
      await page.locator("#trail .record-detail a", { hasText: "this request" }).getAttribute("href"),
    ).toMatch(/^\/console\/approvals\/apr_/);
    expect(await page.locator(".trail .mark.bad", { hasText: "hash does not match" }).count()).toBe(0);
    expect(await page.locator("svg.arcs path").count()).toBe(5);
    const links = await page.locator(".links a").allInnerTexts();
    expect(links).toEqual(["Report", "PDF", "Signed bundle", "Trail (JSON lines)"]);
    const base = `${story.url}/console/runs/ticket-48213`;
    const report = await page.request.get(`${base}/report`);
    expect(report.headers()["content-security-policy"]).toMatch(/^sandbox; default-src 'none'/);
    expect(await report.text()).toContain("ticket-48213");
    expect((await page.request.get(`${base}/report.pdf`)).headers()["content-type"]).toBe("application/pdf");
    const bundle = await (await page.request.get(`${base}/bundle`)).json();
    expect(bundle).toMatchObject({ format: "svc-bundle", kind: "run", run_id: "ticket-48213" });
    const trail = await page.request.get(`${base}/trail`);
    expect(trail.headers()["content-disposition"]).toContain('filename="ticket-48213.jsonl"');
    expect((await trail.text()).split("\n")[0]).toContain('"event":"intended"');
    await context.close();
  });

  it("approvals: what an approver needs to judge, and who may where one may not", async () => {
    verifies("beyond.card.who-may", "beyond.card.second-gesture");
    const { page, open, context } = await browsing.as("maria.finance");
    await open("/approvals?sort=risk");
    const cards: string[] = [];
    const links: string[] = await page
      .locator(".request a")
      .evaluateAll((all: { href?: string }[]) => all.map((one) => one.href ?? ""));
    for (const href of links) {
      await page.goto(href);
      const text = (await page.locator("article.approval").innerText()).replaceAll(/\s+/g, " ");
      cards.push(text);
      if (!text.includes("This cannot be undone.")) continue;
      const mine = (await page.getByRole("button", { name: "Approve", exact: true }).count()) > 0;
      if (!mine) continue;
      await page.getByRole("button", { name: "Approve", exact: true }).click();
      expect(await page.locator("main .notice").first().innerText()).toContain("Not approved yet");
    }
    for (const part of [
      "support-bot in ticket-48199",
      "charged twice for order A-17310",
      "refunds over 500 need somebody from finance",
      "rule big-refunds",
      "1840",
      "effect compensable 25 + blast radius external 25 + data class financial 20",
      "payments.reclaim offsets the effect; the undo needs its own approval",
      "What cannot be undone: the customer has seen the refund on their statement",
      "Needs 1 approval from finance",
      "Similar requests",
    ])
      expect(cards.join(" ")).toContain(part);
    await context.close();
    const other = await textAt("/approvals", "lea.audit");
    expect(other).toContain("can decide this request");
    expect(other).not.toContain("1840");
    expect(other).toContain("Call payments.refund");
    expect(other).not.toContain("(not kept)");
  });

  it("decided requests: who, and what they noted", async () => {
    const text = await textAt("/approvals/decided", "lea.audit");
    expect(text).toContain("support-bot ticket-48120 maria.finance checked against the carrier's report");
    expect(text).toContain("support-bot ticket-48131 noor.admin we do not promise gifts");
  });

  it(`impact: a preview ${verifies("ops.impact.console", "beyond.drill.words")}`, async () => {
    const text = await textAt("/impact?tool=payments.refund&args=%7B%22amount%22%3A900%7D", "lea.audit");
    for (const part of [
      "needs approval",
      "refunds over 500 need somebody from finance",
      "1 of finance",
      "can be undone",
    ])
      expect(text).toContain(part);
    expect(await textAt("/impact?tool=x&args=nonsense", "lea.audit")).toMatch(/Args: /);
    expect(await textAt("/impact?tool=no.such", "lea.audit")).toContain("unclassified tool");
    expect(text).toContain("never proven");
  });

  it(`alerts: evaluated as the page is drawn, with the threshold in force ${verifies("ops.alerts.page-live", "ops.alerts.denial-spike-page")}`, async () => {
    expect(await textAt("/alerts", "lea.audit")).not.toContain("calls blocked");
    await story.api("support-bot", "POST", "/v1/runs", { run_id: "spike", permissions: [] });
    for (let i = 0; i < 10; i++)
      await story.api("support-bot", "POST", "/v1/runs/spike/intents", {
        tool: "orders.lookup",
        args: { i },
        reason: "again",
      });
    const text = await textAt("/alerts", "lea.audit");
    expect(text).toContain("Many calls blocked");
    expect(text).toMatch(/1\d calls blocked/);
    expect(text).toContain("10 or more refused calls in 15 minutes");
  });

  it(`settings: channels, egress, what this server is ${verifies("core.console.settings-channels", "ops.egress.console", "core.console.settings-holds", "core.console.settings-retention")}`, async () => {
    const text = await textAt("/settings", "lea.audit");
    for (const part of [
      "ops slack hooks.slack.example",
      "audit-log webhook siem.shop.example everything",
      "Egress rules limit which hosts",
      "Only these hosts may be reached: hooks.slack.example, *.shop.example",
      "Legal holds",
      "Kept by default 90 days",
      "kept for 7 days, personal data redacted",
    ])
      expect(text).toContain(part);
    expect(text).not.toContain("s3cret-signing-word");
    expect(text).not.toContain("/T0/B0/x");
  });

  it("tools: what each does, who owns it, and what nobody described", async () => {
    const text = await textAt("/tools", "lea.audit");
    expect(text).toMatch(
      /crm\.update_contact reversible crm\.restore_contact crm\.write sales-ops pii · single approved 2\.1/,
    );
    expect(text).toMatch(/Called without a manifest .*deploy\.migrate 1/);
    const one = await textAt("/tools/payments.refund", "lea.audit");
    expect(one).toContain("365 days at least");
    expect(one).toContain("$args.order_id");
  });

  it(`search: from anywhere, for anything; an id leads to its page ${verifies("beyond.first.search")}`, async () => {
    const { page, open, context } = await browsing.as("lea.audit", { script: false });
    const find = async (q: string) => {
      await open("/settings");
      await page.getByLabel("Find anything").fill(q);
      await page.keyboard.press("Enter");
      await page.waitForURL(/search|runs\/|tools\/|approvals\//);
      return (await page.locator("main").innerText()).replaceAll(/\s+/g, " ");
    };
    expect(await find("support-bot")).toMatch(/Actors support-bot agent .*Requests .*Runs .*Records /);
    expect(await find("refund")).toMatch(/Tools All payments\.refund compensable/);
    expect(await find("no such word")).toContain("No results");
    for (const [q, path] of [
      ["ticket-48213", "/runs/ticket-48213"],
      ["payments.refund", "/tools/payments.refund"],
    ] as const) {
      await find(q);
      expect(new URL(page.url()).pathname).toBe(`/console${path}`);
    }
    const { body } = await story.api("lea.audit", "GET", "/v1/approvals?status=pending");
    await find(body.approvals[0].id);
    expect(page.url()).toContain(`/approvals/${body.approvals[0].id}`);
    await context.close();
  });

  it("says what to do when a page or a run is not there", async () => {
    for (const path of ["/runs/no-such-run", "/nowhere", "/tools/no.such.tool"]) {
      const text = await textAt(path, "lea.audit");
      expect(text).toContain("Not found");
      expect(text).toContain("Back");
    }
  });
});
