/** Which file imports which, read from source text; and where the arrows form a ring. */
import { dirname, posix } from "node:path";
import type { SourceFile } from "../files.ts";

export interface Import {
  /** As written: `./x.ts`, `node:fs`, `zod`. */
  readonly specifier: string;
  /** The repository path for a relative import, else undefined. */
  readonly target: string | undefined;
  readonly typeOnly: boolean;
  readonly line: number;
}

const STATIC = /^[ \t]*import\s+(type\s+)?(?:[^"'`;]*?\sfrom\s*)?["']([^"'\n]+)["']/gm;
const REEXPORT = /^[ \t]*export\s+(type\s+)?(?:\*(?:\s+as\s+\w+)?|\{[^}]*\})\s*from\s*["']([^"'\n]+)["']/gm;
const DYNAMIC = /(?<![\w$.])import\s*(\()\s*["']([^"'\n]+)["']/g;

export function importsOf(file: Pick<SourceFile, "path" | "code" | "withStrings">): Import[] {
  const found: Import[] = [];
  for (const pattern of [STATIC, REEXPORT, DYNAMIC]) {
    for (const match of file.withStrings.matchAll(pattern)) {
      const start = match.index + match[0].search(/\S/);
      // Inside a string or template the words are blanked in `code`.
      if (!/^(?:import|export)/.test(file.code.slice(start, start + 6))) continue;
      const specifier = match[2]!;
      found.push({
        specifier,
        target: specifier.startsWith(".") ? posix.join(dirname(file.path), specifier) : undefined,
        typeOnly: match[1]?.startsWith("type") ?? false,
        line: file.code.slice(0, start).split("\n").length,
      });
    }
  }
  return found;
}

/** Each ring once, as the list of its members in arrow order; empty when the graph has none. */
export function findCycles(graph: ReadonlyMap<string, Iterable<string>>): string[][] {
  const cycles: string[][] = [];
  const done = new Set<string>();
  const path: string[] = [];
  const visit = (node: string): void => {
    if (done.has(node)) return;
    const start = path.indexOf(node);
    if (start >= 0) {
      cycles.push(path.slice(start));
      return;
    }
    path.push(node);
    for (const next of graph.get(node) ?? []) visit(next);
    path.pop();
    done.add(node);
  };
  for (const node of graph.keys()) visit(node);
  return cycles;
}
