/** Recognizes background commands: those that were only started, and the calls by which a client reports their end. */
import type { CallState } from "./call-state.ts";
import { type HookEvent, isRecord, nonEmptyString } from "./clients/clients.ts";

export interface EndedTask {
  id: string;
  how: "completed" | "failed" | "stopped";
}

const ID_FIELDS = ["backgroundTaskId", "background_task_id", "task_id", "shell_id", "bash_id"];

/** The client's id of a command that still runs after its event, or "" without an id. Null if the command has ended. */
export function backgroundId(note: CallState, response: unknown): string | null {
  // Includes commands that the client or its user moved to the background later.
  const moved = isRecord(response) ? (nonEmptyString(response["backgroundTaskId"]) ?? null) : null;
  if (moved !== null) return moved;
  return note.started_only === true ? (idIn(response) ?? "") : null;
}

const READS_TASK = /^(?:TaskOutput|BashOutput|AgentOutput)$/;
const STOPS_TASK = /^(?:TaskStop|KillShell|KillBash)$/;

/** The background command whose end a call reports, or null. */
export function endedTask({ tool, input, response }: HookEvent): EndedTask | null {
  const id = idIn(input);
  if (id === null) return null;
  if (STOPS_TASK.test(tool)) return { id, how: "stopped" };
  if (!READS_TASK.test(tool) || !isRecord(response)) return null;
  const task = isRecord(response["task"]) ? response["task"] : response;
  const code = task["exitCode"] ?? task["exit_code"];
  const status = nonEmptyString(task["status"]) ?? "";
  if (/^(?:killed|stopped|cancelled)$/.test(status)) return { id, how: "stopped" };
  if (status === "failed" || (status === "completed" && typeof code === "number" && code !== 0))
    return { id, how: "failed" };
  return status === "completed" ? { id, how: "completed" } : null;
}

function idIn(value: unknown): string | null {
  if (!isRecord(value)) return null;
  return ID_FIELDS.map((name) => nonEmptyString(value[name])).find((id) => id !== null) ?? null;
}
