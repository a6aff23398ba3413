/** Words that stand for several names, as a shell or a search tool reads them, and the files they stand for here. */
import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";

export const GLOB = /[*?[{]/;

/** Wider than the shell's own matching where that is cheaper to say: a set or a brace stands for anything. */
export function shellGlobMatches(glob: string, name: string, dots = false): boolean {
  if (!dots && name.startsWith(".") && /^[*?[]/.test(glob)) return false;
  const pattern = glob
    .replace(/[.+^$()|\\]/g, "\\$&")
    .replace(/\[[^\]]*\]|\{[^}]*\}|[*?[\]{}]+/g, (piece) => (piece === "?" ? "." : ".*"));
  return new RegExp(`^${pattern}$`).test(name);
}

const MOST_WORDS = 256;
const MOST_FILES = 2_000;

/** The words that braces stand for; one that would be too many stays as it is. */
export function braces(word: string): string[] {
  let words = [word];
  for (;;) {
    const next = words.flatMap((one) => {
      const [all, inner] = /\{([^{}]*,[^{}]*)\}/.exec(one) ?? [];
      return all === undefined ? [one] : inner!.split(",").map((part) => one.replace(all, () => part));
    });
    if (next.length > MOST_WORDS) return [word];
    if (next.every((one, at) => one === words[at])) return next;
    words = next;
  }
}

/** The files of this machine that a pattern stands for; null where they are too many to look at. */
export function filesOf(pattern: string, cwd: string): string[] | null {
  let found = [resolve(cwd, pattern.startsWith("/") ? "/" : ".")];
  for (const segment of pattern.split("/").filter(Boolean)) {
    found = GLOB.test(segment)
      ? found.flatMap((folder) =>
          namesIn(folder)
            .filter((name) => shellGlobMatches(segment, name))
            .map((name) => join(folder, name)),
        )
      : found.map((folder) => join(folder, segment));
    if (found.length > MOST_FILES) return null;
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

const MOST_LOOKED_AT = 20_000;
const PASSED_OVER = new Set(["node_modules", ".git"]);

/** Whether a file with such a name lies below the folder; also where it is too large to be looked through. */
export function liesBelow(folder: string, isSuch: (name: string, path: string) => boolean): boolean {
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
    if (seen > MOST_LOOKED_AT) return true;
    for (const entry of entries) {
      if (!entry.isDirectory()) {
        if (isSuch(entry.name, join(at, entry.name))) return true;
      } else if (!PASSED_OVER.has(entry.name)) folders.push(join(at, entry.name));
    }
  }
  return false;
}
