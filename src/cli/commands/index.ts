/** Every command, in the order of the help. */
import type { Register } from "../context.ts";
import { registerExport } from "./export.ts";
import { registerHalt } from "./halt.ts";
import { registerKillSwitch } from "./kill-switch.ts";
import { registerResolve } from "./resolve.ts";
import { registerRuns } from "./runs.ts";
import { registerServer } from "./server.ts";
import { registerValidate } from "./validate.ts";

export const COMMANDS: readonly Register[] = [
  registerServer,
  registerValidate,
  registerRuns,
  registerExport,
  registerResolve,
  registerHalt,
  registerKillSwitch,
];
