/** Compares transcripts and reports the agents of the machine, once a turn or a session is over. */
import type { HookClient, HookEvent } from "./clients/clients.ts";
import { listAgents } from "./inventory.ts";
import { reconcileSession, rememberTranscripts } from "./reconcile.ts";
import type { CallContext } from "./resident/services.ts";
import { reportMachine } from "./service.ts";
import type { HookSettings } from "./settings.ts";

/** Agents in one report. The service takes no more. */
const MAX_REPORTED = 1_000;

/** Continues after the answer: some clients give the hook of a session's end little time. */
export function lookAtTranscripts(
  client: HookClient,
  { session, session_over }: HookEvent,
  settings: HookSettings,
  { services }: CallContext,
): void {
  if (session_over)
    services.afterwards(() =>
      reportMachine(settings, listAgents({ ...settings, env: process.env }).slice(0, MAX_REPORTED)),
    );
  services.afterwards(async () =>
    session_over
      ? reconcileSession(settings, client, session)
      : rememberTranscripts(settings, client, session),
  );
}
