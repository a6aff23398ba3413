/** Every command, in the order of the help. */
import type { Register } from "../context.ts";
import { registerApprovals } from "./approvals.ts";
import { registerExport } from "./export.ts";
import { registerHalt } from "./halt.ts";
import { registerKeys } from "./keys.ts";
import { registerKillSwitch } from "./kill-switch.ts";
import { registerPlan } from "./plan.ts";
import { registerPolicy } from "./policy.ts";
import { registerResolve } from "./resolve.ts";
import { registerRollback } from "./rollback.ts";
import { registerRuns } from "./runs.ts";
import { registerServer } from "./server.ts";
import { registerValidate } from "./validate.ts";

export const COMMANDS: readonly Register[] = [
  registerServer,
  registerValidate,
  registerPolicy,
  registerKeys,
  registerRuns,
  registerExport,
  registerPlan,
  registerRollback,
  registerResolve,
  registerApprovals,
  registerHalt,
  registerKillSwitch,
];
