/**
 * Makes a fresh clone ready: installs the missing packages and builds. Plain Node without dependencies,
 * because it runs before there are any.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

const LOCKFILE = join(ROOT, "package-lock.json");
const MODULES = join(ROOT, "node_modules");
const STAMP = join(MODULES, ".svc-install-stamp");

/** A step that failed and has already reported why; the caller ends with the code. */
export class StepFailed extends Error {
  constructor(message, exitCode) {
    super(message);
    this.name = "StepFailed";
    this.exitCode = exitCode;
  }
}

export function ensureInstalled() {
  const wanted = fingerprint();
  if (readStamp() === wanted && allPresent()) return;
  if (!installedByHand()) {
    say("installing dependencies");
    run(...npm("ci", "--include=dev"), "npm ci failed; see its message above");
  }
  writeFileSync(STAMP, wanted);
}

export function build() {
  say("building");
  run(process.execPath, [join(ROOT, "scripts", "build.mjs")], "the build failed; see the errors above");
}

/** Runs a program in the repository with its output on stderr, so that stdout stays the caller's own. */
function run(program, args, failure) {
  const { status, signal, error } = spawnSync(program, args, {
    cwd: ROOT,
    stdio: ["ignore", process.stderr, process.stderr],
    shell: process.platform === "win32" && program === "npm",
  });
  if (error) throw new StepFailed(`could not start ${program}: ${error.message}`, 1);
  if (status !== 0) throw new StepFailed(failure, signal === null ? (status ?? 1) : 1);
}

/** The npm that runs us when there is one: another on the PATH might disagree about the lockfile. */
export function npm(...args) {
  const own = process.env.npm_execpath;
  return own?.endsWith(".js") ? [process.execPath, [own, ...args]] : ["npm", args];
}

/** What the installed tree depends on: the lockfile, and the machine its native parts were chosen for. */
function fingerprint() {
  const hash = createHash("sha256").update(readFileSync(LOCKFILE));
  return hash.update(`\n${process.platform} ${process.arch} ${process.versions.modules}\n`).digest("hex");
}

function readStamp() {
  return existsSync(STAMP) ? readFileSync(STAMP, "utf8") : undefined;
}

/** Somebody ran npm after the lockfile last changed: take that tree, do not install it a second time. */
function installedByHand() {
  const record = join(MODULES, ".package-lock.json");
  if (readStamp() !== undefined || !existsSync(record)) return false;
  return statSync(record).mtimeMs >= statSync(LOCKFILE).mtimeMs && allPresent();
}

/** Every package that we name ourselves is there; an install that left out the development ones is not enough. */
function allPresent() {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const names = Object.keys({ ...dependencies, ...devDependencies });
  return names.every((name) => existsSync(join(MODULES, name, "package.json")));
}

function say(text) {
  console.error(`svc: ${text}`);
}
