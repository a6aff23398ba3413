/** What a drill needs from outside: functions that make the call, undo it and read back. */
import type { Json } from "../../../kernel/json.ts";
import type { Principal } from "../../../model/roles.ts";
import type { RunDoc } from "../../../model/run.ts";
import type { RollbackOptions } from "../../../rollback/execute.ts";
import type { Reader } from "../../../rollback/ports.ts";

/** How the call ended that a drill made: the accepted step with its result, or why there is none. */
export type Made = { step: number; result: Json | undefined } | { problem: string };

/** How drills reach the tools: a gateway's upstream, or an application's own functions. */
export interface DrillTools extends Pick<RollbackOptions, "compensator" | "objection" | "own_reader"> {
  reader: Reader;
  /** Makes the call as an agent's would be made: intent, execution, outcome. */
  make(run: RunDoc, principal: Principal, tool: string, args: Json): Promise<Made>;
}
