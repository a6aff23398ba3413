/**
 * Kills the children of a dead process. A small shell reads the running process groups from a pipe. When this process
 * dies, even by SIGKILL, the pipe closes and the shell kills the groups. So a rollback that another process takes over
 * never runs concurrently with an orphaned undo.
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

/** Guards a process group. The returned function ends the guard. Does nothing on systems without a shell. */
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
    // In its own process group: Ctrl-C on the terminal must not end the guard before the guarded children.
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
  (child.stdin as { unref?(): void }).unref?.();
  return child;
}

/** Ends the guard shell when no child is left. The next child starts a new one. */
function dismiss(): void {
  guard?.stdin?.end();
  guard = null;
}
