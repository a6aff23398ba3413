/** Drills through an upstream. The call takes the path of an agent's call, and the undo the path of a rollback. */
import type { CallerPrincipal } from "../govern/roles.ts";
import type { RunDoc } from "../govern/runs/run.ts";
import { invalidError, notFoundError } from "../kernel/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../kernel/json/json.ts";
import type { ServiceApp } from "../operations/app.ts";
import type { DrillCallResult } from "../operations/drills/ports.ts";
import { CallCancellation } from "./call/cancellation.ts";
import { governedCall } from "./call/governed-call.ts";
import { errorText, resultValue } from "./call/result.ts";
import type { McpGateway } from "./gateway.ts";
import { principalOwner } from "./session/session-connections.ts";

/** Implements `App.drills` for a gateway. */
export function drillsThrough(gateway: McpGateway): NonNullable<ServiceApp["drills"]> {
  return (named) => {
    const upstream = chosenUpstream(gateway, named);
    return {
      upstream,
      offers: (tool) => gateway.routes().get(tool)?.upstream.name === upstream,
      tools: {
        ...gateway.services.undo,
        reader: gateway.services.undo.reader!,
        make: (run, principal, tool, args) => make(gateway, run, principal, tool, args),
      },
    };
  };
}

function chosenUpstream({ upstreams }: McpGateway, named: string | undefined): string {
  const names = upstreams.map(({ name }) => name);
  if (named === undefined) {
    if (names.length === 1) return names[0]!;
    throw invalidError(`upstream: choose one of ${names.join(", ")}`);
  }
  if (!names.includes(named)) throw notFoundError(`no upstream is called ${JSON.stringify(named)}`);
  return named;
}

async function make(
  gateway: McpGateway,
  { run_id, mode, scope }: RunDoc,
  principal: CallerPrincipal,
  tool: string,
  args: JsonValue,
): Promise<DrillCallResult> {
  await gateway.settle();
  const route = gateway.routes().get(tool);
  const run = { run_id, mode, permissions: new Set(scope.permissions), open: async () => {} };
  const answer = await gateway.track(
    governedCall(gateway, {
      principal,
      run,
      tool,
      args: isJsonObject(args) ? args : {},
      meta: {},
      reason: `drill of ${tool}`,
      route,
      // The undo and the read-backs use the connection of the run's principal, and so must the call.
      holder: (upstream) => principalOwner(upstream, principal),
      rounds: false,
      envelope: {},
      cancellation: new CallCancellation(),
      session: {},
      log: () => {},
      drill: true,
    }),
  );
  return madeOf(answer);
}

function madeOf(answer: JsonObject): DrillCallResult {
  const meta = isJsonObject(answer["_meta"]) ? answer["_meta"] : {};
  const step = meta["svc/step"];
  if (typeof step !== "number") return { problem: `the call was not allowed: ${errorText(answer)}` };
  if (answer["isError"] === true) return { problem: `the call failed: ${errorText(answer)}` };
  return { step, result: resultValue(answer) };
}
