/**
 * Tasks as revision 2025-11-25 defines them: the client requests a task with its call and fetches the result
 * separately. Questions to the client use the stream of the request that waits for the result.
 */
import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import type { CallerPrincipal } from "../../govern/roles.ts";
import { isJsonObject, type JsonObject } from "../../kernel/json/json.ts";
import { progressOf, recheckAuthority } from "../call/call-request.ts";
import { errorText, withMeta } from "../call/result.ts";
import { invalidParams, methodNotFound } from "../session/mcp-server.ts";
import type { RequestContext } from "../session/request-context.ts";
import { RELATED_TASK, requiresTask } from "../upstream/task-call.ts";
import { CARD_QUESTION } from "./protocol-wait.ts";
import { type CallTask, POLL_MS, type TaskRegistry } from "./tasks.ts";

export const OLDER_TASKS = "2025-11-25";
/** The capability that clients of this revision see. */
export const TASKS_CAPABILITY = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
const MAX_MESSAGE = 1_000;

/** Whether the call requests a task. Throws if `task` does not follow the standard. */
export function asksForTask({ task }: JsonObject): boolean {
  if (task === undefined) return false;
  if (!isJsonObject(task)) throw invalidParams("tools/call: task must be an object");
  const { ttl } = task;
  if (ttl !== undefined && typeof ttl !== "number")
    throw invalidParams("tools/call: task.ttl must be a number of milliseconds");
  return true;
}

/** The definition of a tool with support for tasks. Tools that require tasks stay unchanged. */
export function takingTasks(definition: JsonObject): JsonObject {
  if (requiresTask(definition)) return definition;
  const { execution } = definition;
  return {
    ...definition,
    execution: { ...(isJsonObject(execution) ? execution : {}), taskSupport: "optional" },
  };
}

/** Answer to the call that created the task. Status notifications follow on its stream. */
export function createTaskResult(task: CallTask, { notify }: RequestContext): JsonObject {
  task.changed.add(() => notify("notifications/tasks/status", shown(task)));
  return { task: shown(task) };
}

/** Context of the call after its answer. All later messages name the task. */
export function withinTask(context: RequestContext, task: CallTask): RequestContext {
  return {
    ...context,
    cancellation: task.cancellation,
    notify: (method, params) => context.notify(method, related(task, params)),
    ask: (method, params, options) => context.ask(method, related(task, params ?? {}), options),
  };
}

export async function answerOlder(
  tasks: TaskRegistry,
  method: string,
  params: JsonObject,
  principal: CallerPrincipal,
  context: RequestContext,
): Promise<JsonObject> {
  if (method === "tasks/list") {
    const { tasks: page, next } = tasks.list(principal, params["cursor"]);
    return { tasks: page.map(shown), ...(next === null ? {} : { nextCursor: next }) };
  }
  if (!["tasks/get", "tasks/result", "tasks/cancel"].includes(method)) throw methodNotFound(method);
  const task = tasks.find(method, params, principal);
  if (method === "tasks/result") return resultOf(tasks, task, context);
  if (method === "tasks/cancel") {
    if (task.end !== null || task.given_up) throw invalidParams("tasks/cancel: the task has ended");
    await tasks.giveUp(task);
  }
  return shown(task);
}

function related(task: CallTask, params: JsonObject): JsonObject {
  return withMeta(params, { [RELATED_TASK]: { taskId: task.id } });
}

/** A failed call is a failed task. A cancelled task stays cancelled, even if the call still ends otherwise. */
function statusOf({ end, given_up, inputRequests }: CallTask): string {
  if (given_up) return "cancelled";
  if (end === null) return inputRequests === null ? "working" : "input_required";
  return end.status === "completed" && end.result["isError"] === true ? "failed" : end.status;
}

function shown(task: CallTask): JsonObject {
  const { id, created_ms, updated_ms, ttl_ms } = task;
  return {
    taskId: id,
    status: statusOf(task),
    statusMessage: messageOf(task).slice(0, MAX_MESSAGE),
    createdAt: new Date(created_ms).toISOString(),
    lastUpdatedAt: new Date(updated_ms).toISOString(),
    ttl: ttl_ms,
    pollInterval: POLL_MS,
  };
}

/** Message of the status. Includes a refusal, because a client may show only the status. */
function messageOf({ end, message }: CallTask): string {
  if (end?.status === "failed") return end.error.message;
  return end?.status === "completed" && end.result["isError"] === true ? errorText(end.result) : message;
}

/** Waits for the end of the task and returns the answer of its call. */
async function resultOf(tasks: TaskRegistry, task: CallTask, context: RequestContext): Promise<JsonObject> {
  const { cancellation } = context;
  const left = new Promise<void>((resolve) => void cancellation.onCancel(resolve));
  const shownCard = showingCard(tasks, task, context);
  await Promise.race([tasks.held(task, progressOf(context)), left]);
  shownCard();
  // The caller may have lost its authority during the wait.
  recheckAuthority(context);
  const { end } = task;
  if (end?.status === "completed") return related(task, end.result);
  if (end?.status === "failed") throw new ProtocolError(end.error.code, end.error.message);
  throw new ProtocolError(
    ProtocolErrorCode.InvalidRequest,
    `the task was cancelled and the call not made: ${task.message}`,
  );
}

/** Asks the client to show the card once there is one. Returns a function that stops this. */
function showingCard(tasks: TaskRegistry, task: CallTask, context: RequestContext): () => void {
  const over = new AbortController();
  let asked = false;
  const ask = () => {
    const question = task.inputRequests?.[CARD_QUESTION];
    if (asked || !isJsonObject(question)) return;
    asked = true;
    const { method, params } = question as { method: string; params: JsonObject };
    const options = { signal: over.signal, timeout: task.ttl_ms };
    context
      .ask(method, related(task, { ...params, elicitationId: task.id }), options)
      .then((answer) => tasks.answered(task, { inputResponses: { [CARD_QUESTION]: answer } }))
      .catch(() => {});
  };
  ask();
  task.changed.add(ask);
  return () => {
    task.changed.delete(ask);
    over.abort();
    if (asked) context.notify("notifications/elicitation/complete", { elicitationId: task.id });
  };
}
