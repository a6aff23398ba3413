/**
 * Calls in a chat file of Gemini CLI. The client repeats a message as it grows. Its hooks get no id of a call, so a call
 * is named by its tool and its input, as the hook names it.
 */
import { callFingerprint, isRecord, nonEmptyString } from "../clients/clients.ts";
import { type CallLines, type TranscriptCall, timeOf } from "./lines.ts";

const REFUSED = /^Tool execution blocked: /;
const NEVER_RUN = new Set(["cancelled"]);

export function readGeminiLines({ lines }: CallLines): TranscriptCall[] | null {
  if (nonEmptyString(lines[0]?.["sessionId"]) === null) return null;
  const calls = new Map<string, TranscriptCall>();
  for (const message of lines.flatMap(messagesIn)) {
    const made = message["toolCalls"] ?? [];
    if (!Array.isArray(made)) return null;
    for (const call of made) {
      if (!isRecord(call)) return null;
      const [id, tool] = [nonEmptyString(call["id"]), nonEmptyString(call["name"])];
      if (id === null || tool === null || !isRecord(call["args"])) return null;
      const at_ms = timeOf(call["timestamp"] ?? message["timestamp"]);
      const ref = callFingerprint(tool, call["args"]);
      calls.set(id, { ref, tool, at_ms, ran: !isRefused(call) });
    }
  }
  return [...calls.values()];
}

function messagesIn(line: Record<string, unknown>): Record<string, unknown>[] {
  const { $set: change } = line;
  const more =
    isRecord(change) && Array.isArray(change["messages"]) ? change["messages"].filter(isRecord) : [];
  return [line, ...more];
}

function isRefused({ status, result }: Record<string, unknown>): boolean {
  if (NEVER_RUN.has(String(status))) return true;
  const [first] = Array.isArray(result) ? result : [];
  const answer =
    isRecord(first) && isRecord(first["functionResponse"]) ? first["functionResponse"]["response"] : null;
  return isRecord(answer) && typeof answer["error"] === "string" && REFUSED.test(answer["error"]);
}
