/**
 * Makes `dist` from the sources: their types, one file for each entry, and the shared parts of the entries in `dist/shared`,
 * packages included. A command then reads some ten files instead of a thousand (docs/adr/0014).
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const DIST = join(ROOT, "dist");
/** All modules of the command in one script; its compiled code is beside it, for this Node (src/cli/compiled-command.ts). */
const COMMAND = join(DIST, "shared", "command.cjs");
const DAY_MS = 24 * 60 * 60 * 1_000;
/** Entries in addition to the package's exports: programs, and code of threads. */
const BEGUN = [
  "cli/bin",
  "cli/demo",
  "operations/worker/worker",
  "operations/pdf/worker",
  "operations/values/worker",
  "console/pages/approvals/worker",
  "evidence/chain/worker",
  "store/files/worker",
  "store/sqlite/worker",
  "hook/resident/start",
  "hook/record/thread",
  "hook/record/stat-thread",
  "auth/approvers-guard",
  "cli/compiled-command",
];
/** A dependency for its types alone, which the exported types use. */
const BUNDLED = "zod";
/** Fastify asks for them only where a route has a schema; none has (src/http/no-schemas.ts). */
const NEVER_LOADED = ["@fastify/ajv-compiler", "@fastify/fast-json-stringify-compiler"];

/** Packages that the command's one script cannot hold: built for the machine, or reading their own files. */
const UNBUNDLED = ["@photostructure/sqlite", "pdfkit"];

const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
// Its cache is kept with its output: deleting the one deletes the other.
const remembered = ["--incremental", "--tsBuildInfoFile", join(DIST, ".tsbuildinfo")];
const typed = spawnSync(process.execPath, [tsc, "-p", ROOT, "--emitDeclarationOnly", ...remembered], {
  stdio: "inherit",
});
if (typed.status !== 0) process.exit(1);

const { exports, dependencies, peerDependencies } = readPackage(ROOT);
const exported = Object.values(exports).flatMap(
  (entry) => entry.default?.match(/^\.\/dist\/(.*)\.js$/)?.[1] ?? [],
);
/** Packages that users install next to ours: loaded on demand, built for the machine, or reading their own files. */
const EXTERNAL = [
  ...Object.keys({ ...dependencies, ...peerDependencies }).filter((name) => name !== BUNDLED),
  ...NEVER_LOADED,
];
/** Packages in the older format ask for Node's own modules with `require`, which a module does not have. */
const REQUIRE =
  'import { createRequire as requireFrom } from "node:module"; const require = requireFrom(import.meta.url);\n';
const COMMON = {
  absWorkingDir: ROOT,
  outbase: "src",
  outdir: DIST,
  bundle: true,
  platform: "node",
  target: "node20",
  logLevel: "warning",
};
const { metafile, outputFiles } = await build({
  ...COMMON,
  entryPoints: [...exported, ...BEGUN].map((name) => `src/${name}.ts`),
  chunkNames: "shared/[name]-[hash]",
  splitting: true,
  write: false,
  metafile: true,
  format: "esm",
  external: EXTERNAL,
});
for (const { path, text } of outputFiles) {
  mkdirSync(dirname(path), { recursive: true });
  // Making one takes time, so only those files have it that ask.
  writeFileSync(path, /(?<![\w.$])require\b/.test(text) ? `${REQUIRE}${text}` : text);
}
// Started for every call of a coding agent: one file, in the format that Node starts sooner.
await build({
  ...COMMON,
  entryPoints: ["src/hook/bin.ts"],
  format: "cjs",
  outExtension: { ".js": ".cjs" },
  // Few hooks verify signatures, so what verifies them is not read with every call.
  plugins: [leftOut(/\/approvers-guard\.ts$/, "../auth/approvers-guard.js")],
});
// The compiled code is of the old script until it is made again.
for (const name of readdirSync(join(DIST, "shared")))
  if (/^command-.*\.cache$/.test(name)) rmSync(join(DIST, "shared", name));
await build({
  ...COMMON,
  entryPoints: ["src/cli/command.ts"],
  outdir: undefined,
  outfile: COMMAND,
  format: "cjs",
  external: [...UNBUNDLED, ...Object.keys(peerDependencies ?? {}), ...NEVER_LOADED],
  plugins: [bundledRequires()],
  define: { "import.meta.url": "importMetaUrl" },
  // Code from V8's cache has no loader of modules.
  supported: { "dynamic-import": false },
  banner: { js: "(function (module, require, importMetaUrl) {" },
  footer: { js: "})" },
  // The rest of it is used from source alone.
  logOverride: { "empty-import-meta": "silent" },
});
// V8 reads it as Latin-1, which is faster. Tagged templates are the only texts that esbuild leaves unescaped.
const bundled = readFileSync(COMMAND, "utf8");
const slashed = /(?<!\\)(?:\\\\)*\\[^\0-\x7f]/.exec(bundled);
if (slashed !== null)
  throw new Error(`A backslash before a character that is not ASCII is not supported: ${slashed[0]}`);
const escaped = bundled.replace(
  /[^\0-\x7f]/g,
  (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
);
writeFileSync(COMMAND, escaped);
dropOld(new Set([COMMAND, ...Object.keys(metafile.outputs).map((path) => join(ROOT, path))]));
writeFileSync(join(DIST, "THIRD-PARTY.txt"), notices(Object.keys(metafile.inputs)));

const compiled = spawnSync(process.execPath, [join(ROOT, "scripts", "compile-command.mjs"), COMMAND], {
  stdio: ["ignore", "ignore", "inherit"],
});
if (compiled.status !== 0) process.exit(1);

/** Keeps a module that is imported on use in a separate file. */
function leftOut(filter, path) {
  const setup = ({ onResolve }) =>
    onResolve({ filter }, ({ kind }) => (kind === "dynamic-import" ? { path, external: true } : undefined));
  return { name: "left-out", setup };
}

/** Packages that a module requires on use become part of the script. */
function bundledRequires() {
  const setup = ({ onLoad }) =>
    onLoad({ filter: /\/src\/.*\.ts$/ }, ({ path }) => {
      const text = readFileSync(path, "utf8");
      const contents = text.replaceAll("createRequire(import.meta.url)(", "require(");
      return contents === text ? undefined : { contents, loader: "ts" };
    });
  return { name: "bundled-requires", setup };
}

/** What a running server may still load stays for a day. */
function dropOld(made) {
  for (const name of readdirSync(join(DIST, "shared"))) {
    const path = join(DIST, "shared", name);
    if (!made.has(path) && statSync(path).mtimeMs < Date.now() - DAY_MS) rmSync(path);
  }
}

/** The licences of the packages whose code is inside. */
function notices(inputs) {
  const folders = new Set(
    inputs.flatMap((path) => path.match(/^.*node_modules\/(?:@[^/]+\/)?[^/]+/)?.[0] ?? []),
  );
  return [...folders]
    .sort()
    .map((folder) => {
      const { name, version, license } = readPackage(join(ROOT, folder));
      return `${name} ${version} (${license})\n\n${licence(join(ROOT, folder))}`;
    })
    .join(`\n${"-".repeat(80)}\n\n`);
}

function licence(folder) {
  const name = readdirSync(folder).find((file) => /^(licen[cs]e|copying)/i.test(file));
  return name === undefined ? "" : `${readFileSync(join(folder, name), "utf8").trim()}\n`;
}

function readPackage(folder) {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
}
