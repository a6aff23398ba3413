/** Drills through an upstream: the call goes the way of an agent's, and the undo the way of a rollback's. */
import type { App } from "../app/app.ts";
import type { Made } from "../app/operations/drills/ports.ts";
import { invalid, notFound } from "../kernel/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../kernel/json.ts";
import type { Principal } from "../model/roles.ts";
import type { RunDoc } from "../model/run.ts";
import { governedCall } from "./call.ts";
import { Cancellation } from "./cancellation.ts";
import type { Gateway } from "./gateway.ts";
import { principalHolder } from "./own-links.ts";
import { errorText, resultValue } from "./result.ts";

/** What `App.drills` is on a gateway. */
export function drillsThrough(gateway: Gateway): NonNullable<App["drills"]> {
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

function chosenUpstream({ upstreams }: Gateway, named: string | undefined): string {
  const names = upstreams.map(({ name }) => name);
  if (named === undefined) {
    if (names.length === 1) return names[0]!;
    throw invalid(`upstream: which one? there are ${names.join(", ")}`);
  }
  if (!names.includes(named)) throw notFound(`no upstream is called ${JSON.stringify(named)}`);
  return named;
}

async function make(
  gateway: Gateway,
  { run_id, mode, scope }: RunDoc,
  principal: Principal,
  tool: string,
  args: Json,
): Promise<Made> {
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
      // The undo and the read-backs go over the connection of the run's principal; so does the call.
      holder: (upstream) => principalHolder(upstream, principal.id),
      rounds: false,
      envelope: {},
      cancellation: new Cancellation(),
      session: {},
      log: () => {},
      drill: true,
    }),
  );
  return madeOf(answer);
}

function madeOf(answer: JsonObject): Made {
  const meta = isJsonObject(answer["_meta"]) ? answer["_meta"] : {};
  const step = meta["svc/step"];
  if (typeof step !== "number") return { problem: `the call was not allowed: ${errorText(answer)}` };
  if (answer["isError"] === true) return { problem: `the call failed: ${errorText(answer)}` };
  return { step, result: resultValue(answer) };
}
