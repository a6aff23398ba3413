/** Passkeys in the console, with the virtual authenticator of a real Chromium. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { freePort } from "../support/ports.ts";
import { verifies } from "../support/verifies.ts";
import { virtualAuthenticator } from "./support/authenticator.ts";
import { Browsing, inaccessible } from "./support/browsing.ts";
import { loggedIn } from "./support/client.ts";
import { type ConsoleServer, consoleServer } from "./support/server.ts";

let server: ConsoleServer;
let browsing: Browsing;
beforeAll(async () => {
  const port = await freePort();
  const url = `http://localhost:${port}`;
  server = await consoleServer({
    port,
    config: `console: login\nconsole_url: ${url}\n`,
    keys: [{ name: "ann", role: "approver" }],
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
  await expect.poll(() => said(ann.page)).toContain("waits for its confirmation");
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
  await expect.poll(() => said(ann.page)).toContain("waits for its confirmation");
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
