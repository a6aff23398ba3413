/**
 * Publishes anchors: appends to a file, posts to a webhook through the egress guard, or asks a witness to cosign the
 * ledger's checkpoint. Each sink is independent, so one that fails does not affect the others.
 */
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import { fileError, syncFolder, unreadableReason } from "../../config/files.ts";
import { maskUrl } from "../../config/mask.ts";
import type { AnchorSink } from "../../config/sections/operations.ts";
import type { EgressClient } from "../../egress/egress.ts";
import { messageOf, SvcError } from "../../kernel/errors.ts";
import { hmacHex } from "../../kernel/hash.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { WitnessSink } from "../witness/client.ts";
import { anchorLine, type LedgerAnchor } from "./anchor.ts";

export interface SinkResult {
  type: AnchorSink["type"];
  /** File path, or host of the webhook. The rest of a webhook's URL may be its password. */
  target: string;
  ok: boolean;
  error: string | null;
}

/** Asks a witness to cosign. Rejects with the reason for a refusal. */
type AskWitness = (sink: WitnessSink) => Promise<void>;

export function sendAnchor(
  anchor: LedgerAnchor,
  sinks: readonly AnchorSink[],
  egress: EgressClient,
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

/** Appends a line durably. It is written in one call, so lines of several writers do not mix. */
export async function appendLine(path: string, line: string): Promise<void> {
  try {
    const file = await open(path, APPEND, 0o644);
    try {
      const before = await file.stat();
      const problem = unreadableReason(before, Number.POSITIVE_INFINITY);
      if (problem !== undefined) throw new SvcError("invalid", `${path}: ${problem}`);
      // A line cut off by a crash stays; this one starts on a new line.
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
  // Remove a partly written line, unless another process has written after it.
  if ((await file.stat()).size === before + bytesWritten) await file.truncate(before).catch(() => undefined);
  throw Object.assign(new Error("only part of the line could be written"), { code: "ENOSPC" });
}

const SIGNATURE = "x-svc-signature";

async function post(
  sink: Extract<AnchorSink, { type: "webhook" }>,
  line: string,
  egress: EgressClient,
): Promise<void> {
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (sink.secret !== null) headers[SIGNATURE] = `sha256=${hmacHex(sink.secret, line)}`;
  const { status } = await egress.request(sink.url, {
    method: "POST",
    headers,
    body: line,
    timeout_ms: SERVICE_LIMITS.egress_timeout_ms,
    secret_headers: [SIGNATURE],
    max_bytes: 65_536,
    cut: true,
  });
  if (status < 200 || status > 299) throw new SvcError("delivery_failed", `the webhook answered ${status}`);
}
