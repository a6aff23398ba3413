/**
 * Calls tools that run only as tasks, as revision 2025-11-25 defines them: starts the task and waits for its result.
 * After the start, anything other than the result leaves the effect unknown.
 */
import { isJsonObject, type JsonObject } from "../../kernel/json/json.ts";
import { failureOf, isTimeout } from "./failure.ts";

export const RELATED_TASK = "io.modelcontextprotocol/related-task";

/** Options of a request. See the link. */
interface Sending {
  timeout_ms: number;
}

type Send = (method: string, params: JsonObject, sending: Sending) => Promise<JsonObject>;

export function requiresTask({ execution }: JsonObject): boolean {
  return isJsonObject(execution) && execution["taskSupport"] === "required";
}

export async function callAsTask(send: Send, params: JsonObject, sending: Sending): Promise<JsonObject> {
  const begun = await send("tools/call", { ...params, task: {} }, sending);
  const taskId = isJsonObject(begun["task"]) ? begun["task"]["taskId"] : undefined;
  if (typeof taskId !== "string") return begun;
  const { timeout_ms } = sending;
  try {
    return asOfCall(await send("tasks/result", { taskId }, sending));
  } catch (error) {
    if (isTimeout(error)) {
      send("tasks/cancel", { taskId }, { timeout_ms }).catch(() => {});
      throw error;
    }
    const failure = failureOf(error);
    const { status } =
      failure.kind === "answered"
        ? await send("tasks/get", { taskId }, { timeout_ms }).catch(() => NONE)
        : NONE;
    // The call's own error, as opposed to the error of a server that forgot the task.
    if (status === "failed") throw error;
    throw new Error(`the result of its task did not arrive: ${failure.message}`);
  }
}

const NONE: JsonObject = {};

/** Removes the upstream's task id, which means nothing to the caller. */
function asOfCall({ _meta, ...result }: JsonObject): JsonObject {
  if (!isJsonObject(_meta)) return result;
  const { [RELATED_TASK]: _, ...rest } = _meta;
  return { ...result, _meta: rest };
}
