/**
 * Where anchors go: appended to a file, posted to a webhook through the egress guard, or to a witness, which
 * cosigns the ledger's checkpoint. Each sink is tried by itself, and one that fails never keeps the anchor from
 * the others.
 */
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import { fileError, unreadable } from "../config/files.ts";
import { maskUrl } from "../config/mask.ts";
import type { AnchorSink } from "../config/sections/operations.ts";
import type { Egress } from "../egress/egress.ts";
import { messageOf, SvcError } from "../kernel/errors.ts";
import { hmacHex } from "../kernel/hash.ts";
import { LIMITS } from "../kernel/limits.ts";
import { type Anchor, anchorLine } from "./anchor.ts";
import type { WitnessSink } from "./witness/client.ts";

export interface SinkResult {
  type: AnchorSink["type"];
  /** The file, or the host of the webhook: the rest of its address may be its password. */
  target: string;
  ok: boolean;
  error: string | null;
}

/** Has a witness cosign; rejects with why it would not. */
type AskWitness = (sink: WitnessSink) => Promise<void>;

export function sendAnchor(
  anchor: Anchor,
  sinks: readonly AnchorSink[],
  egress: Egress,
  ask: AskWitness,
): Promise<SinkResult[]> {
  const line = anchorLine(anchor);
  return Promise.all(
    sinks.map(async (sink): Promise<SinkResult> => {
      const result = {
        type: sink.type,
        target: sink.type === "file" ? sink.path : maskUrl(sink.url),
      };
      try {
        if (sink.type === "file") await appendLine(sink.path, line);
        else if (sink.type === "webhook") await post(sink, line, egress);
        else await ask(sink);
        return { ...result, ok: true, error: null };
      } catch (error) {
        return { ...result, ok: false, error: messageOf(error) };
      }
    }),
  );
}

const APPEND = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;

/** The line is on the disk when this resolves. It is written in one piece, so that lines of several writers do not mix. */
export async function appendLine(path: string, line: string): Promise<void> {
  try {
    const file = await open(path, APPEND, 0o644);
    try {
      const before = await file.stat();
      const problem = unreadable(before, Number.POSITIVE_INFINITY);
      if (problem !== undefined) throw new SvcError("invalid", `${path}: ${problem}`);
      // A line that a crash cut off stays as it is; ours begins behind it on a line of its own.
      const start = (await endsInLine(file, before.size)) ? "" : "\n";
      await writeWhole(file, Buffer.from(`${start}${line}\n`), before.size);
      await file.datasync();
      if (before.size === 0) await syncFolder(dirname(path));
    } finally {
      await file.close();
    }
  } catch (error) {
    throw fileError(path, error);
  }
}

async function endsInLine(file: FileHandle, size: number): Promise<boolean> {
  if (size === 0) return true;
  const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] === 0x0a;
}

async function writeWhole(file: FileHandle, bytes: Buffer, before: number): Promise<void> {
  const { bytesWritten } = await file.write(bytes);
  if (bytesWritten === bytes.length) return;
  // Half a line is worse than none; it goes, unless another writer has written behind it.
  if ((await file.stat()).size === before + bytesWritten) await file.truncate(before).catch(() => undefined);
  throw Object.assign(new Error("the disk took only a part of the line"), { code: "ENOSPC" });
}

async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

const SIGNATURE = "x-svc-signature";

async function post(
  sink: Extract<AnchorSink, { type: "webhook" }>,
  line: string,
  egress: Egress,
): Promise<void> {
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (sink.secret !== null) headers[SIGNATURE] = `sha256=${hmacHex(sink.secret, line)}`;
  const { status } = await egress.request(sink.url, {
    method: "POST",
    headers,
    body: line,
    timeout_ms: LIMITS.egress_timeout_ms,
    secret_headers: [SIGNATURE],
    max_bytes: 65_536,
    cut: true,
  });
  if (status < 200 || status > 299) throw new SvcError("delivery_failed", `the webhook answered ${status}`);
}
