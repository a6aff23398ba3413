/** Paths that git takes from its own files, read without starting git. */
import { lstatSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { GIT_FILES } from "./auto-run-files.ts";
import { readTextOrNull } from "./read-text.ts";

const GIT = ".git";

interface ConfiguredPlaces {
  /** Directory that relative paths may also start from. */
  base: string;
  home?: string;
}

/** Values of a configuration that are paths: hook directories and included files. */
export function configuredPaths(config: string, { base, home }: ConfiguredPlaces): string[] {
  const text = readTextOrNull(config);
  if (text === null) return [];
  const values = [
    ...text.matchAll(/^[ \t]*(?:hookspath|path|attributesfile|excludesfile)[ \t]*=[ \t]*"?([^"\n#;]+)/gim),
  ];
  return values.flatMap(([, value]) => {
    const path = value!.trim();
    if (home !== undefined && path.startsWith("~/")) return [join(home, path.slice(2))];
    return [resolve(base, path), resolve(dirname(config), path)];
  });
}

/** Every path that the configuration of a work tree names, at every level. */
export function gitNamedPaths(top: string, home: string): string[] {
  const own = [join(top, GIT), ...linkedRepositories(top)];
  const files = own.flatMap((folder) => [join(folder, "config"), join(folder, "config.worktree")]);
  const all = [...files, ...GIT_FILES.map((name) => join(home, name)), "/etc/gitconfig"];
  return [...new Set(all.flatMap((file) => configuredPaths(file, { base: top, home })))];
}

/** Directories of a linked work tree or a submodule, which `.git` names: its own, and the shared one. */
export function linkedRepositories(workspace: string): string[] {
  const file = join(workspace, GIT);
  if (lstatSync(file, { throwIfNoEntry: false })?.isFile() !== true) return [];
  const named = /^gitdir: (.+)$/m.exec(readTextOrNull(file) ?? "")?.[1]?.trim();
  if (named === undefined) return [];
  const own = resolve(workspace, named);
  const common = readTextOrNull(join(own, "commondir"));
  return common === null ? [own] : [own, resolve(own, common.trim())];
}
