/** Undo tools of a process that uses the commands from its settings. */
import { missingProgram } from "../../child-process/missing-program.ts";
import { compensatorCommand, readerCommand } from "../../child-process/rollback-commands.ts";
import type { LoadedSettings } from "../../config/settings.ts";
import type { ResolvePrincipal } from "../../govern/roles.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { JobTools } from "../../rollback/job.ts";
import type { ReaderFn } from "../../rollback/ports.ts";
import type { ServiceApp } from "../app.ts";
import { guardedUndo } from "../signing/approvers-guard.ts";

/** Null if no compensator is configured. */
export function commandTools(app: ServiceApp, today?: ResolvePrincipal): JobTools | null {
  const { compensator_cmd, reader_cmd, timeout_ms } = app.settings.rollback;
  if (compensator_cmd === null) return null;
  return {
    compensator: guardedUndo(app, compensatorCommand(compensator_cmd, { timeout_ms })),
    reader: commandReader(app.settings),
    own_reader: true,
    async unavailable(_tool, use) {
      const command = use === "undo" ? compensator_cmd : reader_cmd;
      const missing = command === null ? null : missingProgram(command);
      return missing === null ? null : `the program ${missing} cannot be started`;
    },
    stop: app.background.signal,
    today,
  };
}

/** Null if no reader is configured. */
export function commandReader({ rollback: { reader_cmd, timeout_ms } }: LoadedSettings): ReaderFn | null {
  if (reader_cmd === null) return null;
  return readerCommand(reader_cmd, { timeout_ms: Math.min(timeout_ms, SERVICE_LIMITS.read_timeout_ms) });
}
