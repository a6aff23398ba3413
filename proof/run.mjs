/**
 * `node proof/run.mjs fault|sim|attack|plant [options]`: compiles the proof, and what it uses of the sources, to plain
 * JavaScript in a folder of its own, and runs it there. Processes that are killed by the thousand must start
 * fast, and a loader that reads TypeScript costs several times what they do.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** The folder of each proof. */
const PROOFS = { fault: "fault", sim: "sim", attack: "attack", plant: "planted" };

const [proof, ...args] = process.argv.slice(2);
if (!Object.hasOwn(PROOFS, proof ?? "")) {
  console.error(`say which proof to run: ${Object.keys(PROOFS).join(", ")}`);
  process.exit(1);
}

// Inside the package, so that its dependencies are found; one for each run, so that runs do not meet.
const cache = join(ROOT, "node_modules", ".cache");
mkdirSync(cache, { recursive: true });
const folder = mkdtempSync(join(cache, "svc-proof-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));

const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
const built = spawnSync(process.execPath, [tsc, "-p", join(ROOT, "proof"), "--outDir", folder], {
  stdio: "inherit",
});
if (built.status !== 0) process.exit(1);
const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
writeFileSync(join(folder, "package.json"), JSON.stringify({ type: "module", version }));

const { main } = await import(pathToFileURL(join(folder, "proof", PROOFS[proof], "main.js")).href);
process.exit(await main(args));
