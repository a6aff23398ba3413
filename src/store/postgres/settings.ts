/**
 * What a connection is told about how to work. A connection of our own is told once; behind a pooler, which lends
 * another server connection to each transaction, every transaction is told, and nothing stays behind for strangers.
 */
import { LIMITS } from "../../kernel/limits.ts";

/** By name; each value is an SQL expression. */
export type PgSettings = Readonly<Record<string, string>>;

const OFF = "'off'";

/**
 * Plans are made once and kept, perhaps while the tables are still empty, so a plan that reads a whole
 * table must not even be thought of. A session that stands still with the head locked is ended by the
 * server before those that wait for the head give up. The statement timeout comes after everybody has
 * left: cancelling a COMMIT that waits for a standby would call it done.
 */
export const WRITER_SETTINGS: PgSettings = {
  synchronous_commit:
    "CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END",
  lock_timeout: `'${LIMITS.store_deadline_ms * 0.7}'`,
  statement_timeout: `'${LIMITS.store_deadline_ms * 2}'`,
  idle_in_transaction_session_timeout: `'${LIMITS.store_deadline_ms * 0.5}'`,
  plan_cache_mode: "'force_generic_plan'",
  enable_seqscan: OFF,
  enable_bitmapscan: OFF,
  enable_hashjoin: OFF,
  enable_mergejoin: OFF,
  jit: OFF,
  client_min_messages: "'warning'",
};

/**
 * Every page is read along an index that has its order, and ends where the page is full. Without figures
 * about a table that just grew, the planner would rather collect all matches and sort them.
 */
export const READER_SETTINGS: PgSettings = {
  statement_timeout: `'${LIMITS.store_deadline_ms * 0.8}'`,
  jit: OFF,
  enable_bitmapscan: OFF,
  enable_sort: OFF,
};

export function settingsSql(settings: PgSettings, scope: "session" | "transaction"): string {
  const calls = Object.entries(settings).map(
    ([name, value]) => `set_config('${name}', ${value}, ${scope === "transaction"})`,
  );
  return `SELECT ${calls.join(", ")}`;
}
