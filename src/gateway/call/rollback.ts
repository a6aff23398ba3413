/** Undoes steps through the upstreams. Compensations and read-backs are tool calls that the manifests define. */

import type { ApproversGuard } from "../../auth/approvers-guard.ts";
import { guardedCompensator } from "../../auth/guarded-undo.ts";
import { ToolAnsweredError } from "../../govern/decide/effect-check.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../kernel/json/json.ts";
import type { ServiceApp } from "../../operations/app.ts";
import { runFacts } from "../../operations/pipeline/access.ts";
import { undoSignatures } from "../../operations/signing/signatures.ts";
import type { StateReader } from "../../rollback/plan/current-state.ts";
import type { CompensatorFn, ReaderFn, UndoObjection } from "../../rollback/ports.ts";
import type { ToolRoute } from "../catalog/catalog.ts";
import { principalOwner, type RunConnections } from "../session/session-connections.ts";
import type { ConnectionOwner } from "../upstream/connection-pool.ts";
import { failureOf, isTimeout } from "../upstream/failure.ts";
import type { UpstreamServer } from "../upstream/upstream.ts";
import { CallCancellation } from "./cancellation.ts";
import { errorText, resultValue } from "./result.ts";

const IDEMPOTENCY_META = "svc/idempotency_key";

type Routes = () => ReadonlyMap<string, ToolRoute>;

/** Functions of an undo through the upstreams. Callers use the complete set. */
export interface UpstreamUndo extends StateReader {
  compensator: CompensatorFn;
  objection: UndoObjection;
  /** Explains why an undo with this tool would not run. Null if it would. */
  unavailable(tool: string): Promise<string | null>;
  own_reader: true;
  /** Reads over given connections, such as those of a call. */
  readerOver(holder: OwnerOf): ReaderFn;
}

/** Returns the connection owner for an upstream. Undefined if all callers share one connection. */
export type OwnerOf = (upstream: UpstreamServer) => ConnectionOwner | undefined;

interface Pinned {
  guard: ApproversGuard | null;
  app: ServiceApp;
  /** Updates the pins, and waits for starting servers that may offer these tools. */
  reached(tools: readonly string[]): Promise<void>;
  routes: Routes;
  /** Reasons to block a call of this route. */
  objections(route: ToolRoute): readonly string[];
  sessions: Pick<RunConnections, "holder">;
}

export function undoThroughUpstreams(pinned: Pinned): UpstreamUndo {
  const routes: Routes = () => pinned.routes();
  const callFor: CallFor = async (run_id, plain) =>
    callPlainly(routes, await holdersOf(pinned, run_id), plain);
  return {
    compensator: guardedCompensator(
      () => pinned.guard,
      (run_id, step) => undoSignatures(pinned.app, run_id, step),
      compensatorOf(callFor),
    ),
    reader: readerOf(callFor),
    readerOver: (holder) => readerOf((_, plain) => callPlainly(routes, holder, plain)),
    own_reader: true,
    async unavailable(tool) {
      await pinned.reached([tool]);
      const route = routes().get(tool);
      if (route === undefined) return `no upstream offers ${tool}`;
      return pinned.objections(route)[0] ?? null;
    },
    /** An undo must not call a tool that agents cannot call because it changed since its approval. */
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

/** Sends the idempotency key with the call, for upstreams that recognize repeats. All attempts use the same key. */
function compensatorOf(callFor: CallFor): CompensatorFn {
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

function readerOf(callFor: CallFor): ReaderFn {
  return async ({ tool, arguments: args }, signal, run_id) => {
    const value = resultValue(await callFor(run_id, { tool, args, meta: {}, signal }));
    if (value === undefined) throw new Error(`${tool} answered with values that cannot be compared exactly`);
    return value;
  };
}

interface PlainCall {
  tool: string;
  args: JsonValue;
  meta: JsonObject;
  signal: AbortSignal;
}
type CallFor = (run_id: string | undefined, call: PlainCall) => Promise<JsonObject>;

/** Chooses connections that show the agent's state: the session's own, or else the principal's. */
async function holdersOf({ app, sessions }: Pinned, run_id: string | undefined): Promise<OwnerOf> {
  const principal = run_id === undefined ? undefined : (await runFacts(app, run_id))?.principal;
  if (run_id === undefined || principal === undefined) return () => undefined;
  return (upstream) => sessions.holder(run_id, upstream) ?? principalOwner(upstream, { id: principal });
}

async function callPlainly(
  routes: Routes,
  holder: OwnerOf,
  { tool, args, meta, signal }: PlainCall,
): Promise<JsonObject> {
  const route = routes().get(tool);
  if (route === undefined) throw new Error(`no upstream offers ${tool}`);
  const { upstream, name, definition } = route;
  const params: JsonObject = { arguments: isJsonObject(args) ? args : {} };
  if (Object.keys(meta).length > 0) params["_meta"] = meta;
  const { timeout_ms } = upstream.spec;
  const cancellation = new CallCancellation();
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
  if (result["isError"] === true) throw new ToolAnsweredError(upstream.hide(errorText(result)));
  if (result["resultType"] === "input_required")
    throw new Error(`${tool} asks for input, which is not available here`);
  return result;
}
