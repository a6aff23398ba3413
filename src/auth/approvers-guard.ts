/**
 * Guards calls with an approvers file: reads it again when it changes, and lets each approval be used once. Used ids are
 * files of a directory, so that processes and restarts share them.
 */
import type { Stats } from "node:fs";
import { mkdir, open, readdir, readFile, realpath, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileError, readTextFile, statStamp } from "../config/files.ts";
import type { RuntimeEnv } from "../kernel/env.ts";
import { messageOf, SvcError } from "../kernel/errors.ts";
import { sha256Hex } from "../kernel/hash.ts";
import {
  type ApprovalUse,
  type ApproversDoc,
  type CallToMake,
  judgeSignedCall,
  parseApprovers,
  requirementsFor,
} from "./approvers.ts";

interface GuardOptions {
  /** Path of the approvers file. */
  file: string;
  /** Directory of the used ids. */
  used: string;
  env: Pick<RuntimeEnv, "now">;
  warn(message: string, fields?: Record<string, unknown>): void;
}

const SWEEP_MS = 3_600_000;
/** Used ids stay longer than the approval, because clocks differ. */
const KEEP_MS = 120_000;
/** In such a directory, only its owner can replace a file. */
const STICKY = 0o1000;

export class ApproversGuard {
  private readonly options: GuardOptions;
  private doc: ApproversDoc;
  private stamp: string;
  private swept_ms = 0;
  /** Files of undos that this process may try again, by their attempt. */
  private readonly unfinished = new Map<string, string>();

  private constructor(options: GuardOptions, doc: ApproversDoc, stamp: string) {
    this.options = options;
    this.doc = doc;
    this.stamp = stamp;
  }

  /** Throws if the file is missing, does not parse, or can be written by others. */
  static async open(options: GuardOptions): Promise<ApproversGuard> {
    const { doc, stamp } = await readApprovers(options.file);
    await mkdir(options.used, { recursive: true, mode: 0o700 });
    return new ApproversGuard(options, doc, stamp);
  }

  /** Reason not to make the call, or null. `evidence` asks the server for the signatures. */
  async objection(call: CallToMake, evidence: () => Promise<unknown>): Promise<string | null> {
    await this.refresh();
    if (requirementsFor(this.doc, call.tool).length === 0) return null;
    const answer = await evidence().catch(() => undefined);
    const verdict = await judgeSignedCall(this.doc, call, answer, this.options.env.now());
    if ("problem" in verdict) return notMade(call, verdict.problem);
    if (verdict.use === null || (await this.use(verdict.use, call.undo))) return null;
    return notMade(call, "its approval was used before");
  }

  /** The undo took effect: its approval permits no further attempt. */
  async undone(undo: string): Promise<void> {
    const path = this.unfinished.get(undo);
    if (path === undefined) return;
    this.unfinished.delete(undo);
    try {
      const [end = ""] = (await readFile(path, "utf8")).split(" ");
      await writeFile(path, end, { flush: true });
    } catch (error) {
      // The undo is done, whether or not this can be noted.
      this.options.warn("a used approval could not be marked as used up", { problem: messageOf(error) });
    }
  }

  /** Whether the file names the tool. */
  async requires(tool: string): Promise<boolean> {
    await this.refresh();
    return requirementsFor(this.doc, tool).length > 0;
  }

  private async refresh(): Promise<void> {
    const { file, warn } = this.options;
    const stamp = statStamp(await stat(file).catch(() => undefined));
    if (stamp === this.stamp) return;
    this.stamp = stamp;
    try {
      ({ doc: this.doc } = await readApprovers(file));
    } catch (error) {
      warn("the approvers file is not valid; the old one stays active", { problem: messageOf(error) });
    }
  }

  /** False if the id was used before, except for the same undo, which is tried again until it took effect. */
  private async use({ id, expires_ms }: ApprovalUse, undo: string | undefined): Promise<boolean> {
    await this.sweep();
    const path = join(this.options.used, sha256Hex(id));
    const attempt = undo === undefined ? "" : ` ${sha256Hex(undo)}`;
    try {
      const handle = await open(path, "wx", 0o600);
      try {
        await handle.writeFile(`${expires_ms}${attempt}`);
        await handle.sync();
      } finally {
        await handle.close();
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw fileError(this.options.used, error);
      if (attempt === "" || !(await readFile(path, "utf8")).endsWith(attempt)) return false;
    }
    if (undo !== undefined) this.unfinished.set(undo, path);
    return true;
  }

  private async sweep(): Promise<void> {
    const now = this.options.env.now();
    if (now < this.swept_ms + SWEEP_MS) return;
    this.swept_ms = now;
    for (const name of await readdir(this.options.used)) {
      const path = join(this.options.used, name);
      const end = Number.parseInt(await readFile(path, "utf8").catch(() => "x"), 10);
      if (end + KEEP_MS < now) await rm(path, { force: true });
    }
  }
}

const notMade = ({ tool }: CallToMake, why: string): string =>
  `${tool} was not called: the approvers file requires signatures, and ${why}`;

async function readApprovers(file: string): Promise<{ doc: ApproversDoc; stamp: string }> {
  const stats = await ownStats(file).catch((error: unknown) => {
    throw fileError(file, error);
  });
  return { doc: parseApprovers(await readTextFile(file), file), stamp: statStamp(stats) };
}

async function ownStats(file: string): Promise<Stats> {
  const real = await realpath(file);
  const stats = await stat(real);
  requireOwn(real, stats);
  requireOwn(dirname(real), await stat(dirname(real)));
  return stats;
}

/** Throws if another user of this machine could write or replace the file: the file, and the directory that holds it. */
function requireOwn(path: string, stats: Stats): void {
  const user = process.getuid?.();
  const isOwn = user === undefined || stats.uid === user || stats.uid === 0;
  const isShared = (stats.mode & 0o022) !== 0 && !(stats.isDirectory() && (stats.mode & STICKY) !== 0);
  if (isOwn && !isShared) return;
  const use = isOwn ? "use mode 0644 or stricter, 0755 for its directory" : "it must be yours or root's";
  throw new SvcError("invalid", `${path}: can be written by others; ${use}`);
}
