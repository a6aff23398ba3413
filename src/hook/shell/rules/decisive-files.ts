/**
 * Files of a project that decide which programs a usual command runs or installs, or which instructions a client obeys.
 * After a run changed one, commands that use it need approval.
 */
import { existsSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { isMcpFile, isUsedFile } from "../../workspace/auto-run-files.ts";

const DECISIVE =
  /(?:^|\/)(?:node_modules|\.venv|\.mvn|gradlew|mvnw|gradle\/wrapper|package-lock\.json|npm-shrinkwrap\.json|pnpm-lock\.yaml|yarn\.lock|bun\.lockb?|deno\.lock|uv\.lock|poetry\.lock|pdm\.lock|Pipfile(?:\.lock)?|pyproject\.toml|Cargo\.lock|go\.(?:sum|mod)|Gemfile(?:\.lock)?|composer\.(?:lock|json)|packages\.lock\.json|mix\.lock|[\w.-]*require[\w.-]*\.(?:txt|in))(?:\/|$)/i;

/** The decisive files among the paths, by their own name and by the name behind links. */
export function decisiveFiles(paths: Iterable<string>): string[] {
  const all = [...paths].flatMap((path) => [path, behindLinks(path)]);
  return [...new Set(all)].filter((path) => DECISIVE.test(path) || isUsedFile(path) || isMcpFile(path));
}

/** Paths that a command may write: its words, and for a target directory, the names that copies get in it. */
export function writtenPaths(words: readonly string[], folder: string): string[] {
  const values = words.map((word) => word.replace(/^(?:--?[\w-]+=|-[a-zA-Z](?=[./~]))/, ""));
  const names = values.filter((word) => word !== "" && !word.startsWith("-"));
  const full = names.map((name) => resolve(folder, name));
  const folders = full.filter(isFolder);
  const copies = folders.flatMap((target) => full.map((from) => join(target, basename(from))));
  return [...full, ...copies];
}

/** Whether the run changed the path, a directory around it, or something below it. */
export function changedTest(changed: readonly string[]): (path: string) => boolean {
  const all = new Set(changed);
  return (path) => {
    if (changed.some((one) => one.startsWith(`${path}/`))) return true;
    for (const start of [path, behindLinks(path)])
      for (let at = start; dirname(at) !== at; at = dirname(at)) if (all.has(at)) return true;
    return false;
  };
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

function behindLinks(path: string): string {
  for (let at = path; dirname(at) !== at; at = dirname(at)) {
    try {
      if (existsSync(at)) return join(realpathSync(at), path.slice(at.length));
    } catch {}
  }
  return path;
}
