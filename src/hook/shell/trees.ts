/**
 * What git would do to the files of the work tree, found by comparing trees before it runs: a switch, a merge or a pick
 * can replace the settings of the hook, and a folder can be a repository that the agent made.
 */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { runGit, workTreeTop } from "../workspace/safe-git.ts";
import { commandOf } from "./programs.ts";

/** They bring the files of another commit into the work tree. */
const BRINGS = /^(?:checkout|switch|merge|rebase|cherry-pick|revert|restore)$/;
/** The files that are meant follow the commit. */
const TAKES_FILES = /^(?:checkout|restore)$/;
const PICKS = /^(?:cherry-pick|revert)$/;

/**
 * Whether git treats the directory, or a parent, as a repository without a `.git`: it searches for these names, and
 * obeys the `config` next to them.
 */
export function isBareRepository(folder: string): boolean {
  for (let at = folder; ; at = dirname(at)) {
    if (/\/\.git(?:\/|$)/.test(at) || existsSync(join(at, ".git"))) return false;
    if (["HEAD", "objects", "refs"].every((name) => existsSync(join(at, name)))) return true;
    if (dirname(at) === at) return false;
  }
}

/** Full paths of the files that may change; null if git does not name them. */
export function rewrittenBy(texts: readonly string[], folder: string): string[] | null {
  const command = commandOf(texts) ?? "";
  if (command === "stash") return stashed(texts.slice(texts.indexOf(command) + 1), folder);
  if (!BRINGS.test(command)) return [];
  const words = texts.slice(texts.indexOf(command) + 1);
  const top = workTreeTop(folder);
  if (top === null) return [];
  const found: string[] = [];
  for (const commits of candidates(words, command)) {
    const names = changed(commits, filesBehind(words, command), { command, folder });
    if (names !== null) found.push(...names.map((name) => join(top, name)));
    else if (isCommit(commits, folder)) return null;
  }
  return found;
}

/** Files that a stash removes from the work tree, or brings back into it. */
function stashed(words: readonly string[], folder: string): string[] | null {
  const top = workTreeTop(folder);
  if (top === null) return [];
  const [verb = "push", ...rest] = words;
  const lists: (string | null)[] = [];
  if (/^(?:pop|apply|branch)$/.test(verb)) {
    const named = rest.find((word) => !word.startsWith("-")) ?? "0";
    const stash = /^\d+$/.test(named) ? `stash@{${named}}` : named;
    if (!isCommit(stash, folder)) return [];
    lists.push(runGit(folder, ["diff", ...DIFF_NAMES, `${stash}^1`, stash, "--"]));
    // The third parent has the untracked files.
    const parents =
      runGit(folder, ["rev-list", "--parents", "-n", "1", stash, "--"])?.trim().split(" ") ?? null;
    const untracked = parents === null ? null : parents[3];
    if (untracked === null) lists.push(null);
    else if (untracked !== undefined)
      lists.push(runGit(folder, ["ls-tree", "-r", "-z", "--name-only", "--full-tree", untracked]));
  } else if (/^(?:push|save|-.*)$/.test(verb)) {
    const letters = words.filter((word) => /^-[a-zA-Z]+$/.test(word)).join("");
    const all = letters.includes("a") || words.includes("--all");
    const untracked = all || letters.includes("u") || words.includes("--include-untracked");
    lists.push(runGit(folder, ["diff", ...DIFF_NAMES, "HEAD", "--"]));
    const ignored = all ? [] : ["--exclude-standard"];
    if (untracked) lists.push(runGit(top, ["ls-files", "-z", "--others", "--full-name", ...ignored, "--"]));
  }
  if (lists.includes(null)) return null;
  const names = lists.flatMap((list) => list!.split("\0")).filter((name) => name !== "");
  return names.map((name) => join(top, name));
}

/** Lists names from the top of the work tree, and starts no program. */
export const DIFF_NAMES = ["-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv"];

/** The words that can stand for commits, in an option or alone. */
function candidates(words: readonly string[], command: string): string[] {
  const end = words.indexOf("--");
  const before = end < 0 ? words : words.slice(0, end);
  const found = before.flatMap((word) => {
    if (word === "-") return ["@{-1}"];
    if (word.startsWith("--")) return word.includes("=") ? [word.slice(word.indexOf("=") + 1)] : [];
    return word.startsWith("-") ? [word.slice(2)] : [word];
  });
  const named = found.filter((word) => word !== "" && !word.startsWith("-"));
  // Without a commit they take the upstream branch.
  return named.length === 0 && /^(?:merge|rebase)$/.test(command) ? ["@{upstream}"] : named;
}

export const isCommit = (word: string, folder: string): boolean =>
  word
    .split(/\.{2,3}/)
    .every(
      (one) => runGit(folder, ["rev-parse", "--verify", "--quiet", `${one || "HEAD"}^{commit}`]) !== null,
    );

function filesBehind(words: readonly string[], command: string): string[] {
  const end = words.indexOf("--");
  return TAKES_FILES.test(command) && end >= 0 ? words.slice(end + 1) : [];
}

interface Where {
  command: string;
  folder: string;
}

/** Names from the top of the work tree, of all files in which it differs from the commits. */
function changed(commits: string, files: readonly string[], { command, folder }: Where): string[] | null {
  const range = commits.includes("..");
  const picked = PICKS.test(command);
  const what =
    range || picked
      ? ["log", "-m", "-z", "--format=", "--name-only", "--no-renames", ...(range ? [] : ["-1"]), commits]
      : ["diff", ...DIFF_NAMES, "HEAD", commits];
  const names = runGit(folder, [...what, "--", ...files]);
  return names === null ? null : names.split(/[\0\n]/).filter((name) => name !== "");
}
