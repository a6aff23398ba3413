/** The page of tools in a real browser, with names as long as the demo's. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { ROOT } from "../support/files.ts";
import { verifies } from "../support/verifies.ts";
import { Browsing } from "./support/browsing.ts";
import { consoleServer } from "./support/server.ts";

it("shows every column of the tools at 1280 pixels", async () => {
  verifies("beyond.polish.tables-fit");
  const manifests = readFileSync(join(ROOT, "examples/demo/manifests.yaml"), "utf8");
  const s = await consoleServer({ manifests, policy: "version: 1\n" });
  onTestFinished(() => s.close());
  const browsing = await Browsing.at(s.url);
  onTestFinished(() => browsing.close());
  const { page, open } = await browsing.as("auditor", { width: 1280 });
  await open("/tools");
  const [shown, whole] = (await page.evaluate(
    `(({ clientWidth, scrollWidth }) => [clientWidth, scrollWidth])(document.querySelector(".table.tools"))`,
  )) as [number, number];
  expect(whole).toBeLessThanOrEqual(shown);
});
