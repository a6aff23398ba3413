/**
 * Guards calls with an approvers file: reads it again when it changes, and lets each approval be used once. Used ids are
 * files of a directory, so that processes and restarts share them.
 */
import { mkdir, open, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
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

export class ApproversGuard {
  private readonly options: GuardOptions;
  private doc: ApproversDoc;
  private stamp: string;
  private swept_ms = 0;

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
    if (verdict.use === null || (await this.use(verdict.use))) return null;
    return notMade(call, "its approval was used before");
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

  /** False if the id was used before. */
  private async use({ id, expires_ms }: ApprovalUse): Promise<boolean> {
    await this.sweep();
    try {
      const handle = await open(join(this.options.used, sha256Hex(id)), "wx", 0o600);
      try {
        await handle.writeFile(String(expires_ms));
        await handle.sync();
      } finally {
        await handle.close();
      }
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
      throw fileError(this.options.used, error);
    }
  }

  private async sweep(): Promise<void> {
    const now = this.options.env.now();
    if (now < this.swept_ms + SWEEP_MS) return;
    this.swept_ms = now;
    for (const name of await readdir(this.options.used)) {
      const path = join(this.options.used, name);
      const end = Number(await readFile(path, "utf8").catch(() => "x"));
      if (end + KEEP_MS < now) await rm(path, { force: true });
    }
  }
}

const notMade = ({ tool }: CallToMake, why: string): string =>
  `${tool} was not called: the approvers file requires signatures, and ${why}`;

async function readApprovers(file: string): Promise<{ doc: ApproversDoc; stamp: string }> {
  const stats = await stat(file).catch((error: unknown) => {
    throw fileError(file, error);
  });
  if ((stats.mode & 0o022) !== 0)
    throw new SvcError("invalid", `${file}: can be written by others; use mode 0644 or stricter`);
  return { doc: parseApprovers(await readTextFile(file), file), stamp: statStamp(stats) };
}
