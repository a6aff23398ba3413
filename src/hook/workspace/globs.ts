/** Expands wildcards and braces the way a shell or a search tool does, and lists the matching files. */
import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";

export const GLOB_CHARACTER = /[*?[{]/;

/** Matches more than the shell does: a set or a brace matches anything, which is simpler and still safe. */
export function shellGlobMatches(glob: string, name: string, dots = false): boolean {
  if (!dots && name.startsWith(".") && /^[*?[]/.test(glob)) return false;
  const pattern = glob
    .replace(/[.+^$()|\\]/g, "\\$&")
    .replace(/\[[^\]]*\]|\{[^}]*\}|[*?[\]{}]+/g, (piece) => (piece === "?" ? "." : ".*"));
  return new RegExp(`^${pattern}$`).test(name);
}

const MAX_WORDS = 256;
const MAX_FILES = 2_000;

/** Expands braces. Returns the word unchanged if that would give too many words. */
export function expandShellBraces(word: string): string[] {
  let words = [word];
  for (;;) {
    const next = words.flatMap((one) => {
      const [all, inner] = /\{([^{},]*,[^{}]*)\}/.exec(one) ?? [];
      return all === undefined ? [one] : inner!.split(",").map((part) => one.replace(all, () => part));
    });
    if (next.length > MAX_WORDS) return [word];
    if (next.every((one, at) => one === words[at])) return next;
    words = next;
  }
}

/** Files on this machine that match a pattern. Null if there are too many to check. */
export function filesMatching(pattern: string, cwd: string): string[] | null {
  let found = [resolve(cwd, pattern.startsWith("/") ? "/" : ".")];
  for (const segment of pattern.split("/").filter(Boolean)) {
    found = GLOB_CHARACTER.test(segment)
      ? found.flatMap((folder) =>
          namesIn(folder)
            .filter((name) => shellGlobMatches(segment, name))
            .map((name) => join(folder, name)),
        )
      : found.map((folder) => join(folder, segment));
    if (found.length > MAX_FILES) return null;
  }
  return found;
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

const MAX_LOOKED_AT = 20_000;
const PASSED_OVER = new Set(["node_modules", ".git"]);

/** Whether a matching file exists below the directory. Also true if the directory is too large to search. */
export function hasFileBelow(folder: string, isSuch: (name: string, path: string) => boolean): boolean {
  const folders = [folder];
  let seen = 0;
  for (const at of folders) {
    let entries: { name: string; isDirectory(): boolean }[];
    try {
      entries = readdirSync(at, { withFileTypes: true });
    } catch {
      continue;
    }
    seen += entries.length;
    if (seen > MAX_LOOKED_AT) return true;
    for (const entry of entries) {
      if (!entry.isDirectory()) {
        if (isSuch(entry.name, join(at, entry.name))) return true;
      } else if (!PASSED_OVER.has(entry.name)) folders.push(join(at, entry.name));
    }
  }
  return false;
}
