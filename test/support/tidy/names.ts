/** Exports that share a name: whoever reads it somewhere in the middle cannot tell which of them is meant. */
import type { SourceFile } from "../files.ts";

const EXPORTED =
  /^export\s+(?:abstract\s+|async\s+)*(?:type|interface|class|function\s*\*?|const|let)\s+([A-Za-z_$][\w$]*)/gm;
/** Each adapter is an entry of the package, and a program imports one: they share their verbs. */
const SHARED: Readonly<Record<string, RegExp>> = {
  govern: /^src\/adapters\//,
  governedTool: /^src\/adapters\//,
  undo: /^src\/adapters\//,
};

export function nameProblems(shipped: readonly SourceFile[]): string[] {
  const owners = new Map<string, Set<string>>();
  for (const { path, code } of shipped)
    for (const [, name] of code.matchAll(EXPORTED))
      if (!SHARED[name!]?.test(path)) owners.set(name!, (owners.get(name!) ?? new Set()).add(path));
  return [...owners]
    .filter(([, paths]) => paths.size > 1)
    .map(
      ([name, paths]) => `${name} is exported by ${[...paths].join(" and ")}: one thing, one name, one file`,
    );
}
