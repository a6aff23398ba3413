/** Opens the guard of a process that makes calls: the gateway, and the embedded library. */
import { join } from "node:path";
import { ApproversGuard } from "../../auth/approvers-guard.ts";
import type { ServiceApp } from "../app.ts";

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
