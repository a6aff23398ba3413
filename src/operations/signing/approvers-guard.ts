/** Opens the guard of a process that makes calls or undoes them. */
import { join } from "node:path";
import { ApproversGuard } from "../../auth/approvers-guard.ts";
import { guardedCompensator } from "../../auth/guarded-undo.ts";
import type { CompensatorFn } from "../../rollback/ports.ts";
import type { ServiceApp } from "../app.ts";
import { undoSignatures } from "./signatures.ts";

/** Null without an approvers file. Throws if the file is missing or not valid. */
export function openApproversGuard({
  settings,
  core,
  log,
}: Pick<ServiceApp, "settings" | "core" | "log">): Promise<ApproversGuard | null> {
  if (settings.approvers === null) return Promise.resolve(null);
  const used = join(settings.data, "used-approvals");
  const warn = (message: string, fields?: Record<string, unknown>) => log.warn(message, fields);
  return ApproversGuard.open({ file: settings.approvers, used, env: core.env, warn });
}

/** Undoes under the approvers file of the settings, which is opened on first use. */
export function guardedUndo(app: ServiceApp, compensate: CompensatorFn): CompensatorFn {
  let opened: ReturnType<typeof openApproversGuard> | undefined;
  const guardOf = () => {
    opened ??= openApproversGuard(app).catch((error: unknown) => {
      opened = undefined;
      throw error;
    });
    return opened;
  };
  return guardedCompensator(guardOf, (run_id, step) => undoSignatures(app, run_id, step), compensate);
}
