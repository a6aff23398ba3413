/** Maps a thread of a framework to a run with the same id, and undoes that run with the framework's own tools. */
import { SvcError } from "../kernel/errors.ts";
import type { JsonValue } from "../kernel/json/json.ts";
import type { EmbeddedSvc, RunOptions } from "../library/open.ts";
import type { AgentRun } from "../library/run.ts";
import type { RollbackRequest } from "../library/transport.ts";
import type { RollbackReport } from "../rollback/plan/report.ts";

/** A run, or a function that returns the run of a thread id. */
export type RunOrThread = AgentRun | ((thread_id: string) => AgentRun | Promise<AgentRun>);

type ThreadOptions<S> = S extends { run(options: infer O): Promise<AgentRun> } ? Omit<O, "run_id"> : never;

/** Returns the run of a thread, session or conversation, and opens it if it does not exist yet. */
export async function threadRun<S extends Opener>(
  svc: S,
  thread_id: string,
  options: ThreadOptions<S>,
): Promise<AgentRun> {
  try {
    return await svc.attach(thread_id);
  } catch (error) {
    if (!isCode(error, "not_found")) throw error;
  }
  try {
    return await svc.run({ ...(options as RunOptions), run_id: thread_id });
  } catch (error) {
    // Another request of the same thread opened the run in the meantime.
    if (isCode(error, "conflict")) return svc.attach(thread_id);
    throw error;
  }
}

interface Opener extends Pick<EmbeddedSvc, "attach"> {
  run(options: RunOptions): Promise<AgentRun>;
}

const isCode = (error: unknown, code: SvcError["code"]): boolean =>
  error instanceof SvcError && error.code === code;

/** Undoes all steps of a run. Each undo calls one of the framework's tools. */
export type UndoRun = (request?: Partial<RollbackRequest>) => Promise<RollbackReport>;

/** Returns an undo for the run. `find` returns the function behind a tool name of the manifests, or undefined. */
export function undoWith(
  run: AgentRun,
  find: (tool: string) => ((args: JsonValue, idempotency_key: string) => unknown) | undefined,
): UndoRun {
  return (request = {}) =>
    run.rollback({
      compensator: async ({ tool, args, idempotency_key }) => {
        const call = find(tool);
        if (call === undefined)
          throw new Error(`${tool} undoes this step, but none of the tools has this name`);
        return call(args, idempotency_key);
      },
      ...request,
    });
}
