/** Looks at the alerts every few seconds and has the notifier tell people of what changed. */
import { evaluateAlerts } from "../alerts/evaluate.ts";
import { dueMessages } from "../alerts/manager.ts";
import type { App } from "./app.ts";

export async function sendAlerts(app: App): Promise<void> {
  const { core, settings, notifier } = app;
  if (notifier === null || notifier.channels().length === 0) return;
  const standing = await evaluateAlerts(core, settings.alerts);
  for (const message of await dueMessages(core, standing, settings.alerts.remind_ms)) {
    const { alert } = message;
    if (message.what === "resolved")
      notifier.notify({ event: "alert_resolved", ...alert, resolved_ms: message.resolved_ms });
    else notifier.notify({ event: "alert", ...alert, reminder: message.what === "reminder" });
  }
}
