/**
 * Cleans up after a process that can no longer do it. A shell waits on a pipe from this process; the
 * pipe closes when this process ends for any reason, SIGKILL included, and then the shell ends
 * the PostgreSQL whose data lie in the directory, if any, and removes the directory.
 */
import { spawn } from "node:child_process";

const SCRIPT = `
  read -r word
  [ "$word" = done ] && exit 0
  pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
  if [ -n "$pid" ]; then kill -CONT "$pid"; kill -QUIT "$pid"; sleep 1; kill -KILL "$pid"; fi 2>/dev/null
  rm -rf "$1"`;

/** Answers a function that calls the watchdog off, for when the folder was removed in good order. */
export function watchOver(folder: string): () => void {
  const child = spawn("sh", ["-c", SCRIPT, "sh", folder], {
    // A separate group, or Ctrl-C would end it together with us.
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  const { stdin } = child;
  // The shell and the pipe must not keep this process alive.
  child.unref();
  (stdin as unknown as { unref?(): void }).unref?.();
  stdin.on("error", () => {});
  return () => {
    if (child.exitCode === null && !stdin.writableEnded) stdin.end("done\n");
  };
}
