/**
 * Whether the database would take a record now: one is written behind the last, in its place and large enough to need
 * room, and rolled back.
 */
import { randomBytes } from "node:crypto";
import { lock } from "./rounds.ts";
import type { PgSession } from "./session.ts";
import { BEGIN } from "./statements.ts";

/** More than a page, and nothing that compression could make small. */
const TRIAL_BYTES = 16_384;

const TRIAL = `
  INSERT INTO svc_ledger (seq, prev, hash, line, event, actor, ts_ms)
  SELECT records, hash, 'trial', $1, 'trial', 'trial', 0 FROM svc_head WHERE one`;

export async function tryRecord(session: PgSession): Promise<void> {
  const { client } = session;
  const line = randomBytes(TRIAL_BYTES).toString("base64");
  await session.together(() =>
    Promise.all([session.begin(BEGIN), lock(session), client.query(TRIAL, [line]), client.query("ROLLBACK")]),
  );
}
