/** `npm run frameworks`: the adapters' tests under a newer Node, with the newest release of every framework. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./ensure.mjs";
import { ensureFrameworks, newerNode } from "./frameworks.mjs";

const folder = await ensureFrameworks({ executables: true });
const node = await newerNode();
const read = (...path) => JSON.parse(readFileSync(join(...path, "package.json"), "utf8"));
const run = (args, stdio) => spawnSync(node, args, { cwd: ROOT, stdio, encoding: "utf8" });

const newest = Object.keys(read(folder).dependencies).map((name) => [name, folder]);
// Its newest takes Node 20, and is what the package pins.
const all = [...newest, ["langchain", ROOT]].map(
  ([name, where]) => `${name} ${read(where, "node_modules", name).version}`,
);
console.error(`svc: Node ${run(["--version"]).stdout.trim()}, ${all.join(", ")}`);
const config = join(folder, "newest.config.ts");
const vitest = join(ROOT, "node_modules", "vitest", "vitest.mjs");
process.exitCode = run([vitest, "run", "--config", config, ...process.argv.slice(2)], "inherit").status ?? 1;
