/** `~` and `~name` at the beginning of a path, as a shell reads them. */
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";

/** Where a command runs, and whose home it knows. */
export interface Place {
  cwd: string;
  home: string;
}

/** The path with the home folder in it; null where it cannot be told whose that is. Any other text stays as it is. */
export function withHome(text: string, home: string, cwd: string): string | null {
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
  // Some systems keep their users elsewhere; one's own folder mostly bears one's name.
  return found?.split(":")[5] || (user === basename(home) ? home : null);
}
