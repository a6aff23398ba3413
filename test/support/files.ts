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
