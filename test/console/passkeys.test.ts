/** Passkeys in the console, with the virtual authenticator of a real Chromium. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { freePort } from "../support/ports.ts";
import { verifies } from "../support/verifies.ts";
import { virtualAuthenticator } from "./support/authenticator.ts";
import { Browsing, inaccessible } from "./support/browsing.ts";
import { loggedIn } from "./support/client.ts";
import { type ConsoleServer, consoleServer, POLICY } from "./support/server.ts";

let server: ConsoleServer;
let browsing: Browsing;
beforeAll(async () => {
  const port = await freePort();
  const url = `http://localhost:${port}`;
  server = await consoleServer({
    port,
    config: `console: login\nconsole_url: ${url}\nledger_origin: example.com/ledger\n`,
    policy: POLICY.replace("    reason: refunds", "    approval: {signed: true}\n    reason: refunds"),
    keys: [
      { name: "ann", role: "approver" },
      { name: "cay", role: "approver" },
    ],
  });
  browsing = await Browsing.at(url);
});
afterAll(async () => {
  await browsing?.close();
  await server?.close();
});
const said = (page: Page) => page.locator("main .notice").first().innerText();
const passkeys = async () => (await server.api("admin", "GET", "/v1/passkeys")).body.passkeys;

it("adds one, has another admin compare the code, signs a second one, and revokes a lost one", async () => {
  verifies("beyond.passkeys.console");
  const ann = await browsing.as("ann");
  const phone = await virtualAuthenticator(ann.page);
  await ann.open("/passkeys");
  await ann.page.getByRole("button", { name: "Add a passkey" }).click();
  await expect.poll(() => said(ann.page)).toContain("not active until it is confirmed");
  const code = await ann.page.locator(".passkey-code").innerText();
  expect(await inaccessible(ann.page)).toEqual([]);

  const admin = await browsing.as("admin");
  await admin.open("/passkeys");
  await admin.page
    .getByLabel("Code on the screen of ann")
    .fill(code === "00000000" ? "11111111" : "00000000");
  await admin.page.getByRole("button", { name: "Confirm" }).click();
  await expect.poll(() => admin.page.locator("main").innerText()).toContain("code differs");
  await admin.open("/passkeys");
  await admin.page.getByLabel("Code on the screen of ann").fill(code);
  await admin.page.getByRole("button", { name: "Confirm" }).click();
  await expect.poll(() => said(admin.page)).toBe("The passkey of ann is active.");

  // The browser makes no second passkey on a device that has one, so the second device is another one.
  await phone.hide();
  const laptop = await virtualAuthenticator(ann.page, "usb");
  await ann.open("/passkeys");
  await ann.page.getByRole("button", { name: "Add a passkey" }).click();
  await expect.poll(() => said(ann.page)).toContain("not active until it is confirmed");
  await laptop.hide();
  await phone.show();
  await ann.page.getByRole("button", { name: "Confirm with an active passkey" }).click();
  await expect.poll(() => said(ann.page)).toBe("The passkey of ann is active.");
  expect((await passkeys()).map(({ status }: { status: string }) => status)).toEqual(["active", "active"]);

  await ann.open("/passkeys");
  await ann.page.getByText("Revoke").first().click();
  await ann.page.getByRole("button", { name: "Revoke" }).first().click();
  await ann.page.locator("dialog").getByRole("button", { name: "Revoke" }).click();
  await expect.poll(() => said(ann.page)).toBe("The passkey of ann is revoked.");
  expect([...ann.complaints, ...admin.complaints]).toEqual([]);
});

it("sends nothing when the passkey is not used", async () => {
  verifies("beyond.passkeys.console");
  const { page, open } = await browsing.as("admin");
  const device = await virtualAuthenticator(page);
  await device.refuse();
  await open("/passkeys");
  await page.getByRole("button", { name: "Add a passkey" }).click();
  await expect.poll(() => page.locator(".passkey-note").innerText()).toContain("Nothing was sent");
});

it("does not let an open console enrol", async () => {
  verifies("beyond.passkeys.open-console");
  const port = await freePort();
  const url = `http://localhost:${port}`;
  const own = await consoleServer({
    port,
    config: `console: {mode: open, role: operator}\nconsole_url: ${url}\n`,
  });
  const { loopback } = { loopback: `http://127.0.0.1:${port}` };
  const text = await (await fetch(`${loopback}/console/passkeys`)).text();
  expect(text).toContain("Passkeys");
  const csrf = /name="csrf" value="([0-9a-f]+)"/.exec(text)![1]!;
  const sent = await fetch(`${loopback}/console/passkeys/options`, {
    method: "POST",
    body: new URLSearchParams({ csrf }),
  });
  expect(sent.status).toBe(403);
  await own.close();
});

it("refuses what a script made up", async () => {
  verifies("beyond.passkeys.stolen-session");
  const thief = await loggedIn(server.url, "ann");
  for (const fields of [{}, { response: "{" }, { response: "{}" }, { response: "null" }])
    expect((await thief.submit("/console/passkeys", fields as Record<string, string>)).status).toBe(400);
});

it("signs a decision from the card on a phone: one tap and the passkey", async () => {
  verifies("beyond.signed.console", "beyond.signed.shown-marked");
  const { page, open, complaints } = await browsing.as("cay", { phone: true });
  await virtualAuthenticator(page);
  await open("/passkeys");
  await page.getByRole("button", { name: "Add a passkey" }).click();
  await expect.poll(() => said(page)).toContain("not active until it is confirmed");
  const code = await page.locator(".passkey-code").innerText();
  const { id: key } = (await passkeys()).find(({ code: one }: { code: string }) => one === code);
  await server.api("admin", "POST", `/v1/passkeys/${key}/confirm`, { code });

  await server.api("agent", "POST", "/v1/runs", { run_id: "phone", permissions: ["pay.refund"] });
  const ask = async (amount: number) => {
    const call = { tool: "pay.refund", args: { amount }, reason: "because" };
    const { body } = await server.api("agent", "POST", "/v1/runs/phone/intents", call);
    return /apr_[0-9a-f-]{36}/.exec(JSON.stringify(body))![0];
  };
  const id = await ask(900);
  await open(`/approvals/${id}`);
  expect(await page.locator("article.approval").innerText()).toContain(
    "A signature does not cover the history",
  );
  await page.getByRole("button", { name: "Approve", exact: true }).click();
  await expect.poll(() => said(page)).toContain("Approved: pay.refund");
  const { body } = await server.api("auditor", "GET", "/v1/search/records?event=approved&limit=1");
  expect(body.records[0].detail).toMatch(/; signed [0-9a-f]{64}$/);

  const denied = await ask(901);
  await open(`/approvals/${denied}`);
  await page.getByRole("button", { name: "Deny", exact: true }).click();
  await expect.poll(() => said(page)).toContain("Denied: pay.refund");

  const offered = await ask(902);
  await open(`/approvals/${offered}`);
  await page.getByText("Deny and offer other arguments").click();
  await page.getByLabel("Arguments that you would approve").fill('{"amount": 905}');
  await page.getByRole("button", { name: "Deny and offer" }).click();
  await expect.poll(() => said(page)).toContain("The agent can use your offer");
  expect(await page.getByText("Approve, and the next ones like this").count()).toBe(0);
  expect(complaints).toEqual([]);
});

it("signs grants and delegations in the console", async () => {
  verifies("beyond.signed.console");
  const { page, open } = await browsing.as("cay");
  const device = await virtualAuthenticator(page);
  await open("/passkeys");
  await page.getByRole("button", { name: "Add a passkey" }).click();
  await expect.poll(() => said(page)).toContain("not active until it is confirmed");
  const code = await page.locator(".passkey-code").innerText();
  const { id: key } = (await passkeys()).find(({ code: one }: { code: string }) => one === code);
  await server.api("admin", "POST", `/v1/passkeys/${key}/confirm`, { code });
  await open("/grants");
  await page.getByLabel("Tools").fill("pay.refund");
  await page.getByLabel("Actors").fill("agent");
  await page.getByLabel("Rules").fill("big-refunds");
  await page.getByLabel("Reason").fill("the fair");
  await page.getByRole("button", { name: "Create grant" }).click();
  await expect.poll(() => said(page)).toContain("Granted");
  await open("/approvals");
  await page.getByText("Delegate my authority").click();
  await page.getByLabel("To (name of a key or user)").fill("ann");
  await page.locator('form[action="/console/delegations"]').getByLabel("Reason").fill("away");
  await page.getByRole("button", { name: "Delegate", exact: true }).click();
  await expect.poll(() => said(page)).toContain("ann can now decide for you");
  await device.hide();
});
