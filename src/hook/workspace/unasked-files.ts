/**
 * Finds the paths whose files something runs automatically: by their name, because git's configuration names them, as this
 * program's own, and as another name of such a file.
 */
import { readdirSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { namesOfInode } from "../record/other-names.ts";
import { inodeNameOf } from "../record/path-state.ts";
import { foldPath, GIT_FILES, isAutoRunFile, MCP_FILES } from "./auto-run-files.ts";
import { expandHome } from "./expand-home.ts";
import { gitNamedPaths } from "./git-paths.ts";
import { expandShellBraces, filesMatching, GLOB_CHARACTER } from "./globs.ts";
import { hardLinkTo, type KeptPath, keptPaths, pathSegments, relationTo, statOrNull } from "./kept-paths.ts";
import { ownPrograms } from "./own-programs.ts";
import { resolveLinks } from "./resolve-links.ts";
import { workTreeTop } from "./safe-git.ts";

const IN_WORK_TREE = [...MCP_FILES, ".git/hooks", ".git/config", ".git/config.worktree"];

/** `reach`: the call affects everything below the path. */
export type UnaskedTest = (text: string, cwd: string, reach?: boolean) => boolean;

/** Reads each path and directory once. */
export function createUnaskedTest(home: string): UnaskedTest {
  const places = new Map<string, KeptPath[]>();
  const keptIn = (cwd: string): KeptPath[] => {
    const known = places.get(cwd) ?? keptAround(cwd, home);
    places.set(cwd, known);
    return known;
  };
  const judged = new Map<string, boolean>();
  return (text, cwd, reach = false) => {
    const key = `${reach} ${cwd}\0${text}`;
    const known = judged.get(key);
    if (known !== undefined) return known;
    const isUnasked = pathsMeant(text, home, cwd).some(
      (path) =>
        isAutoRunFile(foldPath(path.replaceAll("\\", "/"))) ||
        isOfGit(path, reach) ||
        isKept(path, keptIn(cwd), reach) ||
        isOtherName(path, { cwd, home, kept: keptIn(cwd) }),
    );
    judged.set(key, isUnasked);
    return isUnasked;
  };
}

function keptAround(cwd: string, home: string): KeptPath[] {
  const top = workTreeTop(cwd) ?? cwd;
  const tops = [...new Set([top, cwd])];
  return keptPaths([
    ...tops.flatMap((folder) => IN_WORK_TREE.map((name) => join(folder, name))),
    ...[...GIT_FILES, ...MCP_FILES].map((name) => join(home, name)),
    ...gitNamedPaths(top, home),
    ...ownPrograms(tops),
  ]);
}

/** Every path that a client or a shell may take the text for. In quotes, `~` and wildcards are ordinary characters. */
function pathsMeant(text: string, home: string, cwd: string): string[] {
  if (text.includes("\0")) return [];
  const words = GLOB_CHARACTER.test(text) ? [text, ...expandShellBraces(text)] : [text];
  const full = words.flatMap((word) => [
    resolve(cwd, expandHome(word, home, cwd) ?? word),
    resolve(cwd, word),
  ]);
  const files = full.flatMap((path) => (GLOB_CHARACTER.test(path) ? (filesMatching(path, cwd) ?? []) : []));
  return [...new Set([...full, ...files].flatMap((path) => [path, resolveLinks(path)]))];
}

/** A `.git` that is a file, or does not exist yet, determines the location of git's configuration. A directory holds it. */
const isOfGit = (path: string, reach: boolean): boolean =>
  foldPath(basename(path)) === ".git" && (reach || statOrNull(path)?.isDirectory() !== true);

function isKept(path: string, kept: readonly KeptPath[], reach: boolean): boolean {
  const parts = pathSegments(path);
  return kept.some((one) => {
    const how = relationTo(parts, one.parts);
    return how === "inside" || (reach && how === "above");
  });
}

interface Surroundings {
  cwd: string;
  home: string;
  kept: readonly KeptPath[];
}

/** Whether a hard link makes the file run automatically under another name. */
function isOtherName(path: string, { cwd, home, kept }: Surroundings): boolean {
  const found = statOrNull(path);
  if (!found?.isFile() || found.nlink < 2) return false;
  const inode = inodeNameOf(found);
  const names = namesOfInode(workTreeTop(cwd) ?? cwd, inode, found.nlink);
  if (names.some((name) => isAutoRunFile(foldPath(name)))) return true;
  return hardLinkTo(path, [...kept, ...keptPaths(autoRunIn(home))]) !== undefined;
}

function autoRunIn(home: string): string[] {
  try {
    return readdirSync(home)
      .map((name) => join(home, name))
      .filter((path) => isAutoRunFile(foldPath(path)));
  } catch {
    return [];
  }
}
