/**
 * The key ring in force, kept in step with its file. The file is looked at every two seconds and when
 * a caller asks; one that does not parse, or is gone, changes nothing: the old keys stay in force.
 */
import { constants, type Stats } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { decodeText, fileError, statStamp, unreadable } from "../config/files.ts";
import type { Env } from "../kernel/env.ts";
import { messageOf, SvcError } from "../kernel/errors.ts";
import { LIMITS } from "../kernel/limits.ts";
import { parseKeysGently } from "./key-list.ts";
import { KeyRing } from "./keys.ts";

/** A file changed this recently may change again without its time moving on, so it is read once more. */
const SETTLED_MS = 2_000;

interface KeyFileParts {
  readonly env: Env;
  readonly warn?: (message: string, fields?: Record<string, unknown>) => void;
  /** Told after new keys came into force. */
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
  private told = "";
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<unknown> = Promise.resolve();
  private waiting: Promise<number> | undefined;

  private constructor(path: string, parts: KeyFileParts) {
    this.path = path;
    this.parts = parts;
  }

  /** Throws where the file is missing or does not parse: a server does not start without its keys. */
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
   * Reads the file now; throws, and keeps the old keys, where it does not load. Answers how many there are.
   * Of a storm of calls those that still wait share one reading, which sees the newest text.
   */
  reload(): Promise<number> {
    this.waiting ??= this.inTurn(async () => {
      this.waiting = undefined;
      await this.take(await this.read());
      return this.current.size;
    });
    return this.waiting;
  }

  /** What the timer does: reads the file if it looks changed, and never throws. */
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
    this.timer ??= setInterval(() => void this.poll(), LIMITS.key_reload_ms).unref();
  }

  close(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }

  /** One reading at a time, so that an older text can never replace a newer one. */
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
      const problem = unreadable(stats);
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
      const { entries } = await parseKeysGently(text, this.path);
      this.current = new KeyRing(entries);
      this.text = text;
      this.parts.changed?.(this.current);
    }
    this.told = "";
    this.remember(stats);
  }

  /** The times are the disk's, so its clock and ours are compared only for what is recent. */
  private remember(stats: Stats): void {
    const settled = Math.abs(this.parts.env.now() - stats.mtimeMs) > SETTLED_MS;
    this.seen = settled ? statStamp(stats) : "";
  }

  private tellOnce(problem: string): void {
    if (problem === this.told) return;
    this.told = problem;
    this.parts.warn?.("the key file does not load; the old keys stay in force", {
      problem: problem.split("\n")[0],
    });
  }
}

/** Why the file's mode is a danger, for the log and for svc doctor. */
export function modeWarning(mode: number): string | undefined {
  if ((mode & 0o022) !== 0)
    return "the key file can be written by others, who could add a key of their own; use mode 0600";
  if ((mode & 0o004) !== 0) return "the key file can be read by everybody on this machine; use mode 0600";
  return undefined;
}
