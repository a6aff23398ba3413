/**
 * Ends the children of a process that can no longer do it itself. A small shell reads the groups that are
 * running from a pipe; when the pipe closes because this process is gone, even by SIGKILL, it ends them,
 * so that a rollback taken over later never runs beside the undo that was left behind.
 */
import { type ChildProcess, spawn } from "node:child_process";

const SCRIPT = `
  trap '' INT TERM HUP
  groups=" "
  while read -r word group; do
    case "$word" in
      add) groups="$groups$group " ;;
      del) groups="\${groups%% $group *} \${groups#* $group }" ;;
    esac
  done
  for group in $groups; do kill -KILL "-$group"; done 2>/dev/null`;

let guard: ChildProcess | null = null;
let watched = 0;

/** Answers a function that ends the watch over the group. Where there is no shell, there is no guard. */
export function watchGroup(group: number): () => void {
  tell(`add ${group}`);
  watched++;
  let over = false;
  return () => {
    if (over) return;
    over = true;
    watched--;
    tell(`del ${group}`);
    if (watched === 0) dismiss();
  };
}

function tell(line: string): void {
  guard ??= start();
  if (guard.stdin?.writable) guard.stdin.write(`${line}\n`);
}

function start(): ChildProcess {
  const child = spawn("/bin/sh", ["-c", SCRIPT], {
    // A group of its own: Ctrl-C on the terminal must not end the guard before its wards.
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
    env: {},
  });
  child.on("error", () => {});
  child.stdin.on("error", () => {});
  child.once("exit", () => {
    if (guard === child) guard = null;
  });
  child.unref();
  (child.stdin as unknown as { unref?(): void }).unref?.();
  return child;
}

/** With no child left to watch, the guard goes home; the next child calls a new one. */
function dismiss(): void {
  guard?.stdin?.end();
  guard = null;
}
