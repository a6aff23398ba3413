/**
 * The agent frameworks that the adapters' tests run. Those that need a newer Node, or an executable of hundreds of
 * megabytes, aren't our dependencies. They are installed with those tests when one of them is run.
 */
import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { npm, ROOT } from "./ensure.mjs";

const FOLDER = join(ROOT, "test", "adapters", "frameworks");

/**
 * The folder that has them, installed as its lockfile says; throws with what a person can do where that fails. Without
 * `executables`, Claude Code and the newer Node are left out: they are most of the download.
 */
export async function ensureFrameworks({ folder = FOLDER, executables = false } = {}) {
  const locked = readFileSync(join(folder, "package-lock.json"), "utf8");
  const stamp = join(folder, "node_modules", ".svc-install-stamp");
  const installed = existsSync(stamp) ? readFileSync(stamp, "utf8") : undefined;
  const all = `${locked}with executables\n`;
  if (installed === all || (installed === locked && !executables)) return folder;
  const options = executables ? [] : ["--omit=optional"];
  const size = executables ? "270 MB" : "42 MB";
  console.error(`svc: installing the agent frameworks for the tests that need them (${size})`);
  const problem = await install(folder, options);
  if (problem !== undefined) {
    const by_hand = ["npm ci --prefix test/adapters/frameworks", ...options].join(" ");
    throw new Error(
      `This test needs the agent frameworks, which could not be installed. Run: ${by_hand}\n${problem}`,
    );
  }
  writeFileSync(stamp, executables ? all : locked);
  return folder;
}

/** A Node that is new enough for the newest frameworks: this one, or the one that is installed with them. */
export async function newerNode() {
  if (Number(process.versions.node.split(".")[0]) >= 24) return process.execPath;
  const path = join(
    await ensureFrameworks({ executables: true }),
    "node_modules",
    `node-${process.platform}-${process.arch}`,
    "bin",
    "node",
  );
  if (existsSync(path)) return path;
  throw new Error(
    "This test needs Node 24 or newer: none is published for this machine, run the tests with one",
  );
}

/** What npm complains of, where it fails. Engines are not ours to judge here: the tests say what runs. */
function install(folder, options) {
  const [program, args] = npm(
    "ci",
    "--prefer-offline",
    "--engine-strict=false",
    "--loglevel=error",
    ...options,
  );
  const child = spawn(program, args, { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  let told = "";
  child.stderr.setEncoding("utf8").on("data", (text) => {
    told += text;
  });
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("close", (code) => resolve(code === 0 ? undefined : told.slice(0, 2_000)));
  });
}
