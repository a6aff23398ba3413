/** A real Chromium for the browser tests, from the machine it runs on. */
import { type Browser, chromium } from "playwright-core";
import { findChromium, HOW_TO_GET_CHROMIUM } from "../../scripts/chromium.mjs";

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

export async function launchBrowser(): Promise<Browser> {
  const executablePath = findChromium();
  if (executablePath === undefined) throw new Error(HOW_TO_GET_CHROMIUM);
  return chromium.launch({ executablePath, headless: true, args: FLAGS });
}
