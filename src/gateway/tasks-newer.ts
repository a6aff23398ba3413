/** Tasks as the extension of revision 2026-07-28 has them: the server makes one where a call waits for a person. */
import type { Server } from "@modelcontextprotocol/server";
import type { JsonObject } from "../kernel/json.ts";
import type { Principal } from "../model/roles.ts";
import { methodNotFound } from "./peer.ts";
import { ANY_RESULT, fromSdk, type RequestContext } from "./request-context.ts";
import { POLL_MS, type Task, type Tasks } from "./tasks.ts";

/** The names were the protocol's own in the older revision: the SDK lets only handlers that say so have them now. */
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

export function handleOf(task: Task): JsonObject {
  return { resultType: "task", ...shown(task) };
}

export async function answerNewer(
  tasks: Tasks,
  method: string,
  params: JsonObject,
  principal: Principal,
): Promise<JsonObject> {
  const task = tasks.find(method, params, principal);
  if (method === "tasks/get") return detailed(task);
  if (method === "tasks/update") tasks.answered(task, params);
  else if (method === "tasks/cancel") await tasks.giveUp(task);
  else throw methodNotFound(method);
  return {};
}

function shown({ id, message, created_ms, updated_ms, ttl_ms, end, inputRequests }: Task): JsonObject {
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

function detailed(task: Task): JsonObject {
  const { end, inputRequests } = task;
  if (end === null) return { ...shown(task), ...(inputRequests === null ? {} : { inputRequests }) };
  if (end.status !== "completed") return { ...shown(task), ...end };
  return { ...shown(task), result: { resultType: "complete", ...end.result } };
}
