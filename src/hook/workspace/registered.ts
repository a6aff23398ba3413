/**
 * Which directories count as registered: what the person registered, everything below it, and every linked work tree of
 * the same repository. Repositories are read directly, without git.
 */
import { existsSync, realpathSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { readTextOrNull } from "./read-text.ts";
import { workTreeTop } from "./safe-git.ts";

/** Directories, resolved, or all of them. */
export type RegisteredWorkspaces = readonly string[] | "all";

/** The resolved path. A missing directory counts as part of the nearest one that exists. */
export function resolvedDirectory(path: string): string {
  const full = resolve(path);
  for (let at = full; ; at = dirname(at)) {
    if (existsSync(at)) return join(realpathSync.native(at), full.slice(at.length));
    if (dirname(at) === at) return full;
  }
}

/** The workspace around a directory: its git work tree, or the directory without one. */
export function workspaceOf(path: string): string {
  const full = resolvedDirectory(path);
  return workTreeTop(full) ?? full;
}

export function isRegistered(path: string, workspaces: RegisteredWorkspaces): boolean {
  if (workspaces === "all") return true;
  const full = resolvedDirectory(path);
  if (workspaces.some((one) => full === one || full.startsWith(one.endsWith("/") ? one : `${one}/`)))
    return true;
  const repository = repositoryOf(full);
  return repository !== null && workspaces.some((one) => repositoryOf(one) === repository);
}

/** The directory that all work trees of a repository share. Null outside a repository. */
function repositoryOf(path: string): string | null {
  const top = workTreeTop(path);
  if (top === null) return null;
  try {
    const git = join(top, ".git");
    if (statSync(git).isDirectory()) return realpathSync.native(git);
    const named = /^gitdir: (.+?)\r?\n?$/.exec(readTextOrNull(git) ?? "")?.[1];
    if (named === undefined) return null;
    const own = resolve(top, named);
    const common = readTextOrNull(join(own, "commondir"));
    return realpathSync.native(common === null ? own : resolve(own, common.trim()));
  } catch {
    return null;
  }
}
