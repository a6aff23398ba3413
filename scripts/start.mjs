/**
 * `npm start`: installs the missing packages, builds, and becomes the demo server. The demo runs in this
 * very process, so that Ctrl-C, SIGTERM and the exit code are its own and reach it once.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build, ensureInstalled, ROOT, StepFailed } from "./ensure.mjs";

const DEMO = join(ROOT, "dist", "cli", "demo.js");

try {
  ensureInstalled();
  build();
  if (!existsSync(DEMO)) throw new StepFailed("the build made no dist/cli/demo.js", 1);
} catch (error) {
  if (!(error instanceof StepFailed)) throw error;
  console.error(`svc: ${error.message}`);
  process.exit(error.exitCode);
}

process.argv = [process.argv[0], DEMO, ...process.argv.slice(2)];
await import(pathToFileURL(DEMO).href);
