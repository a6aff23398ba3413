/**
 * Which files of the work tree a shell command changed, by git's own list of what counts (ignored files do not). It
 * keeps nothing, so what it finds is beyond undo; it only says so.
 */
import { lstatSync } from "node:fs";
import { dirname, join } from "node:path";
import { runGit } from "./safe-git.ts";

const MOST_FILES = 20_000;

interface Changes {
  changed: string[];
  /** Full paths that git knows and that are not there, whenever they went. */
  gone: string[];
}

/** Null outside a work tree, and where it is too large to look at. `missed`: what was gone when it was last looked at. */
export function changedSince(
  cwd: string,
  since_ms: number,
  missed: ReadonlySet<string> = new Set(),
): Changes | null {
  const all = listed(cwd, ["--cached", "--others", "--exclude-standard"]);
  if (all === null || all.length > MOST_FILES) return null;
  const gone: string[] = [];
  const changed = all.sort().filter((path) => {
    const full = join(cwd, path);
    const found = lstatSync(full, { throwIfNoEntry: false });
    if (found !== undefined) return found.ctimeMs >= since_ms;
    gone.push(full);
    if (missed.has(full)) return false;
    // Git knows it and it is gone: since then, where its folder was touched since then.
    const folder = lstatSync(dirname(full), { throwIfNoEntry: false });
    return folder === undefined || folder.mtimeMs >= since_ms;
  });
  return { changed, gone };
}

function listed(cwd: string, options: readonly string[]): string[] | null {
  const out = runGit(cwd, ["ls-files", "-z", ...options]);
  return out === null ? null : [...new Set(out.split("\0").filter(Boolean))];
}
