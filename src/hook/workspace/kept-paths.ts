/** Compares a path of a call with paths that are kept: by its parts as the least strict file system sees them, and by inode. */
import { type Stats, statSync } from "node:fs";
import { LruMap } from "../../kernel/lru.ts";
import { foldPath } from "./auto-run-files.ts";
import { GLOB_CHARACTER, hasFileBelow, shellGlobMatches } from "./globs.ts";
import { createLinkResolver } from "./resolve-links.ts";

export interface KeptPath {
  name: string;
  parts: readonly string[];
}

/** The paths under their own names and behind links. */
export function keptPaths(names: readonly string[]): KeptPath[] {
  const resolve = createLinkResolver();
  const all = new Set(names);
  for (const name of names) all.add(resolve(name));
  return [...all].map(keptPath);
}

/** Every call keeps nearly the same paths. */
const known = new LruMap<string, KeptPath>(2_048);

function keptPath(name: string): KeptPath {
  const kept = known.get(name) ?? { name, parts: pathSegments(name) };
  known.set(name, kept);
  return kept;
}

export const pathSegments = (path: string): string[] => foldPath(path).split(/[\\/]/).filter(Boolean);

/** Where a path is in relation to a kept one. Wildcards match anything that they could mean. */
export function relationTo(path: readonly string[], kept: readonly string[]): "inside" | "above" | null {
  const both = Math.min(path.length, kept.length);
  for (let i = 0; i < both; i++) if (!alike(path[i]!, kept[i]!)) return null;
  return path.length >= kept.length ? "inside" : "above";
}

function alike(a: string, b: string): boolean {
  if (a === b) return true;
  if (!GLOB_CHARACTER.test(a)) return GLOB_CHARACTER.test(b) && shellGlobMatches(b, a);
  return GLOB_CHARACTER.test(b) || shellGlobMatches(a, b);
}

/** The kept path that this file is a hard link to, or to a file in it. */
export function hardLinkTo(path: string, kept: readonly KeptPath[]): KeptPath | undefined {
  const found = statOrNull(path);
  if (!found?.isFile() || found.nlink < 2) return undefined;
  return kept.find(({ name }) => {
    const one = statOrNull(name);
    return one !== null && isSameOrHolds(name, one, found);
  });
}

function isSameOrHolds(name: string, one: Stats, found: Stats): boolean {
  if (!one.isDirectory()) return one.ino === found.ino && one.dev === found.dev;
  return hasFileBelow(name, (_, path) => {
    const inner = statOrNull(path);
    return inner?.ino === found.ino && inner.dev === found.dev;
  });
}

export function statOrNull(path: string): Stats | null {
  try {
    return statSync(path, { throwIfNoEntry: false }) ?? null;
  } catch {
    return null;
  }
}
