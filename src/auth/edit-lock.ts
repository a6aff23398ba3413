/**
 * A lock alongside a file, so that two processes do not edit it at once. It is a file that only one can
 * create; one whose holder died is taken over: its process is gone from this machine, or nothing changed while
 * this process watched it. An edit also checks, before it replaces the file, that it
 * still has the lock: a lock that was taken for dead too early costs a retry and never an edit.
 */
import { randomBytes } from "node:crypto";
import { open, readFile, rename, rm, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { fileError } from "../config/files.ts";
import type { Env } from "../kernel/env.ts";
import { conflict } from "../kernel/errors.ts";
import { SilenceWatch } from "../kernel/silence.ts";

const WAIT_MS = 10_000;
const RETRY_MS = 10;
/**
 * An edit takes milliseconds: a lock of another machine that was seen for so long has no living holder. On this machine
 * the process is looked for; where one of that number lives, it may be another, which only a longer silence shows.
 */
const SILENT_MS = { elsewhere: 8_000, here: 30_000 } as const;
const watch = new SilenceWatch();

export interface Held {
  /** Throws where the lock is no longer ours. */
  check(): Promise<void>;
}

export async function withEditLock<T>(file: string, env: Env, edit: (held: Held) => Promise<T>): Promise<T> {
  const path = `${file}.lock`;
  const token = `${process.pid}@${hostname()} ${randomBytes(8).toString("hex")}`;
  await take(path, token, env);
  const ours = async () => (await readFile(path, "utf8").catch(() => "")) === token;
  try {
    return await edit({
      check: async () => {
        if (!(await ours()))
          throw conflict("key_file_busy", "another edit of the key file is under way; try again");
      },
    });
  } finally {
    if (await ours()) await rm(path, { force: true });
  }
}

async function take(path: string, token: string, env: Env): Promise<void> {
  const until = env.elapsed() + WAIT_MS;
  for (;;) {
    if (await create(path, token)) return;
    if (await isDead(path, env)) {
      // Moved aside before it is deleted, so that of several who see it dead only one removes it.
      const aside = `${path}.${randomBytes(8).toString("hex")}`;
      await rename(path, aside).catch(() => undefined);
      await rm(aside, { force: true });
      continue;
    }
    if (env.elapsed() >= until)
      throw conflict("key_file_busy", "another edit of the key file is under way; try again");
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

async function isDead(path: string, env: Env): Promise<boolean> {
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
