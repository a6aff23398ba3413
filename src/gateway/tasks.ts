/**
 * Calls as tasks: answered with a handle at once, and what becomes of them is asked for later. What each protocol
 * revision says of a task is in tasks-newer.ts and tasks-older.ts. A task lives in this process. Where that ends, a
 * call that waited was not made, and its request for approval stands.
 */
import type { Env } from "../kernel/env.ts";
import type { JsonObject } from "../kernel/json.ts";
import type { Principal } from "../model/roles.ts";
import type { Logger } from "../telemetry/log.ts";
import { Cancellation } from "./cancellation.ts";
import { type CallWait, declined } from "./native-wait.ts";
import { asProtocolError, invalidParams } from "./peer.ts";
import { type Progress, tellingProgress } from "./tools/progress.ts";

/** How many are under way at once at most, of all and of one principal. */
const UNDERWAY = 1_000;
const UNDERWAY_OF_ONE = 100;
/** How many that ended are kept for those who have not asked yet, and for how long. */
const ENDED = 1_000;
const KEPT_MS = 600_000;
export const POLL_MS = 1_000;
const PAGE = 100;

export type End =
  | { status: "completed"; result: JsonObject }
  | { status: "failed"; error: { code: number; message: string } }
  | { status: "cancelled" };

export interface Task extends CallWait {
  readonly id: string;
  readonly holder: string;
  readonly created_ms: number;
  readonly ttl_ms: number;
  readonly cancellation: Cancellation;
  /** Called whenever it becomes another. */
  readonly changed: Set<() => void>;
  /** Resolves once it has ended. */
  over: Promise<void>;
  updated_ms: number;
  /** Its client wants it no more, and takes back what it asked for. */
  given_up: boolean;
  end: End | null;
}

/** Answers null where the call was not made because the task was cancelled. */
type TaskWork = (task: Task) => Promise<JsonObject | null>;

export class Tasks {
  private readonly env: Env;
  private readonly log: Logger;
  /** In the order in which they began. */
  private readonly tasks = new Map<string, Task>();

  constructor(env: Env, log: Logger) {
    this.env = env;
    this.log = log;
  }

  /** What is under way from now on, or null where too much is. */
  begin({ id: holder }: Principal, wait: CallWait, work: TaskWork): Task | null {
    this.forget();
    const underway = [...this.tasks.values()].filter(({ end }) => end === null);
    if (underway.length >= UNDERWAY) return null;
    if (underway.filter((task) => task.holder === holder).length >= UNDERWAY_OF_ONE) return null;
    const now = this.env.now();
    const task: Task = {
      ...wait,
      id: `tsk_${this.env.uuid()}`,
      holder,
      created_ms: now,
      updated_ms: now,
      ttl_ms: wait.wait_ms + KEPT_MS,
      cancellation: new Cancellation(),
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

  /** Throws alike for a task that never was, that was forgotten, and that is another's. */
  find(method: string, { taskId }: JsonObject, { id: holder }: Principal): Task {
    const task = typeof taskId === "string" ? this.tasks.get(taskId) : undefined;
    if (task === undefined || task.holder !== holder)
      throw invalidParams(`${method}: unknown task; it has ended long ago, or was another's`);
    return task;
  }

  /** The principal's, oldest first, and where to go on. */
  list({ id: holder }: Principal, cursor: unknown): { tasks: Task[]; next: string | null } {
    const own = [...this.tasks.values()].filter((task) => task.holder === holder);
    const last = own.findIndex(({ id }) => id === cursor);
    if (cursor !== undefined && last === -1) throw invalidParams("tasks/list: unknown cursor; begin anew");
    const tasks = own.slice(last + 1, last + 1 + PAGE);
    return { tasks, next: own.length > last + 1 + PAGE ? tasks.at(-1)!.id : null };
  }

  /** It waits for something else than before. */
  waits(task: Task, { message, inputRequests }: CallWait): void {
    this.change(task, { message, inputRequests });
  }

  /** Whatever the client answers decides nothing; that its person does not want to wait ends the wait. */
  answered(task: Task, params: JsonObject): void {
    if (task.end !== null || task.inputRequests === null) return;
    this.change(task, { inputRequests: null });
    if (declined(params)) task.cancellation.cancel();
  }

  /** Resolves once it has ended, and tells of progress until then. */
  async held(task: Task, progress: Progress | undefined): Promise<void> {
    if (task.end !== null) return;
    const total = Math.ceil(task.wait_ms / 1_000);
    await tellingProgress(
      this.env,
      progress,
      total,
      () => task.over,
      () => task.message,
    );
  }

  /** Resolves once nothing more becomes of it. */
  async giveUp(task: Task): Promise<void> {
    if (task.end !== null) return;
    task.given_up = true;
    task.cancellation.cancel();
    await task.over;
  }

  private end(task: Task, end: End): void {
    this.change(task, end.status === "completed" ? { end, message: "the call has its answer" } : { end });
    task.changed.clear();
  }

  private change(task: Task, to: Partial<Task>): void {
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
