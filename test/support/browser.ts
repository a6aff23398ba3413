/** A real Chromium for the browser tests: the one of the machine, or one that is installed for them. */
import { type Browser, chromium } from "playwright-core";
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

const executablePath = await program("chromium");

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath, headless: true, args: FLAGS });
}
