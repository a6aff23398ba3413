/**
 * The files of a workspace that decide about an agent, run by themselves or hold credentials: found before a confined
 * run, and compared after it. Links are followed only to protect what
 * they lead to.
 */
import { lstatSync, readdirSync, realpathSync, type Stats } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { reasonByName } from "../path-guard.ts";
import { foldPath, isAutoRunFile } from "./auto-run-files.ts";
import { configuredPaths } from "./git-paths.ts";

/** Directories of packages, whose files run only when something asks for them. */
const SKIPPED = new Set(["node_modules"]);
/** Not followed below: their own files decide. */
const GIT = ".git";
/** A file that names another directory with git's configuration and hooks. An empty one would stop git. */
export const COMMON_DIR = "commondir";
const MAX_ENTRIES = 500_000;

/** Read-only even if they do not exist yet, directly in the workspace. */
export const PROTECTED_FOLDERS = [
  ".git",
  ".claude",
  ".codex",
  ".gemini",
  ".cursor",
  ".vscode",
  ".idea",
  ".zed",
  ".devcontainer",
  ".agents",
  ".husky",
  ".githooks",
] as const;
export const PROTECTED_FILES = [
  ".mcp.json",
  ".envrc",
  ".gitmodules",
  ".npmrc",
  ".yarnrc.yml",
  ".pnpmfile.cjs",
  ".pre-commit-config.yaml",
  "lefthook.yml",
  ".lefthook.yml",
  ".devcontainer.json",
] as const;
const MODULES = "modules";
const IN_GIT = ["config", "config.worktree", COMMON_DIR, "hooks", "info/attributes", MODULES] as const;

export interface ProtectedTree {
  /** Existing paths that stay readable. */
  readonly read_only: string[];
  /** Files that hold credentials or settings of the service. */
  readonly hidden: string[];
  /** Sockets, which reach a process outside. */
  readonly sockets: string[];
  /** Directories of git repositories. */
  readonly repositories: string[];
  /** Device and inode of every path above. */
  readonly marks: ReadonlyMap<string, string>;
}

type Kind = "read_only" | "hidden" | "sockets" | "repositories";

/** Throws if the workspace has more entries than can be looked at. */
export function protectedTree(workspace: string): ProtectedTree {
  const found: Record<Kind, string[]> = { read_only: [], hidden: [], sockets: [], repositories: [] };
  const marks = new Map<string, string>();
  let entries = 0;
  const open = [workspace];
  for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
    for (const entry of listed(folder)) {
      if (++entries > MAX_ENTRIES)
        throw new Error(`${workspace}: has more than ${MAX_ENTRIES} entries; choose a smaller --workspace`);
      const path = join(folder, entry);
      const stats = lstatSync(path, { throwIfNoEntry: false });
      if (stats === undefined) continue;
      const kind = kindOf(path, stats);
      if (kind !== null) {
        const more = decidingBeside(path, kind, workspace);
        for (const one of [path, ...more]) marks.set(one, markOf(lstatSync(one)));
        found[kind].push(path);
        found.read_only.push(...more);
      } else if (stats.isDirectory() && !SKIPPED.has(entry)) open.push(path);
    }
  }
  return { ...found, marks };
}

/** Paths that decide although their name does not say so: of git, and what links in protected places lead to. */
function decidingBeside(path: string, kind: Kind, workspace: string): string[] {
  if (kind !== "repositories") return linkTargets(path, workspace);
  const places = decidingGitPaths(path, workspace).filter(
    (place) => basename(place) !== MODULES && lstatSync(place, { throwIfNoEntry: false }) !== undefined,
  );
  return [...new Set(places.flatMap((place) => [place, ...linkTargets(place, workspace)]))];
}

/** Files and directories of the workspace that a link leads to, or a link below a directory. */
function linkTargets(path: string, workspace: string): string[] {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats?.isDirectory())
    return listed(path)
      .filter((name) => !SKIPPED.has(name))
      .flatMap((name) => linkTargets(join(path, name), workspace));
  if (!stats?.isSymbolicLink()) return [];
  try {
    const target = realpathSync(path);
    return isBelow(target, realpathSync(workspace)) ? [target] : [];
  } catch {
    return [];
  }
}

function listed(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

const markOf = ({ dev, ino }: Stats): string => `${dev} ${ino}`;

function kindOf(path: string, stats: Stats): Kind | null {
  if (stats.isSocket()) return "sockets";
  const name = foldPath(basename(path));
  if (name === GIT) return stats.isDirectory() ? "repositories" : "read_only";
  if (stats.isDirectory() || stats.isSymbolicLink()) {
    const isProtected =
      (PROTECTED_FOLDERS as readonly string[]).includes(name) || reasonOf(join(path, "x")) !== null;
    if (isProtected) return "read_only";
    if (stats.isDirectory()) return null;
  }
  const reason = reasonOf(path);
  if (reason === null) return null;
  return /holds credentials|service's configuration/.test(reason) ? "hidden" : "read_only";
}

function reasonOf(path: string): string | null {
  return reasonByName(path) ?? (isAutoRunFile(foldPath(path)) ? "runs automatically" : null);
}

/** The paths of a repository that decide what git runs. Its configuration can name more of them. */
export function decidingGitPaths(repository: string, workspace: string): string[] {
  const paths = IN_GIT.map((name) => join(repository, name));
  const named = configuredPaths(join(repository, "config"), { base: dirname(repository) });
  return [...paths, ...named.filter((path) => isBelow(path, workspace))];
}

const isBelow = (path: string, folder: string): boolean => {
  const way = relative(folder, path);
  return way !== "" && !way.startsWith("..") && !way.startsWith("/");
};

/** New paths of a run that would run on their own later, or that name a program to run. */
export function newProtected(workspace: string, before: ProtectedTree): string[] {
  const after = protectedTree(workspace);
  const added = [...after.read_only, ...after.repositories].filter(
    (path) => before.marks.get(path) !== after.marks.get(path),
  );
  const unique = [...new Set(added)];
  return unique.filter((path) => !unique.some((other) => isBelow(path, other)));
}
