/** Creates the notifier from the settings. */
import type { EngineCore } from "../govern/core.ts";
import { createNotifier, type EventNotifier, type PersonalMessages } from "../notify/notifier.ts";
import type { ServiceApp } from "../operations/app.ts";

type Parts = Pick<ServiceApp, "settings" | "egress" | "log"> & {
  core: Pick<EngineCore, "env" | "redact">;
} & {
  personal?: PersonalMessages;
};

export function openNotifier({ settings, core, egress, log, personal }: Parts): EventNotifier {
  return createNotifier(
    {
      channels: settings.notifications.channels,
      approval_webhook: settings.notifications.approval_webhook,
      console_url: settings.console_url,
      environment: settings.environment,
      chat_actions: settings.chat.signing_secret !== null && settings.chat.users !== null,
    },
    { env: core.env, log, egress, redact: core.redact, personal },
  );
}
