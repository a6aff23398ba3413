/** Exported types that share a name: whoever reads it somewhere in the middle cannot tell which of them is meant. */
import type { SourceFile } from "../files.ts";

const EXPORTED = /^export\s+(?:abstract\s+)?(?:type|interface|class)\s+([A-Za-z_$][\w$]*)/gm;

export function nameProblems(shipped: readonly SourceFile[]): string[] {
  const owners = new Map<string, string[]>();
  for (const { path, code } of shipped)
    for (const [, name] of code.matchAll(EXPORTED)) owners.set(name!, [...(owners.get(name!) ?? []), path]);
  return [...owners]
    .filter(([, paths]) => paths.length > 1)
    .map(([name, paths]) => `${name} is exported by ${paths.join(" and ")}: one thing, one name, one file`);
}
