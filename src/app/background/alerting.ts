/** Looks at the alerts every few seconds and has the notifier tell people of what changed. */
import { evaluateAlerts } from "../../alerts/evaluate.ts";
import type { Alert } from "../../alerts/kinds.ts";
import { dueMessages } from "../../alerts/manager.ts";
import type { App } from "../app.ts";

/** Every refused credential up to now counts, also those that this process has not added to the window yet. */
export async function standingAlerts({ core, settings, refusedCredentials }: App): Promise<Alert[]> {
  // A store that takes no writes must not hide the other alerts.
  await refusedCredentials?.flush(core).catch(() => undefined);
  return evaluateAlerts(core, settings.alerts);
}

export async function sendAlerts(app: App): Promise<void> {
  const { core, settings, notifier } = app;
  if (notifier === null || notifier.channels().length === 0) return;
  const standing = await standingAlerts(app);
  for (const message of await dueMessages(core, standing, settings.alerts.remind_ms)) {
    const { alert } = message;
    if (message.what === "resolved")
      notifier.notify({ event: "alert_resolved", ...alert, resolved_ms: message.resolved_ms });
    else notifier.notify({ event: "alert", ...alert, reminder: message.what === "reminder" });
  }
}
