/** Pages that follow what happens elsewhere, text that stays text, and hands that stay on the keyboard. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Browsing, type Visitor } from "./support/browsing.ts";
import { type ConsoleServer, consoleServer } from "./support/server.ts";

const EVIL = `"><img src=x onerror="window.broken=1"><script>window.broken=1</script>`;
const EVIL_NAME = `bot"><img/src=x/onerror=window.broken=1>`;

let server: ConsoleServer;
let browsing: Browsing;
beforeAll(async () => {
  server = await consoleServer({
    config: "console: login\ncapture: {enabled: true}\n",
    keys: [{ name: EVIL_NAME, role: "agent", tenant: "<b>tenant</b>" }],
  });
  browsing = await Browsing.at(server.url);
});
afterAll(async () => {
  await browsing?.close();
  await server?.close();
});

let runs = 0;
async function waiting(amount: number): Promise<string> {
  const run_id = `live-${++runs}`;
  await server.api("agent", "POST", "/v1/runs", { run_id, permissions: ["pay.refund"] });
  const { body } = await server.api("agent", "POST", `/v1/runs/${run_id}/intents`, {
    tool: "pay.refund",
    args: { amount },
    reason: "please",
  });
  return /apr_[\w-]+/.exec(body.reasons.at(-1))![0];
}
const decide = (id: string, verb: string) =>
  server.api("operator", "POST", `/v1/approvals/${id}/${verb}`, {});
const badge = ({ page }: Visitor) => page.locator("#nav .count");

describe("live pages", () => {
  it("shows a new request and takes it away once it is decided elsewhere", async () => {
    const visitor = await browsing.as("approver");
    const { page, open } = visitor;
    await open("/approvals");
    await page.locator("body.connected").waitFor();
    const first = await waiting(901);
    await page.locator(`article#${first}`).waitFor();
    expect(await badge(visitor).innerText()).toMatch(/^1/);
    await decide(first, "approve");
    await page.locator(`article#${first}`).waitFor({ state: "detached" });
    await page.getByText("No pending requests").waitFor();
    expect(await badge(visitor).count()).toBe(0);
    expect(visitor.complaints).toEqual([]);
    await visitor.context.close();
  });

  it("keeps typed text, and marks entries that have gone", async () => {
    const { page, open, context } = await browsing.as("approver");
    const [mine, other] = [await waiting(902), await waiting(903)];
    await open(`/approvals/${mine}`);
    await page.locator("body.connected").waitFor();
    const card = page.locator(`article#${mine}`);
    await card.getByLabel("Note").fill("half a thou");
    await decide(other, "deny");
    await page.locator(`#waiting a[href*="${other}"]`).waitFor({ state: "detached" });
    expect(await card.getByLabel("Note").inputValue()).toBe("half a thou");
    await decide(mine, "deny");
    await card.getByText("Decided elsewhere.").waitFor();
    expect(await card.getByRole("button", { name: "Approve", exact: true }).isDisabled()).toBe(true);
    await context.close();
  });

  it("brings the halt banner to pages that are otherwise still", async () => {
    const { page, open, context } = await browsing.as("auditor");
    await open("/policy");
    await page.locator("body.connected").waitFor();
    await server.api("admin", "POST", "/v1/halt", { reason: "stop everything" });
    await page.getByRole("region", { name: "Halted" }).getByText("stop everything").waitFor();
    await server.api("admin", "POST", "/v1/resume", {});
    await page.getByRole("region", { name: "Halted" }).waitFor({ state: "detached" });
    await context.close();
  });

  it("follows a run step by step", async () => {
    const { page, open, context } = await browsing.as("auditor");
    await server.api("agent", "POST", "/v1/runs", { run_id: "followed", permissions: ["crm.read"] });
    await open("/runs/followed");
    await page.locator("body.connected").waitFor();
    await server.api("agent", "POST", "/v1/runs/followed/intents", {
      tool: "crm.get",
      args: {},
      reason: "look",
    });
    await page.locator("#step-0", { hasText: "intended" }).waitFor();
    await server.api("agent", "POST", "/v1/runs/followed/steps/0/outcome", { status: "succeeded" });
    await page.locator("#step-0", { hasText: "succeeded" }).waitFor();
    await context.close();
  });

  it("stops talking to somebody who was logged out", async () => {
    const { page, open, context } = await browsing.as("auditor");
    await open("");
    await page.locator("body.connected").waitFor();
    await page.evaluate(
      `fetch("/console/logout", { method: "POST", body: new URLSearchParams({ csrf: document.querySelector("[name=csrf]").value }), redirect: "manual" })`,
    );
    const answer = await page.request.get(`${server.url}/console/events`, { maxRedirects: 0 });
    expect(answer.status()).toBe(303);
    await context.close();
    browsing.forget();
  });
});

describe("text from agents", () => {
  it("stays text in every field that an agent controls, on every page", async () => {
    const run = "evil-1";
    await server.api(EVIL_NAME, "POST", "/v1/runs", {
      run_id: run,
      permissions: ["pay.refund", EVIL],
      mode: "observe",
      reason: EVIL,
    });
    const { body } = await server.api(EVIL_NAME, "POST", `/v1/runs/${run}/intents`, {
      tool: EVIL,
      args: { [EVIL]: 7 },
      reason: EVIL,
    });
    await server.api(EVIL_NAME, "POST", `/v1/runs/${run}/steps/${body.step}/outcome`, {
      status: "failed",
      error: EVIL,
    });
    await server.api(EVIL_NAME, "POST", "/v1/runs", {
      run_id: "evil-2",
      permissions: ["pay.refund"],
      reason: EVIL,
    });
    const asked = await server.api(EVIL_NAME, "POST", "/v1/runs/evil-2/intents", {
      tool: "pay.refund",
      args: { amount: 999, [EVIL]: EVIL },
      reason: EVIL,
    });
    const id = /apr_[\w-]+/.exec(asked.body.reasons.at(-1))![0];
    const another = await server.api(EVIL_NAME, "POST", "/v1/runs/evil-2/intents", {
      tool: "pay.refund",
      args: { amount: 998 },
      reason: EVIL,
    });
    await server.api(
      "operator",
      "POST",
      `/v1/approvals/${/apr_[\w-]+/.exec(another.body.reasons.at(-1))![0]}/deny`,
      { note: EVIL },
    );
    await server.api("admin", "POST", "/v1/halt", { reason: EVIL, tool: EVIL });
    await server.app.capture!.drain(60_000);

    const { page, open, complaints, context } = await browsing.as("admin");
    const paths = [
      "",
      "/approvals",
      "/approvals/decided",
      "/runs",
      `/runs?q=${encodeURIComponent(EVIL)}`,
      `/runs/${run}`,
      "/runs/evil-2",
      "/alerts",
      "/tools",
      `/tools/${encodeURIComponent(EVIL)}`,
      "/evidence",
      `/evidence?q=${encodeURIComponent(EVIL)}`,
      `/impact?tool=${encodeURIComponent(EVIL)}&actor=${encodeURIComponent(EVIL)}`,
      "/policy",
      "/settings",
      `/${encodeURIComponent(EVIL)}`,
    ];
    for (const path of paths) {
      await open(path);
      expect(await page.evaluate("window.broken"), path).toBeUndefined();
      expect(await page.locator("img, main script, [onerror]").count(), path).toBe(0);
    }
    await open(`/approvals/${id}`);
    const card = page.locator(`article#${id}`);
    expect(await card.locator(".reason").innerText()).toContain(EVIL);
    expect(await card.locator(".approval-who").innerText()).toContain(EVIL_NAME);
    expect(await card.locator(".fields").innerText()).toContain("<script>");
    await open(`/runs/${run}`);
    expect(await page.locator(".step-error").innerText()).toBe(EVIL);
    expect(await page.locator(".step-tool").innerText()).toBe(EVIL);
    await open("/approvals/decided");
    expect(await page.locator("tbody").innerText()).toContain(EVIL);
    expect(complaints).toEqual([]);
    await server.api("admin", "POST", "/v1/resume", {});
    await context.close();
  });

  it("cannot turn itself around on the card that a person decides by", async () => {
    await server.api("agent", "POST", "/v1/runs", { run_id: "bidi", permissions: ["pay.refund"] });
    const { body } = await server.api("agent", "POST", "/v1/runs/bidi/intents", {
      tool: "pay.refund",
      args: { amount: 997 },
      reason: "refund \u202e00001 EUR\u202c only",
    });
    const { page, open, context } = await browsing.as("approver");
    await open(`/approvals/${/apr_[\w-]+/.exec(body.reasons.at(-1))![0]}`);
    expect(await page.locator("main").innerText()).toContain("refund \\u202e00001 EUR\\u202c only");
    await context.close();
  });
});

describe("hands", () => {
  it("goes everywhere by keyboard", async () => {
    const { page, open, context } = await browsing.as("approver");
    const id = await waiting(905);
    await open("");
    await page.keyboard.press("g");
    await page.keyboard.press("a");
    await page.waitForURL(/\/approvals$/);
    await page.keyboard.press("j");
    await page.keyboard.press("a");
    expect(await page.evaluate("document.activeElement.value")).toBe("approve");
    await page.keyboard.press("d");
    expect(await page.evaluate("document.activeElement.value")).toBe("deny");
    await page.keyboard.press("?");
    expect(await page.getByRole("dialog").innerText()).toContain("Next and previous request");
    await page.keyboard.press("Escape");
    await page.keyboard.press("g");
    await page.keyboard.press("r");
    await page.waitForURL(/\/runs$/);
    await page.keyboard.press("/");
    await page.keyboard.type("crm");
    expect(await page.getByLabel("Find anything").inputValue()).toBe("crm");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/search\?q=crm$/);
    await decide(id, "deny");
    await context.close();
  });

  it("shows times in the reader's zone with the exact one on hover, and copies ids", async () => {
    const { page, open, context } = await browsing.as("auditor");
    await context.grantPermissions(["clipboard-read", "clipboard-write"]);
    await open("/runs/followed");
    const time = page.locator("#run time");
    const iso = (await time.getAttribute("datetime"))!;
    expect(await time.innerText()).toMatch(/\d\d:\d\d:\d\d (UTC|GMT|[A-Z]{3,4})/);
    expect(await time.getAttribute("title")).toContain(iso);
    await page.getByRole("button", { name: "Copy the run's id" }).click();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe("followed");
    await context.close();
  });

  it("reads and decides without a script at all", async () => {
    const id = await waiting(906);
    const { page, open, context } = await browsing.as("approver", { script: false });
    await open(`/approvals/${id}`);
    expect(await page.locator("time").first().innerText()).toMatch(/ago|UTC|just now/);
    // Without a script nothing holds the page up until its style has come.
    await page.locator(".copy").first().waitFor({ state: "hidden" });
    await page.locator(`article#${id}`).getByLabel("Note").fill("by hand");
    await page.locator(`article#${id}`).getByRole("button", { name: "Approve", exact: true }).click();
    expect(await page.locator("main .notice").innerText()).toContain("Approved");
    await page.getByRole("button", { name: "Log out" }).click();
    expect(await page.locator("h1").innerText()).toBe("Log in");
    browsing.forget();
    await context.close();
  });

  it("lets somebody who is logged in follow a link from a chat", async () => {
    const { page, context } = await browsing.as("approver");
    const id = await waiting(907);
    await page.goto("data:text/html,<a id=link>open</a>");
    await page.evaluate(
      `document.getElementById("link").href = ${JSON.stringify(`${server.url}/console/approvals/${id}`)}`,
    );
    await page.click("#link");
    await page.locator(`article#${id}`).waitFor();
    expect(page.url()).toContain(`/${id}`);
    await decide(id, "deny");
    await context.close();
  });
});
