/** Resolves `~` and `~name` at the start of a path, as shells do. */
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { OwnEdits } from "./own-edits.ts";

/** Directories of a command, and the circumstances under which it runs. */
export interface CommandLocation {
  cwd: string;
  home: string;
  /** Whether the run changed this file earlier. Absent if nothing was recorded. */
  changed?: (path: string) => boolean;
  /** Files that the run edited. Absent if nothing was recorded. */
  edits?: OwnEdits;
  /** Directory in which the session began. Absent if it is `cwd`. */
  began?: string;
  /** A later call may type into the command's terminal. */
  terminal?: boolean;
}

/** Replaces the home prefix. Null if the user is unknown. Any other text stays unchanged. */
export function expandHome(text: string, home: string, cwd: string): string | null {
  const [all, name] = /^~([+-]|[A-Za-z_][\w.-]*)?(?=\/|$)/.exec(text) ?? [];
  if (all === undefined) return text;
  const folder = name === undefined ? home : name === "+" ? cwd : homeOf(name, home);
  return folder === null ? null : join(folder, text.slice(all.length));
}

function homeOf(user: string, home: string): string | null {
  let users = "";
  try {
    users = readFileSync("/etc/passwd", "utf8");
  } catch {}
  const found = users.split("\n").find((line) => line.startsWith(`${user}:`));
  // Some systems store users elsewhere. The current user's directory usually has the user's name.
  return found?.split(":")[5] || (user === basename(home) ? home : null);
}
