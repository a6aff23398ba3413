/**
 * Runs calls as tasks: the client gets a handle at once and asks for the result later. tasks-newer.ts and
 * tasks-older.ts contain the form of each protocol revision. A task lives in this process. If the process ends, a
 * waiting call was not made, and its approval request remains.
 */
import type { CallerPrincipal } from "../../govern/roles.ts";
import type { RuntimeEnv } from "../../kernel/env.ts";
import type { JsonObject } from "../../kernel/json/json.ts";
import type { ServiceLogger } from "../../telemetry/log.ts";
import { CallCancellation } from "../call/cancellation.ts";
import { asProtocolError, invalidParams } from "../session/mcp-server.ts";
import { type ReportProgress, withProgress } from "../tools/progress.ts";
import { type CallWait, declinesToWait } from "./protocol-wait.ts";

/** Limits of tasks in progress: in total and per principal. */
const UNDERWAY = 1_000;
const UNDERWAY_OF_ONE = 100;
/** Number of ended tasks that stay available, and for how long. */
const ENDED = 1_000;
const KEPT_MS = 600_000;
export const POLL_MS = 1_000;
const PAGE = 100;

export type TaskEnd =
  | { status: "completed"; result: JsonObject }
  | { status: "failed"; error: { code: number; message: string } }
  | { status: "cancelled" };

export interface CallTask extends CallWait {
  readonly id: string;
  readonly holder: string;
  readonly created_ms: number;
  readonly ttl_ms: number;
  readonly cancellation: CallCancellation;
  /** Called on every change of the task. */
  readonly changed: Set<() => void>;
  /** Resolves when the task has ended. */
  over: Promise<void>;
  updated_ms: number;
  /** Whether the client cancelled the task, which also withdraws its approval request. */
  given_up: boolean;
  end: TaskEnd | null;
}

/** Resolves to null if the task was cancelled before the call was made. */
type TaskWork = (task: CallTask) => Promise<JsonObject | null>;

export class TaskRegistry {
  private readonly env: RuntimeEnv;
  private readonly log: ServiceLogger;
  /** In order of creation. */
  private readonly tasks = new Map<string, CallTask>();

  constructor(env: RuntimeEnv, log: ServiceLogger) {
    this.env = env;
    this.log = log;
  }

  /** Starts a task. Null if too many are in progress. */
  begin({ id: holder }: CallerPrincipal, wait: CallWait, work: TaskWork): CallTask | null {
    this.forget();
    const underway = [...this.tasks.values()].filter(({ end }) => end === null);
    if (underway.length >= UNDERWAY) return null;
    if (underway.filter((task) => task.holder === holder).length >= UNDERWAY_OF_ONE) return null;
    const now = this.env.now();
    const task: CallTask = {
      ...wait,
      id: `tsk_${this.env.uuid()}`,
      holder,
      created_ms: now,
      updated_ms: now,
      ttl_ms: wait.wait_ms + KEPT_MS,
      cancellation: new CallCancellation(),
      changed: new Set(),
      over: Promise.resolve(),
      given_up: false,
      end: null,
    };
    this.tasks.set(task.id, task);
    task.over = work(task).then(
      (result) => this.end(task, result === null ? { status: "cancelled" } : { status: "completed", result }),
      (error) => {
        const { code, message } = asProtocolError(error, this.log);
        this.end(task, { status: "failed", error: { code, message } });
      },
    );
    return task;
  }

  /** Throws the same error for a task that never existed, was forgotten, or belongs to another principal. */
  find(method: string, { taskId }: JsonObject, { id: holder }: CallerPrincipal): CallTask {
    const task = typeof taskId === "string" ? this.tasks.get(taskId) : undefined;
    if (task === undefined || task.holder !== holder)
      throw invalidParams(`${method}: unknown task; it may have expired or belong to another principal`);
    return task;
  }

  /** The principal's tasks, oldest first, and the cursor of the next page. */
  list({ id: holder }: CallerPrincipal, cursor: unknown): { tasks: CallTask[]; next: string | null } {
    const own = [...this.tasks.values()].filter((task) => task.holder === holder);
    const last = own.findIndex(({ id }) => id === cursor);
    if (cursor !== undefined && last === -1)
      throw invalidParams("tasks/list: unknown cursor; start again without one");
    const tasks = own.slice(last + 1, last + 1 + PAGE);
    return { tasks, next: own.length > last + 1 + PAGE ? tasks.at(-1)!.id : null };
  }

  /** Updates the state that the task waits for. */
  waits(task: CallTask, { message, inputRequests }: CallWait): void {
    this.change(task, { message, inputRequests });
  }

  /** Handles the client's answer, which decides nothing. A user who declines to wait ends the wait. */
  answered(task: CallTask, params: JsonObject): void {
    if (task.end !== null || task.inputRequests === null) return;
    const declined = Object.keys(task.inputRequests).some((question) => declinesToWait(params, question));
    this.change(task, { inputRequests: null });
    if (declined) task.cancellation.cancel();
  }

  /** Resolves when the task has ended, and reports progress until then. */
  async held(task: CallTask, progress: ReportProgress | undefined): Promise<void> {
    if (task.end !== null) return;
    const total = Math.ceil(task.wait_ms / 1_000);
    await withProgress(
      this.env,
      progress,
      total,
      () => task.over,
      () => task.message,
    );
  }

  /** Cancels the task, and resolves when it has ended. */
  async giveUp(task: CallTask): Promise<void> {
    if (task.end !== null) return;
    task.given_up = true;
    task.cancellation.cancel();
    await task.over;
  }

  private end(task: CallTask, end: TaskEnd): void {
    this.change(task, end.status === "completed" ? { end, message: "the call was answered" } : { end });
    task.changed.clear();
  }

  private change(task: CallTask, to: Partial<CallTask>): void {
    Object.assign(task, to, { updated_ms: this.env.now() });
    for (const tell of task.changed) tell();
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
