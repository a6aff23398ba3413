/** Which files of a workspace a build writes: its output directories, and what git ignores. */
import { runGit } from "../workspace/safe-git.ts";
import { isBuildOutput, isGitIndex } from "./record-scope.ts";

const MAX_ASKED = 200;

/** A test for these paths, which are relative to the workspace. Git's own files change with what a build stages. */
export function outsideBuildOutput(root: string, paths: readonly string[]): (path: string) => boolean {
  const others = paths.filter((path) => !isBuildOutput(path));
  const ignored = ignoredOf(root, others);
  return (path) => !isBuildOutput(path) && !ignored.has(path) && !isGitIndex(path);
}

function ignoredOf(root: string, paths: readonly string[]): Set<string> {
  const ignored = new Set<string>();
  for (let at = 0; at < paths.length; at += MAX_ASKED) {
    const some = paths.slice(at, at + MAX_ASKED).filter((path) => !path.startsWith("//"));
    const out = runGit(root, ["check-ignore", "-z", "--no-index", "--", ...some]);
    for (const path of (out ?? "").split("\0")) if (path !== "") ignored.add(path);
  }
  return ignored;
}
