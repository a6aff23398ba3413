/**
 * Finds whether git would discard changes in the work tree that the session did not make: `git restore` and
 * `git checkout` with files replace them by stored ones, which nothing keeps.
 */
import { lstatSync } from "node:fs";
import { join } from "node:path";
import { hexHash } from "../workspace/hash.ts";
import type { OwnEdits } from "../workspace/own-edits.ts";
import { readBytesOrNull } from "../workspace/read-text.ts";
import { runGit, workTreeTop } from "../workspace/safe-git.ts";
import { commandOf } from "./programs.ts";
import { DIFF_NAMES, isCommit } from "./trees.ts";

/** Files that are replaced, and whether by those of a commit or by those of the index. */
interface Replaced {
  files: readonly string[];
  by: "commit" | "index";
}

export function discardsForeignWork(texts: readonly string[], folder: string, edits: OwnEdits): boolean {
  const command = commandOf(texts) ?? "";
  const words = texts.slice(texts.indexOf(command) + 1);
  const replaced =
    command === "restore" ? byRestore(words) : command === "checkout" ? byCheckout(words, folder) : null;
  const top = workTreeTop(folder);
  if (replaced === null || replaced.files.length === 0 || top === null) return false;
  const base = replaced.by === "commit" ? ["HEAD"] : [];
  const changed = runGit(folder, ["diff", ...DIFF_NAMES, ...base, "--", ...replaced.files]);
  // If git cannot list the changes, a person may have made them.
  if (changed === null) return true;
  const names = changed.split("\0").filter((name) => name !== "");
  if (names.length === 0) return false;
  const stored = storedFiles(top, names, replaced.by);
  return names.some((name) => !isOwnChange(join(top, name), stored.get(name), edits));
}

/** Whether the file was as stored before the session's first edit, and is as the session left it. */
function isOwnChange(path: string, stored: string | undefined, edits: OwnEdits): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  // A missing file is brought back, so nothing is lost.
  if (found === undefined) return true;
  const own = edits.get(path);
  if (own === undefined || stored === undefined || own.before !== stored || !found.isFile()) return false;
  const now = readBytesOrNull(path);
  return now !== null && own.after === hexHash(now);
}

/** Git's names of the stored contents, by path from the top. Empty if git does not name them. */
function storedFiles(top: string, names: readonly string[], by: Replaced["by"]): Map<string, string> {
  const list =
    by === "commit"
      ? runGit(top, ["ls-tree", "-r", "-z", "HEAD", "--", ...names])
      : runGit(top, ["ls-files", "--stage", "-z", "--", ...names]);
  const stored = new Map<string, string>();
  for (const line of (list ?? "").split("\0")) {
    const [facts = "", name] = line.split("\t");
    const id = facts.split(" ").find((word) => /^[0-9a-f]{40,64}$/.test(word));
    // A file in conflict is listed several times.
    if (name !== undefined && id !== undefined) stored.set(name, stored.has(name) ? "several" : id);
  }
  return stored;
}

function byRestore(words: readonly string[]): Replaced | null {
  const files: string[] = [];
  let [staged, worktree, source] = [false, false, false];
  for (let at = 0; at < words.length; at++) {
    const word = words[at]!;
    if (word === "--") {
      files.push(...words.slice(at + 1));
      break;
    }
    if (/^--source(?:=|$)/.test(word) || /^-[a-zA-Z]*s/.test(word)) {
      source = true;
      if (word === "--source" || word.endsWith("s")) at++;
    } else if (!word.startsWith("-")) files.push(word);
    staged ||= word === "--staged" || /^-[a-rt-zA-Z]*S/.test(word);
    worktree ||= word === "--worktree" || /^-[a-rt-zA-Z]*W/.test(word);
  }
  if (staged && !worktree) return null;
  return { files, by: source || staged ? "commit" : "index" };
}

function byCheckout(words: readonly string[], folder: string): Replaced | null {
  const end = words.indexOf("--");
  const before = (end < 0 ? words : words.slice(0, end)).filter((word) => !word.startsWith("-"));
  if (end >= 0) return { files: words.slice(end + 1), by: before.length > 0 ? "commit" : "index" };
  // A new branch keeps the work tree.
  if (words.some((word) => /^-[bB]|^--orphan/.test(word))) return null;
  const [first, ...rest] = before;
  if (first === undefined) return null;
  if (!isCommit(first, folder)) return { files: before, by: "index" };
  // A switch refuses to overwrite changes.
  return rest.length === 0 ? null : { files: rest, by: "commit" };
}
