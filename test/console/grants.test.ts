/** Grants in the console, in a real browser: from a card, from the page, and taken back. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { verifies } from "../support/verifies.ts";
import { Browsing, inaccessible } from "./support/browsing.ts";
import { type ConsoleServer, consoleServer } from "./support/server.ts";

let server: ConsoleServer;
let browsing: Browsing;
beforeAll(async () => {
  server = await consoleServer({ config: "console: login\ncapture: {enabled: true}\n" });
  browsing = await Browsing.at(server.url);
});
afterAll(async () => {
  await browsing?.close();
  await server?.close();
});
let n = 0;
async function ask(amount: number) {
  const run_id = `gc${n++}`;
  await server.api("agent", "POST", "/v1/runs", { run_id, permissions: ["pay.refund"] });
  const call = { tool: "pay.refund", args: { amount }, reason: "because" };
  return (await server.api("agent", "POST", `/v1/runs/${run_id}/intents`, call)).body;
}
const said = (page: Page) => page.locator("main .notice").first().innerText();

it("approves one and the next ones like it, shows what is used, gives, previews and revokes", async () => {
  verifies("beyond.grant.console");
  expect(await ask(900)).toMatchObject({ decision: "block" });
  const { page, open, complaints } = await browsing.as("approver");
  await open("/approvals");
  await page.getByText("Approve, and the next ones like this").click();
  await page.getByLabel("How many more").fill("2");
  await page.locator("article").getByLabel("Reason", { exact: true }).first().fill("the fair");
  await page.getByRole("button", { name: "Approve and grant" }).click();
  expect(await said(page)).toBe("Approved: pay.refund for agent, and the next 2 like it.");
  expect(await ask(901)).toMatchObject({ decision: "allow" });

  await open("/grants");
  const row = page.locator("#grants tbody tr").first();
  expect(await row.innerText()).toMatch(/in force[\s\S]*pay\.refund by agent[\s\S]*big-refunds[\s\S]*1 of 2/);
  expect(await inaccessible(page)).toEqual([]);
  await row.getByRole("button", { name: "Revoke" }).click();
  expect(await said(page)).toBe("Revoked: pay.refund by agent, 1 of 2 used.");
  expect(await ask(902)).toMatchObject({ decision: "block" });

  for (const verb of ["Preview on captured calls", "Give"]) {
    await page.getByLabel("Tools").fill("pay.*");
    await page.getByLabel("Actors").fill("agent");
    await page.getByLabel("Rules").fill("big-refunds");
    await page.getByLabel("Only when").fill("$args.amount lte 950");
    await page.getByLabel("Reason", { exact: true }).fill("a week of returns");
    await page.getByRole("button", { name: verb, exact: true }).click();
    if (verb === "Give") break;
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
  expect(await reader.page.locator("main").innerText()).not.toMatch(/Give a grant|Revoke\b|950/);
});
