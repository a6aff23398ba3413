/** The notifier that the settings describe. */
import type { Core } from "../../engine/core.ts";
import { createNotifier, type Notifier } from "../../notify/notifier.ts";
import type { App } from "../app.ts";

type Parts = Pick<App, "settings" | "egress" | "log"> & { core: Pick<Core, "env" | "redact"> };

export function openNotifier({ settings, core, egress, log }: Parts): Notifier {
  return createNotifier(
    {
      channels: settings.notifications.channels,
      approval_webhook: settings.notifications.approval_webhook,
      console_url: settings.console_url,
      environment: settings.environment,
      chat_actions: settings.chat.signing_secret !== null && settings.chat.users !== null,
    },
    { env: core.env, log, egress, redact: core.redact },
  );
}
