/**
 * Test write: appends a record that is large enough to need disk space, and rolls it back. Succeeds only if the
 * database accepts records now.
 */
import { randomBytes } from "node:crypto";
import type { PgSession } from "./connect/session.ts";
import { lockHead } from "./round-trips.ts";
import { BEGIN_SQL } from "./statements.ts";

/** More than a page of random bytes, which do not compress. */
const TRIAL_BYTES = 16_384;

const TRIAL = `
  INSERT INTO svc_ledger (seq, prev, hash, line, event, actor, ts_ms)
  SELECT records, hash, 'trial', $1, 'trial', 'trial', 0 FROM svc_head WHERE one`;

export async function tryRecord(session: PgSession): Promise<void> {
  const { client } = session;
  const line = randomBytes(TRIAL_BYTES).toString("base64");
  await session.together(() =>
    Promise.all([
      session.begin(BEGIN_SQL),
      lockHead(session),
      client.query(TRIAL, [line]),
      client.query("ROLLBACK"),
    ]),
  );
}
