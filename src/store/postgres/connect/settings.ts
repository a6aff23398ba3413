/**
 * Session settings. A direct connection gets them once. Behind a pooler, which assigns another server connection to
 * each transaction, every transaction gets them, and they do not leak to other clients.
 */
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";

/** SQL expressions by setting name. */
export type PgSettings = Readonly<Record<string, string>>;

const OFF = "'off'";

/**
 * Plans are cached, perhaps from a time when the tables were empty, so a full table scan must not be an option. The
 * server ends a session that idles with the head locked before other writers give up. The statement timeout comes after
 * all callers have left, because canceling a COMMIT that waits for a standby would report it as done.
 */
export const WRITER_SETTINGS: PgSettings = {
  synchronous_commit:
    "CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END",
  lock_timeout: `'${SERVICE_LIMITS.store_deadline_ms * 0.7}'`,
  statement_timeout: `'${SERVICE_LIMITS.store_deadline_ms * 2}'`,
  idle_in_transaction_session_timeout: `'${SERVICE_LIMITS.store_deadline_ms * 0.5}'`,
  plan_cache_mode: "'force_generic_plan'",
  enable_seqscan: OFF,
  enable_bitmapscan: OFF,
  enable_hashjoin: OFF,
  enable_mergejoin: OFF,
  jit: OFF,
  client_min_messages: "'warning'",
};

/**
 * Every page follows an index in its order, and ends when the page is full. Without statistics about a table that just
 * grew, the planner would collect all matches and sort them.
 */
export const READER_SETTINGS: PgSettings = {
  statement_timeout: `'${SERVICE_LIMITS.store_deadline_ms * 0.8}'`,
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
