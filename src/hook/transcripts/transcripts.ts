/**
 * Reads the transcripts of a session: the client's own account of its calls. A transcript that is missing, shorter than
 * before, changed or of an unknown form is not checked, and never counts as equal.
 */
import { readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { HookClient } from "../clients/clients.ts";
import { hexHash } from "../workspace/hash.ts";
import { readBytesOrNull, readTextOrNull } from "../workspace/read-text.ts";
import { readClaudeLines } from "./claude-code.ts";
import { readCodexLines } from "./codex.ts";
import { readGeminiLines } from "./gemini.ts";
import { type CallLines, linesOf, type TranscriptCall } from "./lines.ts";

type LineReader = (lines: CallLines) => TranscriptCall[] | null;

const READERS: Readonly<Partial<Record<HookClient, LineReader>>> = {
  "claude-code": readClaudeLines,
  codex: readCodexLines,
  gemini: readGeminiLines,
};

/** A file as it was when it was last read. */
export interface SeenFile {
  bytes: number;
  sha256: string;
}

export type SeenFiles = Readonly<Record<string, SeenFile>>;

export type TranscriptReading = { calls: TranscriptCall[]; seen: SeenFiles } | { not_checked: string };

export function readTranscripts(
  client: HookClient,
  paths: readonly string[],
  before: SeenFiles = {},
): TranscriptReading {
  const read = READERS[client];
  if (read === undefined) return { not_checked: `svc does not read transcripts of ${client}` };
  if (paths.length === 0) return { not_checked: "the client named no transcript" };
  const calls = new Map<string, TranscriptCall[]>();
  const seen: Record<string, SeenFile> = {};
  const all = [
    ...new Set([...paths, ...Object.keys(before), ...paths.flatMap((path) => subAgentFiles(client, path))]),
  ];
  for (const path of all) {
    const found = readOne(read, path, before[path]);
    if ("not_checked" in found) return found;
    seen[path] = found.seen;
    calls.set(path, found.calls);
  }
  return { calls: [...calls.values()].flat(), seen };
}

function readOne(
  read: LineReader,
  path: string,
  before: SeenFile | undefined,
): { calls: TranscriptCall[]; seen: SeenFile } | { not_checked: string } {
  const bytes = readBytesOrNull(path);
  if (bytes === null) return { not_checked: `${path} cannot be read` };
  if (before !== undefined && bytes.length < before.bytes)
    return { not_checked: `${path} is shorter than before` };
  if (before !== undefined && hexHash(bytes.subarray(0, before.bytes)) !== before.sha256)
    return { not_checked: `${path} was changed` };
  const lines = linesOf(bytes.toString("utf8"));
  const calls = lines === null ? null : read(lines);
  if (calls === null) return { not_checked: `${path} has an unknown form` };
  return { calls, seen: { bytes: bytes.length, sha256: hexHash(bytes) } };
}

/** Transcripts of sub-agents, which the hook's events do not name. */
function subAgentFiles(client: HookClient, path: string): string[] {
  const stem = basename(path, ".jsonl");
  if (client === "claude-code") return filesIn(join(dirname(path), stem, "subagents"));
  if (client !== "gemini") return [];
  try {
    const [line = ""] = (readTextOrNull(path) ?? "").split("\n", 1);
    const { sessionId } = JSON.parse(line) as { sessionId?: unknown };
    return typeof sessionId === "string" ? filesIn(join(dirname(path), basename(sessionId))) : [];
  } catch {
    return [];
  }
}

function filesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => name.endsWith(".jsonl"))
      .map((name) => join(folder, name));
  } catch {
    return [];
  }
}
