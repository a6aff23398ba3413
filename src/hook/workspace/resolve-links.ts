/** Resolves the links of a path that may not exist. */
import { existsSync, lstatSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

const MAX_LINKS = 20;

/** Resolves symbolic links as far as the path exists, including links to missing files. */
export function resolveLinks(path: string, links = 0): string {
  const missing: string[] = [];
  for (let at = path; ; at = dirname(at)) {
    const found = realAt(at);
    if (found !== null) return join(found, ...missing);
    if (dirname(at) === at) return path;
    const target = linkAt(at);
    if (target !== null && links < MAX_LINKS)
      return resolveLinks(join(resolve(dirname(at), target), ...missing), links + 1);
    missing.unshift(basename(at));
  }
}

// Most of these paths do not exist, and an exception costs more than the check.
function realAt(path: string): string | null {
  try {
    return existsSync(path) ? realpathSync.native(path) : null;
  } catch {
    return null;
  }
}

function linkAt(path: string): string | null {
  try {
    const link = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink();
    return link ? readlinkSync(path) : null;
  } catch {
    return null;
  }
}
