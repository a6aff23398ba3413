/**
 * Calls that wait for a person as tasks, for clients of the newer revision that declare the extension: such a call is
 * answered with a handle at once, and what becomes of it is asked for later. A task lives in this process. Where
 * that ends, the call was not made, and its request for approval stands.
 */
import type { Server } from "@modelcontextprotocol/server";
import type { Env } from "../kernel/env.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { Principal } from "../model/roles.ts";
import { Cancellation } from "./cancellation.ts";
import { declined, type Wait } from "./native-wait.ts";
import { invalidParams, methodNotFound } from "./peer.ts";
import { ANY_RESULT, fromSdk, type RequestContext } from "./request-context.ts";

/** How many wait at once at most, of all and of one principal; past it a call is answered as without tasks. */
const WAITING = 1_000;
const WAITING_OF_ONE = 100;
/** How many that ended are kept for those who have not asked yet, and for how long. */
const ENDED = 1_000;
const KEPT_MS = 600_000;
const POLL_MS = 1_000;

type End =
  | { status: "completed"; result: JsonObject }
  | { status: "failed"; error: { code: number; message: string } }
  | { status: "cancelled" };

interface Task {
  id: string;
  holder: string;
  message: string;
  created_ms: number;
  updated_ms: number;
  ttl_ms: number;
  /** What the client is asked to show, until it says that it did. */
  inputRequests: JsonObject | null;
  end: End | null;
  cancellation: Cancellation;
}

export class Tasks {
  private readonly env: Env;
  /** In the order in which they began. */
  private readonly tasks = new Map<string, Task>();

  constructor(env: Env) {
    this.env = env;
  }

  /** The handle of what waits from now on, or null where too much does. The work answers null when it was cancelled. */
  begin(
    { id: holder }: Principal,
    { message, wait_ms, inputRequests }: Wait,
    work: (cancellation: Cancellation) => Promise<JsonObject | null>,
  ): JsonObject | null {
    this.forget();
    const waiting = [...this.tasks.values()].filter(({ end }) => end === null);
    if (waiting.length >= WAITING) return null;
    if (waiting.filter((task) => task.holder === holder).length >= WAITING_OF_ONE) return null;
    const now = this.env.now();
    const task: Task = {
      id: `tsk_${this.env.uuid()}`,
      holder,
      message,
      created_ms: now,
      updated_ms: now,
      ttl_ms: wait_ms + KEPT_MS,
      inputRequests,
      end: null,
      cancellation: new Cancellation(),
    };
    this.tasks.set(task.id, task);
    void work(task.cancellation).then(
      (result) => this.end(task, result === null ? { status: "cancelled" } : { status: "completed", result }),
      (error) => this.end(task, { status: "failed", error: asError(error) }),
    );
    return { resultType: "task", ...base(task), status: statusOf(task) };
  }

  handle(method: string, params: JsonObject, { id: holder }: Principal): JsonObject {
    const { taskId } = params;
    const task = typeof taskId === "string" ? this.tasks.get(taskId) : undefined;
    if (task === undefined || task.holder !== holder)
      throw invalidParams(`${method}: unknown task; it has ended long ago, or was another's`);
    if (method === "tasks/get") return detailed(task);
    if (method === "tasks/update") this.update(task, params);
    else if (method === "tasks/cancel") task.cancellation.cancel();
    else throw methodNotFound(method);
    return {};
  }

  /** Whatever the client answers decides nothing; that its person does not want to wait ends the wait. */
  private update(task: Task, params: JsonObject): void {
    if (task.end !== null || task.inputRequests === null) return;
    task.inputRequests = null;
    task.updated_ms = this.env.now();
    if (declined(params)) task.cancellation.cancel();
  }

  private end(task: Task, end: End): void {
    task.end = end;
    task.updated_ms = this.env.now();
  }

  private forget(): void {
    const now = this.env.now();
    const ended = [...this.tasks.values()].filter(({ end }) => end !== null);
    for (const [i, task] of ended.entries()) {
      if (i < ended.length - ENDED || task.created_ms + task.ttl_ms <= now) this.tasks.delete(task.id);
    }
  }

  close(): void {
    for (const { cancellation } of this.tasks.values()) cancellation.cancel();
  }
}

/** In the older revision the names were the protocol's own: the SDK lets only handlers that say so have them now. */
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

function statusOf({ end, inputRequests }: Task): string {
  return end?.status ?? (inputRequests === null ? "working" : "input_required");
}

function base({ id, message, created_ms, updated_ms, ttl_ms }: Task): JsonObject {
  return {
    taskId: id,
    statusMessage: message,
    createdAt: new Date(created_ms).toISOString(),
    lastUpdatedAt: new Date(updated_ms).toISOString(),
    ttlMs: ttl_ms,
    pollIntervalMs: POLL_MS,
  };
}

function detailed(task: Task): JsonObject {
  if (task.end !== null) return { ...base(task), ...(task.end as JsonObject) };
  const { inputRequests } = task;
  return { ...base(task), status: statusOf(task), ...(inputRequests === null ? {} : { inputRequests }) };
}

function asError(error: unknown): { code: number; message: string } {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return { code: typeof code === "number" ? code : -32_603, message: String(message) };
}
