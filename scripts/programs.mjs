/**
 * The programs that tests need besides Node: finds them on the machine, or installs Debian's where that is
 * possible without asking anybody. Plain Node, so that the viewer's own tests can use it as well.
 */
import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";

/**
 * `proof` is what a program must do to count as there: a command that only tells how to install the real one,
 * or a Python without its library, is none. `variable` names one that somebody prefers, `with` what it needs besides.
 */
const PROGRAMS = {
  chromium: {
    what: "a Chromium",
    names: [
      "chromium",
      "chromium-browser",
      "google-chrome",
      "google-chrome-stable",
      "chrome",
      "/Applications/Chromium.app/Contents/MacOS/Chromium",
      "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    ],
    proof: ["--version"],
    variable: "CHROME_PATH",
    brew: "--cask chromium",
  },
  /** Four times as fast, and without what surrounds a page: no notifications, no installed apps. */
  "chromium-headless-shell": {
    what: "a Chromium without windows",
    names: ["chromium-headless-shell", "chrome-headless-shell"],
    proof: ["--version"],
    variable: "CHROME_PATH",
  },
  python3: {
    what: "a Python 3 with its standard library",
    names: ["python3"],
    proof: ["-c", "import http.server, sqlite3, unittest"],
    variable: "PYTHON",
    brew: "python3",
  },
  openssl: { what: "openssl", names: ["openssl"], proof: ["version"], brew: "openssl" },
  curl: { what: "curl", names: ["curl"], proof: ["--version"], brew: "curl" },
  bubblewrap: { what: "bubblewrap", names: ["bwrap"], proof: ["--version"] },
  gh: { what: "GitHub's command line", names: ["gh"], proof: ["--version"], brew: "gh" },
  // Not one of a version manager, which the confined side does not see.
  awscli: { what: "Amazon's command line", names: ["/usr/bin/aws"], proof: ["--version"] },
  git: { what: "git", names: ["git"], proof: ["--version"], brew: "git" },
  "netcat-openbsd": { what: "nc with Unix sockets", names: ["nc"], proof: ["-h"], brew: "netcat" },
  zsh: { what: "zsh", names: ["zsh"], proof: ["--version"], brew: "zsh" },
  fish: { what: "fish", names: ["fish"], proof: ["--version"], brew: "fish" },
  patroni: {
    what: "Patroni",
    names: ["patroni"],
    proof: ["--version"],
    with: ["python3-etcd", "postgresql"],
  },
  "etcd-server": { what: "etcd", names: ["etcd"], proof: ["--version"] },
  haproxy: { what: "HAProxy", names: ["haproxy", "/usr/sbin/haproxy"], proof: ["-v"] },
  "golang-go": { what: "Go", names: ["go"], proof: ["version"], brew: "go" },
  systemd: { what: "systemd-analyze", names: ["systemd-analyze"], proof: ["--version"] },
};

/** The path of one that works, or undefined. The one that the variable names wins, and must be right. */
export async function findProgram(name) {
  const { names, proof, variable } = PROGRAMS[name];
  const chosen = variable && process.env[variable];
  if (chosen) {
    const path = onPath(chosen);
    if (path !== undefined && (await run(path, proof)) === 0) return path;
    throw new Error(`${variable} names ${chosen}, which cannot be run.`);
  }
  for (const path of names.map(onPath)) {
    if (path !== undefined && (await run(path, proof)) === 0) return path;
  }
}

/** Finds or installs one; throws with the command that a person must run where neither works. */
export async function ensureProgram(name) {
  const found = await findProgram(name);
  if (found !== undefined) return found;
  const aptGet = onPath("apt-get");
  if (process.getuid?.() === 0 && aptGet !== undefined) {
    await inTurn(() => install(aptGet, name));
    const installed = await findProgram(name);
    if (installed !== undefined) return installed;
  }
  throw new Error(howToGet(name));
}

function howToGet(name) {
  const { what, variable, brew, with: more = [] } = PROGRAMS[name];
  const command =
    process.platform === "darwin"
      ? `brew install ${brew}`
      : `sudo apt-get update && sudo apt-get install -y --no-install-recommends ${[name, ...more].join(" ")}`;
  const or = variable ? `\n(or set ${variable} to one that you have)` : "";
  return `This test needs ${what} and found none. Run: ${command}${or}`;
}

/** Packages have the names used here. Whether it worked is seen by looking for the program again. */
async function install(aptGet, name) {
  console.error(`svc: installing ${name} for the tests that need it`);
  // The index of an image is usually stale and names packages that are gone. A source that cannot be reached
  // makes this fail although the package may well be there.
  await apt(aptGet, ["update"]);
  const packages = [name, ...(PROGRAMS[name].with ?? [])];
  await apt(aptGet, ["install", "-y", "--no-install-recommends", ...packages]);
}

function apt(aptGet, args) {
  return run(aptGet, ["-q", "-o", "DPkg::Lock::Timeout=600", ...args], {
    // Its chatter belongs with the other diagnostics, not in the test report.
    stdio: ["ignore", process.stderr, process.stderr],
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  });
}

let turn = Promise.resolve();

/** Installations exclude one another. */
function inTurn(work) {
  turn = turn.then(work);
  return turn;
}

/** The exit code; undefined where the program could not be started or was killed. */
function run(program, args, options = { stdio: "ignore" }) {
  return new Promise((resolve) => {
    const child = spawn(program, args, options);
    child.once("error", () => resolve(undefined));
    child.once("exit", (code) => resolve(code ?? undefined));
  });
}

function onPath(name) {
  if (isAbsolute(name)) return isExecutable(name) ? name : undefined;
  const folders = (process.env.PATH ?? "").split(delimiter).filter(Boolean);
  return folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
