/** Resolves the links of a path that may not exist. */
import { existsSync, lstatSync, readlinkSync, realpathSync, type Stats } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";

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

/** Resolves many paths, and looks at each directory above them once. The result is what `resolveLinks` returns now. */
export function createLinkResolver(): (path: string) => string {
  const resolved = new Map<string, string>();
  const missing = new Set<string>();
  const resolveOnce = (path: string): string => {
    const known = resolved.get(path) ?? place(path);
    resolved.set(path, known);
    return known;
  };
  function place(path: string): string {
    const folder = dirname(path);
    if (folder === path) return path;
    const real = resolveOnce(folder);
    const found = missing.has(folder) ? null : lookAt(path);
    if (found === null) missing.add(path);
    // Only a link leads out of its directory.
    if (found?.isSymbolicLink()) return resolveLinks(path);
    return `${real}${real.endsWith(sep) ? "" : sep}${basename(path)}`;
  }
  // Another spelling may go through a link without naming it last.
  return (path) => (resolve(path) === path ? resolveOnce(path) : resolveLinks(path));
}

/** Null for a path that is missing or cannot be looked at. */
function lookAt(path: string): Stats | null {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) ?? null;
  } catch {
    return null;
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
    return lookAt(path)?.isSymbolicLink() ? readlinkSync(path) : null;
  } catch {
    return null;
  }
}
