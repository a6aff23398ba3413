/**
 * Runs git in a workspace that may be hostile. A git configuration can name programs to run (monitors, hooks, filters,
 * pagers, transports), so all of them and all inherited variables are disabled here.
 */
import { accessSync, constants, existsSync, realpathSync } from "node:fs";
import { delimiter, dirname, isAbsolute, join, resolve } from "node:path";

const PATIENCE_MS = 2_000;
const MAX_BYTES = 8_388_608;

/** Options on the command line override every configuration file, including included ones. */
const SWITCHED_OFF: readonly string[] = [
  "core.fsmonitor=false",
  "core.hooksPath=/dev/null",
  "core.untrackedCache=false",
  "core.attributesFile=/dev/null",
  "core.excludesFile=/dev/null",
  "core.sshCommand=false",
  "core.gitProxy=",
  "core.pager=cat",
  "core.editor=false",
  "core.askPass=",
  "credential.helper=",
  "diff.external=",
  "protocol.allow=never",
];

/** Null if git is missing, fails, or takes too long. */
export function runGit(cwd: string, args: readonly string[], path = process.env["PATH"]): string | null {
  const top = workTreeTop(cwd);
  const git = top === null ? null : programOutside(top, path ?? "", "git");
  if (top === null || git === null) return null;
  try {
    // Loaded on use, because most calls do not start git.
    const { execFileSync } = process.getBuiltinModule("node:child_process");
    return execFileSync(git, ["--no-pager", ...SWITCHED_OFF.flatMap((one) => ["-c", one]), ...args], {
      cwd,
      env: cleanVariables(top, dirname(git)),
      timeout: PATIENCE_MS,
      killSignal: "SIGKILL",
      maxBuffer: MAX_BYTES,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
  } catch {
    return null;
  }
}

/**
 * A clean environment: an inherited `GIT_*` variable could name a program, another repository or another configuration.
 */
function cleanVariables(top: string, bin: string): NodeJS.ProcessEnv {
  return {
    PATH: [bin, "/usr/bin", "/bin"].join(delimiter),
    LC_ALL: "C",
    HOME: "/nonexistent",
    XDG_CONFIG_HOME: "/nonexistent",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_CONFIG_SYSTEM: "/dev/null",
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_ATTR_NOSYSTEM: "1",
    GIT_WORK_TREE: top,
    GIT_ALLOW_PROTOCOL: "none",
    GIT_NO_LAZY_FETCH: "1",
    GIT_TERMINAL_PROMPT: "0",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_PAGER: "cat",
  };
}

/** The directory that contains `.git`. Ignores `core.worktree`. */
export function workTreeTop(cwd: string): string | null {
  for (let at = resolve(cwd); ; at = dirname(at)) {
    if (existsSync(join(at, ".git"))) return at;
    if (dirname(at) === at) return null;
  }
}

/** The first program of that name on the path and outside the workspace. */
function programOutside(workspace: string, path: string, name: string): string | null {
  const inner = `${realpathSync(workspace)}/`;
  for (const folder of path.split(delimiter)) {
    if (!isAbsolute(folder)) continue;
    for (const file of [join(folder, name), join(folder, `${name}.exe`)]) {
      try {
        accessSync(file, constants.X_OK);
        if (!realpathSync(file).startsWith(inner) && !`${realpathSync(folder)}/`.startsWith(inner))
          return file;
      } catch {}
    }
  }
  return null;
}
