/**
 * Makes the moving picture of the README from the demo itself: an agent asks, a person approves on a phone, the shop shows
 * the refund, and a rollback brings the money back. By hand, after a build and without a `.demo` folder: `npx tsx test/console/film.ts [file]`.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { animated } from "../support/apng.ts";
import { launchBrowser } from "../support/browser.ts";
import { ROOT } from "../support/files.ts";
import { startDemo } from "./support/demo.ts";

const OUT = process.argv[2] ?? join(ROOT, "docs/images/demo.png");
const STAGE = { width: 1000, height: 620 };
const frames: { png: Buffer; ms: number }[] = [];

/** One picture of the film: something that was really seen, on a plain stage with a line below. */
async function stage(browser: Browser, inner: string, line: string, ms = 2_600): Promise<void> {
  const page = await browser.newPage({ viewport: STAGE });
  await page.setContent(`<style>
    body { margin: 0; height: 100vh; display: grid; grid-template-rows: minmax(0, 1fr) 52px; background: #e9e6dd; font: 600 20px "Inter", "DejaVu Sans", sans-serif; color: #1a2420; overflow: hidden; }
    .seen { display: grid; place-items: center; min-height: 0; padding: 16px 16px 0; }
    img { max-width: 100%; max-height: 552px; border-radius: 10px; box-shadow: 0 8px 30px rgb(0 0 0 / 22%); }
    pre { box-sizing: border-box; width: 100%; height: 100%; margin: 0; padding: 22px; border-radius: 10px; background: #12211b; color: #e4ece7; font: 17px/1.6 "DejaVu Sans Mono", monospace; white-space: pre-wrap; overflow-wrap: anywhere; box-shadow: 0 8px 30px rgb(0 0 0 / 22%); }
    p { margin: 0; display: grid; place-items: center; }
  </style><div class="seen">${inner}</div><p>${line}</p>`);
  frames.push({ png: await page.screenshot(), ms });
  await page.close();
}

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
const terminal = (text: string) => `<pre>${escaped(text)}</pre>`;
const seen = async (page: Page) =>
  `<img src="data:image/png;base64,${(await page.screenshot()).toString("base64")}">`;

const demo = await startDemo();
const browser = await launchBrowser();
const visit = async (width: number, height: number) => {
  const context = await browser.newContext({
    viewport: { width, height },
    timezoneId: "Europe/Berlin",
    locale: "en-GB",
  });
  return context.newPage();
};
try {
  await stage(browser, terminal(`$ npm start\n${demo.shown}`), "npm start: an agent has been at work");
  const phone = await visit(390, 800);
  await phone.goto(demo.link);
  await phone.click("button");
  await phone.waitForURL(/\/console$/);
  const shop = await visit(1_000, 560);
  await shop.goto(demo.shop);
  await stage(browser, await seen(shop), "The shop: its agent asked to refund 900 EUR, and waits", 4_200);
  await phone.goto(`${demo.url}/console/approvals`);
  await phone.locator("li.request a").first().click();
  await phone.locator("article.approval").waitFor();
  await stage(browser, await seen(phone), "A person sees what is asked, and why", 3_600);
  await phone.getByLabel("Note").first().fill("saw the report");
  await phone.getByRole("button", { name: "Approve", exact: true }).click();
  await phone.locator("main .notice").waitFor();
  await stage(browser, await seen(phone), "Approved, from a phone");
  await shop.locator("#paid", { hasText: "1065 EUR" }).waitFor();
  await stage(browser, await seen(shop), "The agent makes the refund at once", 3_600);

  const desk = await visit(1_180, 720);
  await desk.goto(`${demo.url}/console/login`);
  await desk.fill("input[name=credential]", demo.key("operator"));
  await desk.click("button[type=submit]");
  await desk.waitForURL(/\/console$/);
  await desk.goto(`${demo.url}/console/runs/ticket-4833`);
  await stage(browser, await seen(desk), "It was a mistake: what the run did, and how to undo it", 3_600);
  await desk.getByRole("button", { name: "Roll back" }).click();
  await stage(browser, await seen(desk), "Before the rollback you see what it will do", 3_600);
  await desk.getByRole("dialog").getByRole("button", { name: "Roll back" }).click();
  await desk.locator(".job .mark", { hasText: /^done$/ }).waitFor();
  await desk.reload();
  await stage(browser, await seen(desk), "Undone, newest first, and read back", 3_600);
  await shop.locator("#back", { hasText: "900 EUR" }).waitFor();
  await stage(browser, await seen(shop), "The shop has the money back", 4_200);
  writeFileSync(OUT, animated(frames));
} finally {
  await browser.close();
  demo.stop();
}
