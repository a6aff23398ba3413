/**
 * Directories that `git worktree` fills with files of a commit: in the workspace, next to it, or temporary. Elsewhere the
 * files could be programs on the path, or start by themselves.
 */
import { basename, delimiter, dirname, join } from "node:path";
import { resolveLinks } from "../../workspace/resolve-links.ts";
import type { UnaskedTest } from "../../workspace/unasked-files.ts";
import { isOutside } from "./outside.ts";

const VALUED = /^(?:-b|-B|--reason)$/;
/** Names that something starts in such a directory. */
const SAMPLES = ["x", "x/x", "tasks.json", "settings.json", "config", "x.json"];

/** The path of the new or moved work tree. Null for other commands. */
export function workTreeTarget(texts: readonly string[]): string | null {
  const [command, what, ...rest] = texts;
  if (command !== "worktree" || (what !== "add" && what !== "move")) return null;
  const plain = rest.filter((text, at) => !text.startsWith("-") && !VALUED.test(rest[at - 1] ?? ""));
  return (what === "add" ? plain[0] : plain.at(-1)) ?? null;
}

/** `path`: full. `workspace`: the top of the workspace. */
export function isUsualWorkTree(path: string, workspace: string, runsUnasked: UnaskedTest): boolean {
  const real = resolveLinks(path);
  const isBeside = dirname(real) === dirname(workspace) && !/^(?:\..*|s?bin)$/.test(basename(real));
  if (isOutside(real, workspace) && !isBeside) return false;
  const programs = (process.env["PATH"] ?? "").split(delimiter);
  if (programs.some((folder) => `${folder}/`.startsWith(`${real}/`))) return false;
  return !SAMPLES.some((name) => runsUnasked(join(real, name), workspace));
}
