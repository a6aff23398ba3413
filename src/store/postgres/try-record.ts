/** Whether the database would take a record now: tried on a connection of its own, so that no batch is in its way. */
import { LIMITS } from "../../kernel/limits.ts";
import { failure } from "./failures.ts";
import { tryRecord } from "./rounds.ts";
import { Session } from "./session.ts";
import { WRITER_SETTINGS } from "./settings.ts";
import { timeLimit } from "./time-limit.ts";

const TRIAL_MS = LIMITS.store_deadline_ms * 0.8;

export async function tryRecordAt(url: string): Promise<void> {
  const limit = timeLimit(TRIAL_MS);
  try {
    const session = await Session.openPatiently(url, { signal: limit.signal, settings: WRITER_SETTINGS });
    try {
      await session.until(limit.signal, () => tryRecord(session));
    } finally {
      await session.end();
    }
  } catch (error) {
    throw failure(error);
  } finally {
    limit.clear();
  }
}
