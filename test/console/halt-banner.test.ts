/** The halt banner on a phone: a halt of a part takes one line, and a halt of everything stays in sight. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { Browsing, inaccessible, scrollsSideways } from "./support/browsing.ts";
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

const PHONE = { width: 360, height: 740 };
const REASON = "it sends the same mail again and again, and nobody knows yet why it does so; see the channel";

it("takes one line for a halt of one agent, which opens, and scrolls away", async () => {
  verifies("beyond.first.halt-scoped");
  const pictures = process.env["SVC_PICTURES"] ?? tempDir("pictures");
  mkdirSync(pictures, { recursive: true });
  const halt = (scope: object) =>
    server.api("admin", "POST", "/v1/halt", { reason: REASON.repeat(4), ...scope });
  await halt({ actor: "billing-bot" });
  const { page, open, complaints } = await browsing.as("admin");
  await page.setViewportSize(PHONE);
  await open("/runs");
  const part = page.getByRole("region", { name: "Halted in part" });
  expect(await part.innerText()).toBe("Halted: calls of billing-bot are blocked");
  const height = async () => (await part.boundingBox())!.height;
  expect(await height()).toBeLessThan(64);
  const position = () => page.evaluate('getComputedStyle(document.querySelector("#halted")).position');
  expect(await position()).toBe("static");
  await page.screenshot({ path: join(pictures, "halt-part.png") });
  await part.getByText("Halted: calls of billing-bot").click();
  expect(await part.innerText()).toContain("nobody knows yet why");
  expect(await part.getByRole("button", { name: "Lift" }).isVisible()).toBe(true);
  expect(await scrollsSideways(page)).toBe(false);
  expect(await inaccessible(page)).toEqual([]);
  await page.screenshot({ path: join(pictures, "halt-part-open.png") });

  await halt({ tool: "mail.*", environment: "prod" });
  await open("/runs");
  expect(await part.innerText()).toBe("Halted: 2 halts block some calls");
  await halt({});
  await open("/runs");
  const whole = page.getByRole("region", { name: "Halted", exact: true });
  expect(await whole.innerText()).toContain("Halted: all new calls are blocked");
  expect(await position()).toBe("sticky");
  const covered = (await page.locator("#halted").boundingBox())!.height;
  expect(covered).toBeLessThanOrEqual(PHONE.height * 0.4 + 1);
  await page.screenshot({ path: join(pictures, "halt-whole.png") });
  expect(complaints).toEqual([]);
});
