/**
 * Makes the pictures of the gallery from the demo itself: its ending in the shop, the page of its agent, and an incident
 * from its start to its close, each on a desktop and a phone, light and dark. By hand, after a build and without a
 * `.demo` folder: `npx tsx test/console/gallery.ts [folder]`.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { launchBrowser } from "../support/browser.ts";
import { ROOT } from "../support/files.ts";
import { until } from "../support/until.ts";
import { startDemo } from "./support/demo.ts";

const OUT = process.argv[2] ?? join(ROOT, "docs/images/gallery");
const SCREENS = { desktop: { width: 1_280, height: 800 }, phone: { width: 390, height: 844 } };
const AGENT = "support-agent";
const RUN = "ticket-4833";

const demo = await startDemo();

async function api(role: string, path: string, body?: unknown) {
  const headers = { authorization: `Bearer ${demo.key(role)}`, "content-type": "application/json" };
  const asked = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const answer = await fetch(`${demo.url}/v1${path}`, { headers, ...asked });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  // biome-ignore lint/suspicious/noExplicitAny: read freely
  return (await answer.json()) as any;
}

/** One page of an admin for each screen and each light. */
async function openPages(browser: Browser): Promise<[name: string, page: Page][]> {
  const pages: [string, Page][] = [];
  for (const [screen, viewport] of Object.entries(SCREENS))
    for (const colorScheme of ["light", "dark"] as const) {
      const options = { viewport, colorScheme, timezoneId: "Europe/Berlin", locale: "en-GB" };
      const page = await (await browser.newContext(options)).newPage();
      await page.goto(`${demo.url}/console/login`);
      await page.fill("input[name=credential]", demo.key("admin"));
      await page.click("button[type=submit]");
      await page.waitForURL(/\/console$/);
      pages.push([`${screen}-${colorScheme}`, page]);
    }
  return pages;
}

const browser = await launchBrowser();
mkdirSync(OUT, { recursive: true });
try {
  const pages = await openPages(browser);
  const shoot = async (name: string, url: string) => {
    for (const [variant, page] of pages) {
      await page.goto(url);
      await page.waitForTimeout(300);
      await page.screenshot({ path: join(OUT, `${name}-${variant}.jpg`), type: "jpeg", quality: 70 });
    }
  };
  const [asked] = (await api("approver", "/approvals?status=pending")).approvals;
  const { card_hash } = await api("approver", `/approvals/${asked.id}/card`);
  await api("approver", `/approvals/${asked.id}/approve`, { note: "saw the report", card_hash });
  const stepsOf = async () => (await api("operator", `/runs/${RUN}`)).steps;
  const isDone = ({ status }: { status: string }) => status === "succeeded";
  await until(async () => (await stepsOf()).filter(isDone).length === 3, "the refund");
  await shoot("demo-approved", demo.shop);
  await api("operator", `/runs/${RUN}/rollback`, { confirm: true });
  const isUndone = ({ status }: { status: string }) => status === "compensated";
  await until(async () => (await stepsOf()).filter(isUndone).length === 2, "the undo");
  await shoot("demo-undone", demo.shop);
  await shoot("agent", `${demo.url}/console/actors/${AGENT}`);

  const reason = "it refunds without a ticket";
  const { job } = await api("admin", "/contain", { actor: AGENT, reason, confirm: true });
  await until(async () => (await api("admin", `/contain/${job.id}`)).job.state === "done", "the containment");
  await shoot("containment", `${demo.url}/console/contain/${job.id}`);
  const [incident] = (await api("admin", "/incidents")).incidents;
  const path = `/incidents/${incident.id}`;
  await api("admin", `${path}/assign`, { to: "demo-operator" });
  await api("operator", `${path}/notes`, { text: "Asked the payment provider about the 80 EUR." });
  await shoot("incident-open", `${demo.url}/console${path}`);
  await shoot("agent-contained", `${demo.url}/console/actors/${AGENT}`);
  await api("operator", "/runs/ticket-4831/steps/0/resolve", {
    status: "failed",
    note: "the provider has no such refund",
  });
  await api("operator", `${path}/close`, { reason: "The key stays disabled until the prompt is fixed." });
  await shoot("incident-closed", `${demo.url}/console${path}`);
} finally {
  await browser.close();
  demo.stop();
}
