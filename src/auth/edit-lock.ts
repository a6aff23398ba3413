/**
 * A lock file that serializes edits by several processes. Only one process can create the file. A process takes over
 * the lock of a dead holder: one whose process is gone from this machine, or whose lock did not change while this
 * process watched it. An edit checks the lock again before it replaces the file, so a lock lost too early costs a
 * retry, never an edit.
 */
import { randomBytes } from "node:crypto";
import { open, readFile, rename, rm, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { fileError } from "../config/files.ts";
import type { RuntimeEnv } from "../kernel/env.ts";
import { conflictError } from "../kernel/errors.ts";
import { SilenceWatch } from "../kernel/silence-watch.ts";

const WAIT_MS = 10_000;
const RETRY_MS = 10;
/**
 * How long an unchanged lock counts as alive. An edit takes milliseconds, so a lock from another machine is dead after
 * the shorter time. On this machine, a dead process id shows it at once, but the system can reuse the id; then only the
 * longer time does.
 */
const SILENT_MS = { elsewhere: 8_000, here: 30_000 } as const;
const watch = new SilenceWatch();

export interface EditLockHandle {
  /** Throws if this process has lost the lock. */
  check(): Promise<void>;
}

export async function withEditLock<T>(
  file: string,
  env: RuntimeEnv,
  edit: (held: EditLockHandle) => Promise<T>,
): Promise<T> {
  const path = `${file}.lock`;
  const token = `${process.pid}@${hostname()} ${randomBytes(8).toString("hex")}`;
  await take(path, token, env);
  const ours = async () => (await readFile(path, "utf8").catch(() => "")) === token;
  try {
    return await edit({
      check: async () => {
        if (!(await ours()))
          throw conflictError("key_file_busy", "another edit of the key file is in progress; try again");
      },
    });
  } finally {
    if (await ours()) await rm(path, { force: true });
  }
}

async function take(path: string, token: string, env: RuntimeEnv): Promise<void> {
  const until = env.elapsed() + WAIT_MS;
  for (;;) {
    if (await create(path, token)) return;
    if (await isDead(path, env)) {
      // Renamed before it is deleted, so that only one of several waiting processes removes it.
      const aside = `${path}.${randomBytes(8).toString("hex")}`;
      await rename(path, aside).catch(() => undefined);
      await rm(aside, { force: true });
      continue;
    }
    if (env.elapsed() >= until)
      throw conflictError("key_file_busy", "another edit of the key file is in progress; try again");
    await env.sleep(RETRY_MS * (1 + env.random()));
  }
}

async function create(path: string, token: string): Promise<boolean> {
  try {
    const handle = await open(path, "wx", 0o600);
    try {
      await handle.writeFile(token);
    } finally {
      await handle.close();
    }
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw fileError(path, error);
  }
}

async function isDead(path: string, env: RuntimeEnv): Promise<boolean> {
  const [text, stats] = await Promise.all([
    readFile(path, "utf8").catch(() => ""),
    stat(path).catch(() => undefined),
  ]);
  if (stats === undefined) return false;
  const mark = `${stats.ino} ${stats.mtimeMs} ${text}`;
  const silent_ms = watch.silentFor(path, mark, env.elapsed());
  const match = /^(\d+)@(\S+) /.exec(text);
  if (match === null || match[2] !== hostname()) return silent_ms >= SILENT_MS.elsewhere;
  return !isAlive(Number(match[1])) || silent_ms >= SILENT_MS.here;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
