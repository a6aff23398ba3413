/**
 * Tasks as revision 2025-11-25 has them: the client asks for one with its call. Its result is fetched apart, and what
 * the client is asked meanwhile goes over the stream of whoever waits for that result.
 */
import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import { isJsonObject, type JsonObject } from "../kernel/json.ts";
import type { Principal } from "../model/roles.ts";
import { progressOf, stillAsking } from "./asked.ts";
import { CARD_QUESTION } from "./native-wait.ts";
import { invalidParams, methodNotFound } from "./peer.ts";
import type { RequestContext } from "./request-context.ts";
import { errorText, withMeta } from "./result.ts";
import { POLL_MS, type Task, type Tasks } from "./tasks.ts";
import { demandsTask, RELATED_TASK } from "./upstream/task-call.ts";

export const OLDER_TASKS = "2025-11-25";
/** As they are declared to clients of that revision. */
export const TASKS_CAPABILITY = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
const MAX_MESSAGE = 1_000;

/** Whether the call is to be a task; throws where what says so is none of the standard's. */
export function asksForTask({ task }: JsonObject): boolean {
  if (task === undefined) return false;
  if (!isJsonObject(task)) throw invalidParams("tools/call: task must be an object");
  const { ttl } = task;
  if (ttl !== undefined && typeof ttl !== "number")
    throw invalidParams("tools/call: task.ttl must be a number of milliseconds");
  return true;
}

/** The definition of a tool whose calls may be tasks, or have to be. */
export function takingTasks(definition: JsonObject): JsonObject {
  if (demandsTask(definition)) return definition;
  const { execution } = definition;
  return {
    ...definition,
    execution: { ...(isJsonObject(execution) ? execution : {}), taskSupport: "optional" },
  };
}

/** The answer to the call that began it, whose client hears of what becomes of it where it listens. */
export function created(task: Task, { notify }: RequestContext): JsonObject {
  task.changed.add(() => notify("notifications/tasks/status", shown(task)));
  return { task: shown(task) };
}

/** The context of the call once it was answered: whatever is told or asked still says which task it is of. */
export function withinTask(context: RequestContext, task: Task): RequestContext {
  return {
    ...context,
    cancellation: task.cancellation,
    notify: (method, params) => context.notify(method, related(task, params)),
    ask: (method, params, options) => context.ask(method, related(task, params ?? {}), options),
  };
}

export async function answerOlder(
  tasks: Tasks,
  method: string,
  params: JsonObject,
  principal: Principal,
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

function related(task: Task, params: JsonObject): JsonObject {
  return withMeta(params, { [RELATED_TASK]: { taskId: task.id } });
}

/** A call that failed is a task that failed, and one that was given up stays so whatever becomes of the call. */
function statusOf({ end, given_up, inputRequests }: Task): string {
  if (given_up) return "cancelled";
  if (end === null) return inputRequests === null ? "working" : "input_required";
  return end.status === "completed" && end.result["isError"] === true ? "failed" : end.status;
}

function shown(task: Task): JsonObject {
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

/** Clients may show the status alone, so a refusal stands there, too. */
function messageOf({ end, message }: Task): string {
  if (end?.status === "failed") return end.error.message;
  return end?.status === "completed" && end.result["isError"] === true ? errorText(end.result) : message;
}

/** What the call would have been answered with; held until that is known. */
async function resultOf(tasks: Tasks, task: Task, context: RequestContext): Promise<JsonObject> {
  const { cancellation } = context;
  const left = new Promise<void>((resolve) => void cancellation.onCancel(resolve));
  const shownCard = showingCard(tasks, task, context);
  await Promise.race([tasks.held(task, progressOf(context)), left]);
  shownCard();
  // Whoever waited may have lost its authority meanwhile.
  stillAsking(context);
  const { end } = task;
  if (end?.status === "completed") return related(task, end.result);
  if (end?.status === "failed") throw new ProtocolError(end.error.code, end.error.message);
  throw new ProtocolError(
    ProtocolErrorCode.InvalidRequest,
    `the task was cancelled and the call not made: ${task.message}`,
  );
}

/** Asks the client to show the card as soon as there is one; answers a function that ends that. */
function showingCard(tasks: Tasks, task: Task, context: RequestContext): () => void {
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
