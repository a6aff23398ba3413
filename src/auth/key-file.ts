/**
 * The active key ring, kept in sync with its file. This process checks the file every two seconds and on request. If
 * the file is missing or does not parse, the old keys stay active.
 */
import { constants, type Stats } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { decodeText, fileError, statStamp, unreadableReason } from "../config/files.ts";
import type { RuntimeEnv } from "../kernel/env.ts";
import { messageOf, SvcError } from "../kernel/errors.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import { parseKeysInSlices } from "./key-list.ts";
import { KeyRing } from "./keys.ts";

/** A file changed this recently can change again under the same timestamp, so the process reads it once more. */
const SETTLED_MS = 2_000;

interface KeyFileParts {
  readonly env: RuntimeEnv;
  readonly warn?: (message: string, fields?: Record<string, unknown>) => void;
  /** Called after new keys become active. */
  readonly changed?: (ring: KeyRing) => void;
}

interface Reading {
  readonly text: string;
  readonly stats: Stats;
}

export class KeyFile {
  readonly path: string;
  private readonly parts: KeyFileParts;
  private current: KeyRing = new KeyRing([]);
  private text = "";
  private seen = "";
  private reported = "";
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<unknown> = Promise.resolve();
  private waiting: Promise<number> | undefined;

  private constructor(path: string, parts: KeyFileParts) {
    this.path = path;
    this.parts = parts;
  }

  /** Throws if the file is missing or does not parse, because a server does not start without its keys. */
  static async open(path: string, parts: KeyFileParts): Promise<KeyFile> {
    const file = new KeyFile(path, parts);
    await file.reload();
    const mode = await stat(path).then(
      ({ mode }) => mode,
      () => 0,
    );
    const warning = modeWarning(mode);
    if (warning !== undefined) parts.warn?.(warning, { file: path });
    return file;
  }

  get ring(): KeyRing {
    return this.current;
  }

  /**
   * Reads the file now and returns the number of keys. If the file does not load, throws and keeps the old keys.
   * Concurrent waiting calls share one read, which sees the newest content.
   */
  reload(): Promise<number> {
    this.waiting ??= this.inTurn(async () => {
      this.waiting = undefined;
      await this.take(await this.read());
      return this.current.size;
    });
    return this.waiting;
  }

  /** Called by the timer: reads the file if it looks changed, and never throws. */
  poll(): Promise<void> {
    return this.inTurn(async () => {
      try {
        const found = statStamp(await stat(this.path).catch(() => undefined));
        if (found === this.seen) return;
        await this.take(await this.read());
      } catch (error) {
        this.tellOnce(messageOf(error));
      }
    });
  }

  watch(): void {
    this.timer ??= setInterval(() => void this.poll(), SERVICE_LIMITS.key_reload_ms).unref();
  }

  close(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  /** Runs one read at a time, so that an older text never replaces a newer one. */
  private inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.running.then(work);
    this.running = result.catch(() => undefined);
    return result;
  }

  private async read(): Promise<Reading> {
    let handle: FileHandle | undefined;
    try {
      handle = await open(this.path, constants.O_RDONLY | constants.O_NONBLOCK);
      const stats = await handle.stat();
      const problem = unreadableReason(stats);
      if (problem !== undefined) throw new SvcError("invalid", `${this.path}: ${problem}`);
      return { text: decodeText(this.path, await handle.readFile()), stats };
    } catch (error) {
      throw fileError(this.path, error);
    } finally {
      await handle?.close();
    }
  }

  private async take({ text, stats }: Reading): Promise<void> {
    if (text !== this.text) {
      const { entries } = await parseKeysInSlices(text, this.path);
      this.current = new KeyRing(entries);
      this.text = text;
      this.parts.changed?.(this.current);
    }
    this.reported = "";
    this.remember(stats);
  }

  /** The file system sets the timestamps, so only a recent one is compared with this process's clock. */
  private remember(stats: Stats): void {
    const settled = Math.abs(this.parts.env.now() - stats.mtimeMs) > SETTLED_MS;
    this.seen = settled ? statStamp(stats) : "";
  }

  private tellOnce(problem: string): void {
    if (problem === this.reported) return;
    this.reported = problem;
    this.parts.warn?.("the key file does not load; the old keys stay active", {
      problem: problem.split("\n")[0],
    });
  }
}

/** Returns a warning about a dangerous file mode, for the log and for svc doctor. */
export function modeWarning(mode: number): string | undefined {
  if ((mode & 0o022) !== 0)
    return "the key file can be written by others, who could add their own key; use mode 0600";
  if ((mode & 0o004) !== 0) return "the key file can be read by everybody on this machine; use mode 0600";
  return undefined;
}
