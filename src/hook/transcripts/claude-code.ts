/** Calls in a transcript of Claude Code: `tool_use` blocks of the assistant's lines, with their results. */
import { isRecord, nonEmptyString } from "../clients/clients.ts";
import { type CallLines, type TranscriptCall, timeOf } from "./lines.ts";

/** How a result begins whose call was refused, or whose input the client did not accept. No hook ran for the latter. */
const NOT_RUN = /^(?:PreToolUse:[\w:.-]+ hook error: |The user doesn't want to proceed|<tool_use_error>)/;

export function readClaudeLines({ lines }: CallLines): TranscriptCall[] | null {
  const calls = new Map<string, TranscriptCall>();
  let known = false;
  for (const line of lines) {
    const { type, message } = line;
    if (typeof type !== "string") return null;
    if (type !== "assistant" && type !== "user") continue;
    known = true;
    const content = isRecord(message) ? message["content"] : undefined;
    if (typeof content === "string") continue;
    if (!Array.isArray(content)) return null;
    for (const block of content) {
      if (!isRecord(block)) return null;
      if (type === "assistant" && block["type"] === "tool_use") {
        const [ref, tool] = [nonEmptyString(block["id"]), nonEmptyString(block["name"])];
        if (ref === null || tool === null) return null;
        calls.set(ref, { ref, tool, at_ms: timeOf(line["timestamp"]), ran: true });
      }
      if (type === "user" && block["type"] === "tool_result") {
        const call = calls.get(String(block["tool_use_id"]));
        if (call !== undefined && isRefused(line, block["content"])) call.ran = false;
      }
    }
  }
  return known ? [...calls.values()] : null;
}

function isRefused(line: Record<string, unknown>, content: unknown): boolean {
  const decided = line["permissionDecision"];
  if (isRecord(decided) && decided["decision"] === "reject") return true;
  const [first] = Array.isArray(content) ? content : [];
  const text = typeof content === "string" ? content : isRecord(first) ? first["text"] : undefined;
  return typeof text === "string" && NOT_RUN.test(text);
}
