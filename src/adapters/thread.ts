/** A framework's thread as a run: the same id, opened once, and undone in one call with the framework's own tools. */
import { SvcError } from "../kernel/errors.ts";
import type { Json } from "../kernel/json.ts";
import type { RunOptions, Svc } from "../library/open.ts";
import type { Run } from "../library/run.ts";
import type { RollbackRequest } from "../library/transport.ts";
import type { RollbackReport } from "../rollback/report.ts";

/** A run, or the run of a thread by the thread's id. */
export type RunOrThread = Run | ((thread_id: string) => Run | Promise<Run>);

type ThreadOptions<S> = S extends { run(options: infer O): Promise<Run> } ? Omit<O, "run_id"> : never;

/** The run of a thread, a session or a conversation, whether it was opened before or not. */
export async function threadRun<S extends Opener>(
  svc: S,
  thread_id: string,
  options: ThreadOptions<S>,
): Promise<Run> {
  try {
    return await svc.attach(thread_id);
  } catch (error) {
    if (!isCode(error, "not_found")) throw error;
  }
  try {
    return await svc.run({ ...(options as RunOptions), run_id: thread_id });
  } catch (error) {
    // Opened meanwhile, by another request of the same thread.
    if (isCode(error, "conflict")) return svc.attach(thread_id);
    throw error;
  }
}

interface Opener extends Pick<Svc, "attach"> {
  run(options: RunOptions): Promise<Run>;
}

const isCode = (error: unknown, code: SvcError["code"]): boolean =>
  error instanceof SvcError && error.code === code;

/** Undoes everything that a run did; each undo is a call of one of the framework's own tools. */
export type Undo = (request?: Partial<RollbackRequest>) => Promise<RollbackReport>;

/** `find` answers how a tool of this name in the manifests is called, where there is such a tool. */
export function undoWith(
  run: Run,
  find: (tool: string) => ((args: Json, idempotency_key: string) => unknown) | undefined,
): Undo {
  return (request = {}) =>
    run.rollback({
      compensator: async ({ tool, args, idempotency_key }) => {
        const call = find(tool);
        if (call === undefined) throw new Error(`none of the tools is ${tool}, which undoes this step`);
        return call(args, idempotency_key);
      },
      ...request,
    });
}
