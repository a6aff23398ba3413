/** The palette: pages, runs, tools and actions by keyboard, within the content security policy, for screen readers. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { verifies } from "../support/verifies.ts";
import { Browsing, inaccessible } from "./support/browsing.ts";
import { type ConsoleServer, consoleServer } from "./support/server.ts";

let server: ConsoleServer;
let browsing: Browsing;
beforeAll(async () => {
  server = await consoleServer();
  browsing = await Browsing.at(server.url);
  const reason = `<img src=x onerror="window.broken=1">`;
  await server.api("agent", "POST", "/v1/runs", { run_id: "palette-run", permissions: ["crm.read"], reason });
});
afterAll(async () => {
  await browsing?.close();
  await server?.close();
});

it("goes to pages and runs, and to an action without taking it", async () => {
  verifies("beyond.polish.palette", "beyond.polish.palette-safe");
  const { page, open, complaints, context } = await browsing.as("admin");
  await open("");
  await page.keyboard.press("Control+k");
  const field = page.getByRole("combobox", { name: "Go to a page, run, agent or action" });
  await field.waitFor();
  expect(await inaccessible(page)).toEqual([]);
  await page.keyboard.type("alert");
  expect(await page.getByRole("option").first().innerText()).toMatch(/^Alerts\s+Page$/);
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/alerts$/);

  // It opens from a field, too, and finds what the search page finds.
  await page.keyboard.press("/");
  await page.keyboard.press("Control+k");
  await field.fill("palette-r");
  await page.getByRole("option", { name: "Run" }).first().waitFor();
  expect(await inaccessible(page)).toEqual([]);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/runs\/palette-run$/);
  expect(await page.evaluate("window.broken")).toBeUndefined();

  verifies("beyond.polish.palette-pages");
  for (const [word, label] of [
    ["incid", "Incidents"],
    ["gran", "Grants"],
    ["contain", "Contain an agent"],
  ]) {
    await page.keyboard.press("Control+k");
    await field.fill(word!);
    expect(await page.getByRole("option").first().innerText()).toMatch(new RegExp(`^${label}\\s+Page$`));
    await page.keyboard.press("Escape");
  }

  await page.keyboard.press("Control+k");
  await field.fill("agent");
  const agent = page.getByRole("option", { name: /Agent$/ });
  await agent.waitFor();
  expect(await agent.innerText()).toMatch(/^agent\s+Agent$/);
  await page.keyboard.press("Escape");

  await page.keyboard.press("Control+k");
  await field.fill("halt new");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "Halt new calls" }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("Control+k");
  await field.fill("log out");
  await page.keyboard.press("Enter");
  expect(await page.evaluate("document.activeElement.textContent")).toBe("Log out");
  expect(page.url()).toMatch(/palette-run$/);

  await page.keyboard.press("Control+k");
  await field.fill("no such thing");
  await page.getByText("Nothing matches. Enter searches everything.").waitFor();
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/search\?q=no\+such\+thing$/);
  expect(complaints).toEqual([]);
  await context.close();
});

it("shows a reader no action that is not theirs, and works in the dark on a phone", async () => {
  verifies("beyond.polish.palette-safe");
  const { page, open, complaints, context } = await browsing.as("auditor", { dark: true, width: 390 });
  await open("/runs");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Go to a page" }).fill("halt");
  await page.getByText("Nothing matches.").waitFor();
  expect([await inaccessible(page), complaints]).toEqual([[], []]);
  await context.close();
});

it("opens with a finger, and leads to pages that no menu lists", async () => {
  verifies("beyond.polish.palette-pages");
  const { page, open, complaints, context } = await browsing.as("auditor", { phone: true });
  await open("/runs");
  await page.getByRole("link", { name: "More", exact: true }).tap();
  await page.getByRole("button", { name: "Go to a page" }).tap();
  const field = page.getByRole("combobox", { name: "Go to a page" });
  await field.fill("contain");
  await page.getByText("Nothing matches.").waitFor();
  await field.fill("incid");
  await page.getByRole("option", { name: "Incidents" }).tap();
  await page.waitForURL(/\/incidents$/);
  expect([await inaccessible(page), complaints]).toEqual([[], []]);
  await context.close();
});
