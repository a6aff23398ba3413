/**
 * Finds the files of the work tree that a shell command changed, according to git (without ignored files). Their old
 * content is not saved, so the report says that they cannot be undone.
 */
import { lstatSync } from "node:fs";
import { dirname, join } from "node:path";
import { runGit } from "./safe-git.ts";

const MAX_FILES = 20_000;

interface Changes {
  changed: string[];
  /** Full paths of tracked files that are missing now. */
  gone: string[];
}

/** Null outside a work tree, or if it is too large to check. `missed`: files that were missing at the last check. */
export function changedSince(
  cwd: string,
  since_ms: number,
  missed: ReadonlySet<string> = new Set(),
): Changes | null {
  const all = listed(cwd, ["--cached", "--others", "--exclude-standard"]);
  if (all === null || all.length > MAX_FILES) return null;
  const gone: string[] = [];
  const changed = all.sort().filter((path) => {
    const full = join(cwd, path);
    const found = lstatSync(full, { throwIfNoEntry: false });
    if (found !== undefined) return found.ctimeMs >= since_ms;
    gone.push(full);
    if (missed.has(full)) return false;
    // A missing file counts as changed if its directory was modified since the start.
    const folder = lstatSync(dirname(full), { throwIfNoEntry: false });
    return folder === undefined || folder.mtimeMs >= since_ms;
  });
  return { changed, gone };
}

function listed(cwd: string, options: readonly string[]): string[] | null {
  const out = runGit(cwd, ["ls-files", "-z", ...options]);
  return out === null ? null : [...new Set(out.split("\0").filter(Boolean))];
}
