/**
 * Calls in a rollout file of Codex: function calls of the model, and what its scripts ran, which has
 * its own items.
 */
import { isRecord, nonEmptyString } from "../clients/clients.ts";
import { type CallLines, type TranscriptCall, timeOf } from "./lines.ts";

/** They only carry the scripts whose calls are items. */
const SCRIPT_TOOLS = new Set(["exec", "wait"]);
const CALLS = new Set(["function_call", "custom_tool_call", "local_shell_call"]);
const RESULTS = new Set(["function_call_output", "custom_tool_call_output"]);
const REFUSED = /^(?:Command|Tool call) blocked by PreToolUse hook/;

export function readCodexLines({ lines }: CallLines): TranscriptCall[] | null {
  if (lines[0]?.["type"] !== "session_meta") return null;
  const calls = new Map<string, TranscriptCall>();
  for (const line of lines) {
    const { payload } = line;
    if (typeof line["type"] !== "string" || !isRecord(payload)) return null;
    const at_ms = timeOf(line["timestamp"]);
    if (line["type"] === "event_msg") {
      const item = payload["type"] === "item_completed" ? payload["item"] : undefined;
      // A script's call has an id of this form, and no other line names it.
      const ref = isRecord(item) ? nonEmptyString(item["id"]) : null;
      if (isRecord(item) && ref?.startsWith("exec-"))
        calls.set(ref, { ref, tool: String(item["type"]), at_ms, ran: item["status"] !== "declined" });
      continue;
    }
    if (line["type"] !== "response_item") continue;
    const kind = String(payload["type"]);
    const ref = nonEmptyString(payload["call_id"]);
    if (CALLS.has(kind)) {
      const tool = nonEmptyString(payload["name"]) ?? kind;
      if (ref === null) return null;
      if (!SCRIPT_TOOLS.has(tool)) calls.set(ref, { ref, tool, at_ms, ran: true });
    } else if (RESULTS.has(kind)) {
      const call = calls.get(ref ?? "");
      if (call !== undefined && REFUSED.test(textOf(payload["output"]))) call.ran = false;
    }
  }
  return [...calls.values()];
}

function textOf(output: unknown): string {
  if (typeof output === "string") return output;
  if (Array.isArray(output))
    return output.map((part) => (isRecord(part) ? String(part["text"]) : "")).join("");
  return isRecord(output) ? textOf(output["content"]) : "";
}
