/** The repository's own files, for the tests that read source instead of running it. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { readSource, type SourceText } from "./source.ts";

export const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

export interface SourceFile extends SourceText {
  /** Relative to the repository, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

/** All files under a folder that end in the suffix, sorted; an absent folder has none. */
export function filesUnder(folder: string, suffix: string): string[] {
  let names: string[];
  try {
    names = readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
  return names
    .filter((name) => name.endsWith(suffix) && !name.includes("node_modules"))
    .map((name) => `${folder}/${name.replaceAll("\\", "/")}`)
    .sort();
}

export function sourceFile(path: string): SourceFile {
  const text = readFileSync(join(ROOT, path), "utf8");
  return { path, text, ...readSource(text) };
}

const TEXT_FILE =
  /(?:\.(?:ts|mts|mjs|js|cjs|json|md|ya?ml|html|css|py|txt|sh|toml|svg|service)|\/run|\/Dockerfile|\/LICENSE)$/;
const NOT_OURS = /(?:^|\/)(?:node_modules|dist|site|coverage|\.git|\.demo|__pycache__)(?:\/|$)/;

/** Every text in the repository that is ours, the lockfile included. */
export function allTexts(): SourceFile[] {
  const walk = (folder: string): string[] =>
    readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (NOT_OURS.test(path)) return [];
      if (entry.isDirectory()) return walk(path);
      return entry.isFile() && TEXT_FILE.test(path) ? [path] : [];
    });
  return walk("").map((path) => {
    const text = readFileSync(join(ROOT, path), "utf8");
    return { path, text, code: text, withStrings: text, patterns: [] };
  });
}
