/**
 * Values that are exported and that no other file names: what only its own file needs is not offered to others. Types may
 * be: they travel inside the types that the compiler infers elsewhere.
 */
import type { SourceFile } from "../files.ts";

const EXPORT = /^export\s+(?:async\s+)?(?:const|function\*?|class)\s+([A-Za-z_$][\w$]*)/gm;
const WORD = /[A-Za-z_$][\w$]*/g;
/** The package's own surface: the names that its users import. */
const PUBLIC = /^src\/(?:index\.ts|library\/|adapters\/)/;

export function exportProblems(shipped: readonly SourceFile[], all: readonly SourceFile[]): string[] {
  const files = new Map<string, number>();
  for (const { code } of all)
    for (const word of new Set(code.match(WORD))) files.set(word, (files.get(word) ?? 0) + 1);
  return shipped
    .filter(({ path }) => !PUBLIC.test(path))
    .flatMap(({ path, code }) =>
      [...code.matchAll(EXPORT)]
        .map(([, name]) => name!)
        .filter((name) => files.get(name) === 1)
        .map((name) => `${path} exports ${name}, which no other file names: take the export away`),
    );
}
