/**
 * The module of a thread that starts from source, in one compiled file: a loader of TypeScript costs each thread a
 * second. Made once for each state of the sources.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { buildSync } from "esbuild";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** As deep as the sources, so that the module finds the package's files. */
const CACHE = join(ROOT, "node_modules", ".cache");
const DAY_MS = 24 * 60 * 60 * 1_000;

/** The URL of the compiled form of the module at this URL. */
export function threadModule(entry) {
  const source = fileURLToPath(entry);
  const kind = `svc-thread-${basename(dirname(source))}-${basename(source, ".ts")}-`;
  const file = join(CACHE, `${kind}${stateOfSources()}.mjs`);
  if (!existsSync(file)) compile(source, file, kind);
  return pathToFileURL(file).href;
}

function stateOfSources() {
  const hash = createHash("sha256").update(process.version);
  const folder = join(ROOT, "src");
  for (const name of readdirSync(folder, { recursive: true }).sort())
    if (name.endsWith(".ts") && !name.endsWith(".test.ts")) {
      const { mtimeMs, size } = statSync(join(folder, name));
      hash.update(`${name} ${mtimeMs} ${size}\n`);
    }
  return hash.digest("hex").slice(0, 16);
}

/** Written under another name first, so that a concurrent thread finds all of it or nothing. */
function compile(source, file, kind) {
  mkdirSync(CACHE, { recursive: true });
  for (const old of readdirSync(CACHE).filter((name) => name.startsWith(kind)))
    if (statSync(join(CACHE, old)).mtimeMs < Date.now() - DAY_MS) rmSync(join(CACHE, old), { force: true });
  const draft = `${file}.${process.pid}-${process.hrtime.bigint()}`;
  buildSync({
    ...{ entryPoints: [source], outfile: draft, absWorkingDir: ROOT, logLevel: "warning" },
    ...{ bundle: true, platform: "node", format: "esm", target: "node20", packages: "external" },
  });
  renameSync(draft, file);
}
