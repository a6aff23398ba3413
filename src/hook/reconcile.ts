/** Compares a session's transcripts with its run, and remembers how far they were read. */
import { type HookClient, runOfSession } from "./clients/clients.ts";
import { reportCalls } from "./service.ts";
import { keepSeen, readSession, type SessionState } from "./sessions.ts";
import type { HookSettings } from "./settings.ts";
import type { TranscriptCall } from "./transcripts/lines.ts";
import { readTranscripts, type SeenFiles } from "./transcripts/transcripts.ts";

const MAX_CALLS = 10_000;

export type SessionReading = { calls: TranscriptCall[]; seen: SeenFiles } | { not_checked: string };

/** The calls of a session, or why they cannot be compared. */
export function readSessionCalls(client: HookClient, state: SessionState): SessionReading {
  const read = readTranscripts(client, state.transcripts ?? [], state.seen);
  if ("calls" in read && read.calls.length > MAX_CALLS)
    return { not_checked: `the transcripts name more than ${MAX_CALLS} calls` };
  return read;
}

/** Remembers the current transcripts, so that a shorter or changed one is noticed later. */
export function rememberTranscripts(settings: HookSettings, client: HookClient, session: string): void {
  const state = readSession(settings.folder, client, session);
  if (state === null) return;
  const read = readSessionCalls(client, state);
  if ("seen" in read) keepSeen(settings.folder, client, session, read.seen);
}

/** Reports the calls of a session that ended. Without a readable transcript there is nothing to report. */
export async function reconcileSession(
  settings: HookSettings,
  client: HookClient,
  session: string,
): Promise<void> {
  const state = readSession(settings.folder, client, session);
  if (state === null || !state.governed) return;
  const read = readSessionCalls(client, state);
  if ("not_checked" in read) return;
  keepSeen(settings.folder, client, session, read.seen);
  await reportCalls(settings, runOfSession(client, session), client, read.calls);
}
