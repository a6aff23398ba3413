/**
 * Makes the pictures of the documentation. By hand: `npx tsx test/console/screenshots.ts [folder]`. With SVC_PNG, a
 * folder, it also writes the pictures of the phone as PNG.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser } from "playwright-core";
import { launchBrowser } from "../support/browser.ts";
import { walkPhone } from "./support/phone-walk.ts";
import { tellStory } from "./support/story.ts";

const OUT = process.argv[2] ?? fileURLToPath(new URL("../../docs/images", import.meta.url));

/** An afternoon in Berlin: the same pictures on every day, and a chart with a night and a morning in it. */
const NOW = Date.parse("2026-06-09T13:40:00Z");

interface Shot {
  name: string;
  path: string;
  key: string;
  width: number;
  height: number;
  dark?: boolean;
  phone?: boolean;
  full?: boolean;
}

const SHOTS: Shot[] = [
  { name: "overview", path: "", key: "noor.admin", width: 1320, height: 900 },
  { name: "approvals", path: "/approvals", key: "maria.finance", width: 1320, height: 900 },
  { name: "run", path: "/runs/ticket-48213", key: "tom.ops", width: 1320, height: 1080 },
  { name: "phone-approvals", path: "/approvals", key: "maria.finance", width: 390, height: 844, phone: true },
  { name: "dark", path: "", key: "noor.admin", width: 1320, height: 900, dark: true },
];
/** For looking at while working, each in light, dark and on a phone; asked for with SVC_ALL_SHOTS. */
const MORE: Shot[] = [
  "approvals",
  "approvals/decided",
  "plans",
  "grants",
  "runs",
  "drills",
  "alerts",
  "tools",
  "policy",
  "impact?tool=payments.refund&args=%7B%22amount%22%3A900%7D",
  "evidence",
  "settings",
].flatMap((path) => {
  const name = path.replaceAll(/\W+/g, "-").slice(0, 30);
  const desk = { path: `/${path}`, key: "noor.admin", width: 1320, height: 900, full: true };
  return [
    { ...desk, name: `${name}-light` },
    { ...desk, name: `${name}-dark`, dark: true },
    { ...desk, name: `${name}-phone`, width: 390, height: 844 },
  ];
});

async function shoot(browser: Browser, url: string, shot: Shot): Promise<void> {
  const context = await browser.newContext({
    viewport: { width: shot.width, height: shot.height },
    deviceScaleFactor: shot.phone ? 2 : 1,
    colorScheme: shot.dark ? "dark" : "light",
    timezoneId: "Europe/Berlin",
    locale: "en-GB",
  });
  await context.clock.setFixedTime(NOW);
  const page = await context.newPage();
  await page.goto(`${url}/console/login`);
  await page.fill("input[name=credential]", shot.key);
  await page.click("button[type=submit]");
  const answer = await page.goto(`${url}/console${shot.path}`);
  if (!answer!.ok()) throw new Error(`${shot.path} answers ${answer!.status()}`);
  await page.waitForTimeout(300);
  await page.screenshot({ path: join(OUT, `${shot.name}.png`), fullPage: shot.full ?? false });
  await context.close();
}

/** So that the overview can say when the ledger was last verified. */
async function verifyOnce(browser: Browser, url: string): Promise<void> {
  const page = await browser.newPage();
  await page.goto(`${url}/console/login?next=%2Fconsole%2Fevidence`);
  await page.fill("input[name=credential]", "lea.audit");
  await page.click("button[type=submit]");
  await page.getByRole("button", { name: "Verify now" }).click();
  await page.close();
}

mkdirSync(OUT, { recursive: true });
const story = await tellStory(NOW);
const browser = await launchBrowser();
try {
  await verifyOnce(browser, story.url);
  const wanted = process.env["SVC_ALL_SHOTS"] ? [...SHOTS, ...MORE] : SHOTS;
  for (const shot of wanted) await shoot(browser, story.url, shot);
} finally {
  await browser.close();
  await story.close();
}
// The cards of the phone, from the message to the decision, and how long the machine took.
if (!process.env["SVC_ALL_SHOTS"])
  console.table(await walkPhone({ pictures: OUT, png: process.env["SVC_PNG"] }));
