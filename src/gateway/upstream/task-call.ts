/**
 * Calls of tools that run as a task alone, as revision 2025-11-25 has them: begun as one, and held until its result is
 * there. From the moment it has begun, whatever else than its own answer comes leaves open what it did.
 */
import { isJsonObject, type JsonObject } from "../../kernel/json.ts";
import { failureOf, isTimeout } from "./failure.ts";

export const RELATED_TASK = "io.modelcontextprotocol/related-task";

/** However else a request is sent; see the link. */
interface Sending {
  timeout_ms: number;
}

type Send = (method: string, params: JsonObject, sending: Sending) => Promise<JsonObject>;

export function demandsTask({ execution }: JsonObject): boolean {
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
    // The call's own error, and not one of a server that knows the task no more.
    if (status === "failed") throw error;
    throw new Error(`the result of its task did not come: ${failure.message}`);
  }
}

const NONE: JsonObject = {};

/** Which task of the upstream's it was says nothing to whoever called. */
function asOfCall({ _meta, ...result }: JsonObject): JsonObject {
  if (!isJsonObject(_meta)) return result;
  const { [RELATED_TASK]: _, ...rest } = _meta;
  return { ...result, _meta: rest };
}
