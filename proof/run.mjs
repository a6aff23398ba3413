/**
 * `node proof/run.mjs fault|sim|attack|plant|prove [options]`: compiles the proof, and what it uses of the sources, to plain
 * JavaScript in a folder of its own, unless that was done already, and runs it there. Processes that are killed by the
 * thousand must start fast, and a loader that reads TypeScript costs several times what they do.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const DAY_MS = 24 * 60 * 60 * 1_000;
/** The folder of each proof. */
const PROOFS = { fault: "fault", sim: "sim", attack: "attack", plant: "planted", prove: "prove" };

const [proof, ...args] = process.argv.slice(2);
if (!Object.hasOwn(PROOFS, proof ?? "")) {
  console.error(`say which proof to run: ${Object.keys(PROOFS).join(", ")}`);
  process.exit(1);
}

// Inside the package, so that its dependencies are found.
const cache = join(ROOT, "node_modules", ".cache");
mkdirSync(cache, { recursive: true });
const folder = join(cache, `svc-proof-${sourcesHash()}`);
if (!existsSync(folder)) compileTo(folder);

const { main } = await import(pathToFileURL(join(folder, "proof", PROOFS[proof], "main.js")).href);
try {
  process.exit(await main(args));
} catch (error) {
  if (!String(error?.code).startsWith("ERR_PARSE_ARGS")) throw error;
  console.error(`${error.message}\nwhat it takes stands at the head of proof/${PROOFS[proof]}/main.ts`);
  process.exit(1);
}

/** Of everything that may be compiled: what was compiled before from the same is used again. */
function sourcesHash() {
  const hash = createHash("sha256").update(process.version);
  const files = ["src", "proof", "test"].flatMap((name) =>
    readdirSync(join(ROOT, name), { recursive: true, encoding: "utf8" })
      .filter((path) => /\.(ts|json)$/.test(path))
      .map((path) => join(name, path)),
  );
  for (const path of [...files.sort(), "package.json", "package-lock.json", "tsconfig.json"])
    hash.update(`${path}\0`).update(readFileSync(join(ROOT, path)));
  return hash.digest("hex").slice(0, 16);
}

/** Elsewhere first, so that a run beside this one finds all of it or nothing. */
function compileTo(place) {
  for (const old of readdirSync(cache).filter((name) => name.startsWith("svc-proof-")))
    if (statSync(join(cache, old)).mtimeMs < Date.now() - DAY_MS)
      rmSync(join(cache, old), { recursive: true, force: true });
  const draft = mkdtempSync(join(cache, "svc-proof-"));
  process.on("exit", () => rmSync(draft, { recursive: true, force: true }));
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));
  const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
  const built = spawnSync(process.execPath, [tsc, "-p", join(ROOT, "proof"), "--outDir", draft], {
    stdio: "inherit",
  });
  if (built.status !== 0) process.exit(1);
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  writeFileSync(join(draft, "package.json"), JSON.stringify({ type: "module", version }));
  try {
    renameSync(draft, place);
  } catch (error) {
    // One that was started beside this one was faster.
    if (!existsSync(place)) throw error;
  }
}
