/**
 * The proofs, the processes that tests kill by the dozen, and their shared sources, as plain JavaScript in a separate
 * directory: such a process must start fast, and a loader that reads TypeScript costs several times what it does.
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
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const DAY_MS = 24 * 60 * 60 * 1_000;
// Inside the package, so that its dependencies are found.
const CACHE = join(ROOT, "node_modules", ".cache");

/** The folder, laid out as the sources are; compiled unless that was done already. */
export function compiledFolder() {
  mkdirSync(CACHE, { recursive: true });
  const folder = join(CACHE, `svc-proof-${sourcesHash()}`);
  if (!existsSync(folder)) compileTo(folder);
  return folder;
}

/** Of everything that can be compiled: an earlier result of the same sources is used again. */
function sourcesHash() {
  const hash = createHash("sha256").update(process.version);
  const files = ["src", "stress", "test"].flatMap((name) => sourcesIn(name));
  for (const path of [...files.sort(), "package.json", "package-lock.json", "tsconfig.json"])
    hash.update(`${path}\0`).update(readFileSync(join(ROOT, path)));
  return hash.digest("hex").slice(0, 16);
}

/** Ours alone: packages that tests download lie among them, and may be coming in right now. */
function sourcesIn(folder) {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === "node_modules" ? [] : sourcesIn(path);
    return /\.(ts|json)$/.test(entry.name) ? [path] : [];
  });
}

/** Written elsewhere first, so that a concurrent run finds all of it or nothing. */
function compileTo(place) {
  for (const old of readdirSync(CACHE).filter((name) => name.startsWith("svc-proof-")))
    if (statSync(join(CACHE, old)).mtimeMs < Date.now() - DAY_MS)
      rmSync(join(CACHE, old), { recursive: true, force: true });
  const draft = mkdtempSync(join(CACHE, "svc-proof-"));
  try {
    const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
    const built = spawnSync(process.execPath, [tsc, "-p", join(ROOT, "stress"), "--outDir", draft], {
      stdio: "inherit",
    });
    if (built.status !== 0) throw new Error("the proofs do not compile");
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    writeFileSync(join(draft, "package.json"), JSON.stringify({ type: "module", version }));
    renameSync(draft, place);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    // A concurrent run may have been faster.
    if (!existsSync(place)) throw error;
  }
}
