/**
 * Finds the machine's Chromium, or installs Debian's where that is possible without asking anybody.
 * Plain Node: it runs before anything is installed.
 */
import { spawnSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
const MAC_APPS = [
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];

export const HOW_TO_GET_CHROMIUM =
  process.platform === "darwin"
    ? "The browser tests need Chromium and found none. Run: brew install --cask chromium\n(or set CHROME_PATH to a Chromium or Chrome that you have)"
    : "The browser tests need Chromium and found none. Run: sudo apt-get update && sudo apt-get install -y --no-install-recommends chromium\n(or set CHROME_PATH to a Chromium or Chrome that you have)";

/** The path of a Chromium that can be started, or undefined. CHROME_PATH wins and must be right. */
export function findChromium() {
  const chosen = process.env.CHROME_PATH;
  if (chosen) {
    if (!isExecutable(chosen)) throw new Error(`CHROME_PATH names ${chosen}, which cannot be run.`);
    return chosen;
  }
  return [...NAMES, ...MAC_APPS].map(onPath).find((path) => path !== undefined);
}

/** Finds or installs one; throws with the command a person must run where neither works. */
export function ensureChromium() {
  const found = findChromium();
  if (found !== undefined) return found;
  const aptGet = onPath("apt-get");
  if (process.getuid?.() === 0 && aptGet !== undefined) {
    console.error("installing chromium for the browser tests");
    // The index of an image is usually stale and names packages that are gone.
    apt(aptGet, ["update"]);
    apt(aptGet, ["install", "-y", "--no-install-recommends", "chromium"]);
    const installed = findChromium();
    if (installed !== undefined) return installed;
  }
  throw new Error(HOW_TO_GET_CHROMIUM);
}

function apt(program, args) {
  const { status } = spawnSync(program, ["-q", ...args], {
    // Its chatter belongs with the other diagnostics, not in the test report.
    stdio: ["ignore", process.stderr, process.stderr],
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  });
  if (status !== 0) throw new Error(`apt-get ${args[0]} failed.\n${HOW_TO_GET_CHROMIUM}`);
}

function onPath(name) {
  if (isAbsolute(name)) return isExecutable(name) ? name : undefined;
  const folders = (process.env.PATH ?? "").split(delimiter).filter(Boolean);
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
