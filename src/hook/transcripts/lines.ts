/** Lines of a client's transcript, each a JSON object, and the calls that they name. */
import { isRecord } from "../clients/clients.ts";

export interface TranscriptCall {
  /** The id that the client's hook events carry for the call, or the hook's own in its place. */
  ref: string;
  /** The client's name of the tool. */
  tool: string;
  at_ms: number;
  /** False if the client says that the call was refused. */
  ran: boolean;
}

export interface CallLines {
  lines: readonly Record<string, unknown>[];
}

/** Null if a line is not a JSON object. The client may still write the last one. */
export function linesOf(text: string): CallLines | null {
  const lines: Record<string, unknown>[] = [];
  const parts = text.split("\n");
  for (const [at, part] of parts.entries()) {
    if (part.trim() === "") continue;
    try {
      const line: unknown = JSON.parse(part);
      if (!isRecord(line)) return null;
      lines.push(line);
    } catch {
      if (at < parts.length - 1) return null;
    }
  }
  return lines.length === 0 ? null : { lines };
}

export function timeOf(given: unknown): number {
  const ms = typeof given === "string" ? Date.parse(given) : Number.NaN;
  return Number.isNaN(ms) ? 0 : ms;
}
