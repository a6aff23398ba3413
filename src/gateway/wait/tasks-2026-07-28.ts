/**
 * Tasks as the extension of revision 2026-07-28 defines them: the server creates a task if a call waits for approval.
 */
import type { Server } from "@modelcontextprotocol/server";
import type { CallerPrincipal } from "../../govern/roles.ts";
import type { JsonObject } from "../../kernel/json/json.ts";
import { methodNotFound } from "../session/mcp-server.ts";
import { ANY_RESULT, fromSdk, type RequestContext } from "../session/request-context.ts";
import { type CallTask, POLL_MS, type TaskRegistry } from "./tasks.ts";

/**
 * Registers the task methods explicitly. The older revision defined these names, so the SDK requires explicit handlers.
 */
export function bindTasks(
  server: Server,
  handle: (method: string, params: JsonObject, context: RequestContext) => Promise<JsonObject>,
): void {
  for (const method of ["tasks/get", "tasks/cancel"]) {
    server.setRequestHandler(method, { params: ANY_RESULT }, (params, context) =>
      handle(method, params as JsonObject, fromSdk(context)),
    );
  }
}

export function handleOf(task: CallTask): JsonObject {
  return { resultType: "task", ...shown(task) };
}

/** `retried` holds the client's answers, which the SDK takes out of the parameters. */
export async function answerNewer(
  tasks: TaskRegistry,
  method: string,
  params: JsonObject,
  principal: CallerPrincipal,
  { retried }: Pick<RequestContext, "retried">,
): Promise<JsonObject> {
  const task = tasks.find(method, params, principal);
  if (method === "tasks/get") return detailed(task);
  if (method === "tasks/update") tasks.answered(task, retried ?? {});
  else if (method === "tasks/cancel") await tasks.giveUp(task);
  else throw methodNotFound(method);
  return {};
}

function shown({ id, message, created_ms, updated_ms, ttl_ms, end, inputRequests }: CallTask): JsonObject {
  return {
    taskId: id,
    status: end?.status ?? (inputRequests === null ? "working" : "input_required"),
    statusMessage: message,
    createdAt: new Date(created_ms).toISOString(),
    lastUpdatedAt: new Date(updated_ms).toISOString(),
    ttlMs: ttl_ms,
    pollIntervalMs: POLL_MS,
  };
}

function detailed(task: CallTask): JsonObject {
  const { end, inputRequests } = task;
  if (end === null) return { ...shown(task), ...(inputRequests === null ? {} : { inputRequests }) };
  if (end.status !== "completed") return { ...shown(task), ...end };
  return { ...shown(task), result: { resultType: "complete", ...end.result } };
}
