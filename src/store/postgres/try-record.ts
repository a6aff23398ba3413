/**
 * Whether the database would take a record now: one is written behind the last, in its place and large enough to need
 * room, and rolled back. On a connection of its own, so that no batch is in its way.
 */
import { randomBytes } from "node:crypto";
import { LIMITS } from "../../kernel/limits.ts";
import { failure } from "./failures.ts";
import { Session } from "./session.ts";
import * as sql from "./statements.ts";
import { timeLimit } from "./time-limit.ts";

const TRIAL_MS = LIMITS.store_deadline_ms * 0.8;
/** More than a page, and nothing that compression could make small. */
const TRIAL_BYTES = 16_384;

const TRIAL = `
  INSERT INTO svc_ledger (seq, prev, hash, line, event, actor, ts_ms)
  SELECT records, hash, 'trial', $1, 'trial', 'trial', 0 FROM svc_head WHERE one`;

export async function tryRecord(url: string): Promise<void> {
  const limit = timeLimit(TRIAL_MS);
  try {
    const session = await Session.open(url, { signal: limit.signal, setup: sql.WRITER_SETUP });
    try {
      const { client } = session;
      await session.until(limit.signal, async () => {
        await client.query(sql.BEGIN);
        await client.query(sql.LOCK);
        await client.query(TRIAL, [randomBytes(TRIAL_BYTES).toString("base64")]);
        await client.query("ROLLBACK");
      });
    } finally {
      await session.end();
    }
  } catch (error) {
    throw failure(error);
  } finally {
    limit.clear();
  }
}
