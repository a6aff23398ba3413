/** Compares two states of a workspace: the created, changed, deleted and renamed paths. */
import { isSameState, type MaybePathState } from "./path-state.ts";

/** One path whose state differs. */
export interface PathChange {
  path: string;
  before: MaybePathState;
  after: MaybePathState;
}

/** The paths by what happened to them. A renamed path is listed once. */
export interface DifferenceSummary {
  created: string[];
  changed: string[];
  deleted: string[];
  renamed: { from: string; to: string }[];
  modes: string[];
  links: string[];
  directories: string[];
}

/** `before` holds every path that may differ, with its earlier state. */
export function differenceOf(
  before: ReadonlyMap<string, MaybePathState>,
  after: (path: string) => MaybePathState,
): PathChange[] {
  const changes: PathChange[] = [];
  for (const [path, was] of before) {
    const is = after(path);
    if (!isSameState(was, is)) changes.push({ path, before: was, after: is });
  }
  return changes.sort((a, b) => (a.path < b.path ? -1 : 1));
}

export function summarizeDifference(changes: readonly PathChange[]): DifferenceSummary {
  const summary: DifferenceSummary = {
    created: [],
    changed: [],
    deleted: [],
    renamed: [],
    modes: [],
    links: [],
    directories: [],
  };
  const moved = renamesOf(changes);
  const targets = new Set(moved.values());
  for (const change of changes) {
    const { path } = change;
    const to = moved.get(path);
    if (to !== undefined) summary.renamed.push({ from: path, to });
    else if (!targets.has(path)) summary[kindOf(change)].push(path);
  }
  return summary;
}

function kindOf({ before, after }: PathChange): Exclude<keyof DifferenceSummary, "renamed"> {
  if (before?.kind === "link" || after?.kind === "link") return "links";
  if (before?.kind === "directory" || after?.kind === "directory")
    return before !== null && after !== null && before.kind === after.kind ? "modes" : "directories";
  if (before === null) return "created";
  if (after === null) return "deleted";
  const same = before.kind === "file" && after.kind === "file" && before.hash === after.hash;
  return same && before.hash !== null ? "modes" : "changed";
}

/** Deleted files whose inode and content are now at a created path. */
export function renamesOf(changes: readonly PathChange[]): Map<string, string> {
  const created = new Map<string, string>();
  for (const { path, before, after } of changes)
    if (before === null && after?.kind === "file") created.set(`${after.inode} ${after.hash}`, path);
  const moved = new Map<string, string>();
  for (const { path, before, after } of changes) {
    if (after !== null || before?.kind !== "file") continue;
    const key = `${before.inode} ${before.hash}`;
    const to = created.get(key);
    if (to === undefined) continue;
    created.delete(key);
    moved.set(path, to);
  }
  return moved;
}
