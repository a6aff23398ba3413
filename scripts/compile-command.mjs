/**
 * `node compile-command.mjs <script>`: starts a server from the script, stops it, and keeps what V8 compiled for that. Only
 * functions that ran are in it, so the cache is made after the run.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

const path = process.argv[2];
const { commandScript, runScript } = await import(
  pathToFileURL(join(dirname(path), "..", "cli", "compiled-command.js")).href
);
const url = pathToFileURL(path);
const script = commandScript(url);
const { processIo, runCommandLine } = runScript(script, url);

const folder = mkdtempSync(join(tmpdir(), "svc-compile-"));
const stop = () => (process.listenerCount("SIGTERM") > 0 ? process.emit("SIGTERM") : setImmediate(stop));
const hear = (text) => void (/listening on/.test(text) && setImmediate(stop));
const io = { ...processIo(), out: hear, err: hear, env: { SVC_LOG_LEVEL: "error" }, cwd: folder };
try {
  const code = await runCommandLine(["server", "--port", "0"], io);
  if (code !== 0) throw new Error(`The server of the build ended with code ${code}.`);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
writeFileSync(
  join(dirname(path), `command-${process.version}-${process.arch}.cache`),
  script.createCachedData(),
);
process.exit();
