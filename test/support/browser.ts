/** A real Chromium for the browser tests: the one of the machine, or one that is installed for them. */
import { type Browser, chromium } from "playwright-core";
import { askBroker, hasBroker } from "./broker.ts";
import { ensurePageBrowser } from "./page-browser.ts";
import { program } from "./programs.ts";

/** Nothing here may phone home, and a container offers no sandbox. */
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--disable-dev-shm-usage",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** The path of a Chromium that shows pages. One without windows takes a quarter of the processor time. */
export function pageBrowser(): Promise<string> {
  return hasBroker() ? askBroker("page-browser") : ensurePageBrowser();
}

const executablePath = await pageBrowser();

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath, headless: true, args: FLAGS });
}

/** A browser with all that surrounds a page, such as notifications. */
export async function launchWholeBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: await program("chromium"), headless: true, args: FLAGS });
}
