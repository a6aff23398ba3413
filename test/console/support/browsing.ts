/** Real pages in a real Chromium: logged in as somebody, watched for anything that a page must not do. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { launchBrowser, launchWholeBrowser } from "../../support/browser.ts";
import { listNotifications } from "./notifications.ts";

export interface Visitor {
  page: Page;
  context: BrowserContext;
  /** Script errors, refused loads, and requests to anywhere else; a good page has none. */
  complaints: string[];
  open(path: string): Promise<void>;
}

export interface VisitOptions {
  width?: number;
  dark?: boolean;
  script?: boolean;
  /** As on a phone that is held upright, with fingers for a mouse. */
  phone?: boolean;
  /** The browser's language. */
  locale?: string;
}

/** A net under what never comes; pages are waited for by what they show. */
const WAIT_MS = 300_000;
const PHONE = { width: 390, height: 844 };
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export class Browsing {
  private readonly url: string;
  private readonly browser: Browser;
  private readonly prepare: (context: BrowserContext) => Promise<void>;
  private readonly states = new Map<string, Awaited<ReturnType<BrowserContext["storageState"]>>>();

  private constructor(
    url: string,
    browser: Browser,
    prepare: (context: BrowserContext) => Promise<void> = async () => {},
  ) {
    this.url = url;
    this.browser = browser;
    this.prepare = prepare;
  }

  static async at(url: string): Promise<Browsing> {
    return new Browsing(url, await launchBrowser());
  }

  /** With notifications. They are those of a whole browser in `npm run prove -- push`, a list in the worker otherwise. */
  static async withNotifications(url: string): Promise<Browsing> {
    if (process.env["SVC_PROVE_PUSH"] !== undefined) return new Browsing(url, await launchWholeBrowser());
    return new Browsing(url, await launchBrowser(), listNotifications);
  }

  async as(key: string | null, options: VisitOptions = {}): Promise<Visitor> {
    const known = key === null ? undefined : this.states.get(key);
    const context = await this.browser.newContext({
      viewport: options.phone ? PHONE : { width: options.width ?? 1280, height: 900 },
      hasTouch: options.phone ?? false,
      isMobile: options.phone ?? false,
      colorScheme: options.dark ? "dark" : "light",
      javaScriptEnabled: options.script ?? true,
      locale: options.locale ?? "en-GB",
      ...(known === undefined ? {} : { storageState: known }),
    });
    context.setDefaultTimeout(WAIT_MS);
    await this.prepare(context);
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on("pageerror", (error) => complaints.push(`script: ${error.message}`));
    page.on("console", (message) => {
      // A refused page is a 4xx on purpose; everything else on the console is a fault.
      if (message.type() === "error" && !/status of 4\d\d/.test(message.text()))
        complaints.push(message.text());
    });
    page.on("request", (request) => {
      if (!request.url().startsWith(this.url)) complaints.push(`request to ${request.url()}`);
    });
    const visitor: Visitor = {
      page,
      context,
      complaints,
      open: async (path) =>
        void (await page.goto(`${this.url}/console${path}`, { waitUntil: "domcontentloaded" })),
    };
    if (key !== null && known === undefined) {
      await visitor.open("/login");
      await page.getByLabel("API key or OIDC token").fill(key);
      await page.getByRole("button", { name: "Log in" }).click();
      await page.waitForURL(/\/console$/);
      this.states.set(key, await context.storageState());
    }
    return visitor;
  }

  /** Everybody has to log in again. */
  forget(): void {
    this.states.clear();
  }

  close(): Promise<void> {
    return this.browser.close();
  }
}

const ALL_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"];

/** What an accessibility checker finds wrong, as `rule: element`. */
export async function inaccessible(page: Page, rules = ALL_RULES): Promise<string[]> {
  await page.evaluate(AXE);
  const violations = (await page.evaluate(
    `axe.run(document, { runOnly: ${JSON.stringify(rules)}, resultTypes: ["violations"] }).then((found) => found.violations.flatMap((one) => one.nodes.map((node) => one.id + ": " + node.html.slice(0, 160) + " " + (node.any[0] ? node.any[0].message : ""))))`,
  )) as string[];
  return violations;
}

export function scrollsSideways(page: Page): Promise<boolean> {
  return page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth");
}
