/** External functions of a drill: they make the call, undo it and read the state. */
import type { CallerPrincipal } from "../../govern/roles.ts";
import type { RunDoc } from "../../govern/runs/run.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import type { ReaderFn } from "../../rollback/ports.ts";
import type { RollbackOptions } from "../../rollback/undo/execute.ts";

/** Result of the drill's call: the accepted step with its result, or the problem. */
export type DrillCallResult = { step: number; result: JsonValue | undefined } | { problem: string };

/** Access to the tools for drills: a gateway's upstream, or an application's own functions. */
export interface DrillTools extends Pick<RollbackOptions, "compensator" | "objection" | "own_reader"> {
  reader: ReaderFn;
  /** Makes the call as an agent would: intent, execution, outcome. */
  make(run: RunDoc, principal: CallerPrincipal, tool: string, args: JsonValue): Promise<DrillCallResult>;
}
