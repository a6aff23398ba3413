/** Plans in the console, in a real browser. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { verifies } from "../support/verifies.ts";
import { Browsing, inaccessible } from "./support/browsing.ts";
import { type ConsoleServer, consoleServer } from "./support/server.ts";

let server: ConsoleServer;
let browsing: Browsing;
beforeAll(async () => {
  server = await consoleServer();
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
