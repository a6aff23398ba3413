/** Undoing through the upstreams: compensations and read-backs are calls of tools, as the manifests say. */
import type { App } from "../app/app.ts";
import { runFacts } from "../app/door/access.ts";
import { isJsonObject, type Json, type JsonObject } from "../kernel/json.ts";
import type { Lookout } from "../rollback/look.ts";
import type { Compensator, Reader, UndoObjection } from "../rollback/ports.ts";
import { Cancellation } from "./cancellation.ts";
import type { Route } from "./catalog.ts";
import { principalHolder, type RunSessions } from "./own-links.ts";
import { errorText, resultValue } from "./result.ts";
import { failureOf, isTimeout } from "./upstream/failure.ts";
import type { Holder } from "./upstream/pool.ts";
import type { Upstream } from "./upstream/upstream.ts";

const IDEMPOTENCY_META = "svc/idempotency_key";

type Routes = () => ReadonlyMap<string, Route>;

/** All that an undo through the upstreams goes by; whoever undoes takes all of it. */
export interface UpstreamUndo extends Lookout {
  compensator: Compensator;
  objection: UndoObjection;
  /** Why an undo by this tool would not be run; null where it would. */
  unavailable(tool: string): Promise<string | null>;
  own_reader: true;
  /** Reads over connections that are known, such as those of a call. */
  readerOver(holder: HolderOf): Reader;
}

/** Whose connection to an upstream a request goes over; undefined where all share one. */
export type HolderOf = (upstream: Upstream) => Holder | undefined;

interface Pinned {
  app: App;
  /** The names are settled, and servers that offer these tools have come where they are coming. */
  reached(tools: readonly string[]): Promise<void>;
  routes: Routes;
  /** What to hold against a call of this route. */
  objections(route: Route): readonly string[];
  sessions: Pick<RunSessions, "holder">;
}

export function undoThroughUpstreams(pinned: Pinned): UpstreamUndo {
  const routes: Routes = () => pinned.routes();
  const callFor: CallFor = async (run_id, plain) =>
    callPlainly(routes, await holdersOf(pinned, run_id), plain);
  return {
    compensator: compensatorOf(callFor),
    reader: readerOf(callFor),
    readerOver: (holder) => readerOf((_, plain) => callPlainly(routes, holder, plain)),
    own_reader: true,
    async unavailable(tool) {
      await pinned.reached([tool]);
      const route = routes().get(tool);
      if (route === undefined) return `no upstream offers ${tool}`;
      return pinned.objections(route)[0] ?? null;
    },
    /** What agents may not call because it is no longer the tool that was approved, an undo does not call either. */
    async objection(tools) {
      await pinned.reached(tools);
      for (const tool of tools) {
        const route = routes().get(tool);
        const [objection] = route === undefined ? [] : pinned.objections(route);
        if (objection !== undefined)
          return `not tried, an operator is needed for ${tool}: ${objection}. Then roll back again`;
      }
      return null;
    },
  };
}

/** The key goes with the call, for upstreams that can tell a repeat; it is the same on every try. */
function compensatorOf(callFor: CallFor): Compensator {
  return async ({ tool, args, idempotency_key, run_id, step, original_tool }, signal) => {
    const meta = {
      [IDEMPOTENCY_META]: idempotency_key,
      "svc/run_id": run_id,
      "svc/step": step,
      "svc/original_tool": original_tool,
    };
    await callFor(run_id, { tool, args, meta, signal });
  };
}

function readerOf(callFor: CallFor): Reader {
  return async ({ tool, arguments: args }, signal, run_id) => {
    const value = resultValue(await callFor(run_id, { tool, args, meta: {}, signal }));
    if (value === undefined) throw new Error(`${tool} answered with values that cannot be compared exactly`);
    return value;
  };
}

interface PlainCall {
  tool: string;
  args: Json;
  meta: JsonObject;
  signal: AbortSignal;
}
type CallFor = (run_id: string | undefined, call: PlainCall) => Promise<JsonObject>;

/** Undos and their reads see what the agent saw: over its session's own connection, else over its principal's. */
async function holdersOf({ app, sessions }: Pinned, run_id: string | undefined): Promise<HolderOf> {
  const principal = run_id === undefined ? undefined : (await runFacts(app, run_id))?.principal;
  if (run_id === undefined || principal === undefined) return () => undefined;
  return (upstream) => sessions.holder(run_id, upstream) ?? principalHolder(upstream, principal);
}

async function callPlainly(
  routes: Routes,
  holder: HolderOf,
  { tool, args, meta, signal }: PlainCall,
): Promise<JsonObject> {
  const route = routes().get(tool);
  if (route === undefined) throw new Error(`no upstream offers ${tool}`);
  const { upstream, name, definition } = route;
  const params: JsonObject = { arguments: isJsonObject(args) ? args : {} };
  if (Object.keys(meta).length > 0) params["_meta"] = meta;
  const { timeout_ms } = upstream.spec;
  const cancellation = new Cancellation();
  const letGo = cancellation.follow(signal);
  let result: JsonObject;
  try {
    const options = { timeout_ms, cancellation };
    result = await upstream.callTool(name, definition, params, options, holder(upstream));
  } catch (error) {
    signal.throwIfAborted();
    if (isTimeout(error)) throw new Error(`upstream ${upstream.name} did not answer within ${timeout_ms} ms`);
    throw new Error(`upstream ${upstream.name}: ${upstream.hide(failureOf(error).message)}`);
  } finally {
    letGo();
  }
  if (result["isError"] === true) throw new Error(upstream.hide(errorText(result)));
  if (result["resultType"] === "input_required")
    throw new Error(`${tool} asks for input, which nobody here can give`);
  return result;
}
