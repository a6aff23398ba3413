/** Evaluates the alerts every few seconds and sends notifications for changes. */
import { evaluateAlerts } from "../../alerts/evaluate.ts";
import type { ActiveAlert } from "../../alerts/kinds.ts";
import { dueAlertMessages } from "../../alerts/manager.ts";
import type { ServiceApp } from "../app.ts";

/** Evaluates the alerts, including refused credentials that this process has not yet added to the shared window. */
export async function activeAlerts({
  core,
  settings,
  refusedCredentials,
}: ServiceApp): Promise<ActiveAlert[]> {
  // A read-only store must not hide the other alerts.
  await refusedCredentials?.flush(core).catch(() => undefined);
  return evaluateAlerts(core, settings.alerts);
}

export async function sendAlerts(app: ServiceApp): Promise<void> {
  const { core, settings, notifier } = app;
  if (notifier === null || !(await notifier.isHeard())) return;
  const active = await activeAlerts(app);
  for (const message of await dueAlertMessages(core, active, settings.alerts.remind_ms)) {
    const { group: _, actor: __, ...alert } = message.alert;
    if (message.what === "resolved")
      notifier.notify({ event: "alert_resolved", ...alert, resolved_ms: message.resolved_ms });
    else notifier.notify({ event: "alert", ...alert, reminder: message.what === "reminder" });
  }
}
