/** Stores what a surface remembers about its visitors: sessions, and tokens that count once across all processes. */

import type { EngineCore } from "../govern/core.ts";
import { isExpired } from "../govern/expiry.ts";
import { conflictError } from "../kernel/errors.ts";
import { sha256Hex } from "../kernel/hash.ts";
import { asJson, fromJson } from "../kernel/json/json.ts";

type SessionStore = Pick<EngineCore, "store" | "env">;

const SESSIONS = "console_sessions";
const SIGN_INS = "console_sign_ins";

/** All sessions by the hash of their token, in the console's form. */
export async function readSessions<D>({ store }: SessionStore): Promise<D> {
  return fromJson<D>((await store.get("meta", SESSIONS)) ?? {});
}

export function changeSessions<D extends object>(
  { store }: SessionStore,
  edit: (doc: D) => D,
): Promise<void> {
  return store.transact({
    needs: [["meta", SESSIONS]],
    run(tx) {
      const doc = fromJson<D>(tx.get("meta", SESSIONS) ?? {});
      tx.put("meta", SESSIONS, asJson(edit(doc)));
    },
  });
}

/** Consumes a sign-in. Throws if it was consumed before. Removes expired entries. */
export function consumeSignIn(
  { store, env }: SessionStore,
  { id, expires_ms }: { id: string; expires_ms: number },
): Promise<void> {
  const name = sha256Hex(id);
  const now = env.now();
  return store.transact({
    needs: [["meta", SIGN_INS]],
    run(tx) {
      const consumed = (tx.get("meta", SIGN_INS) ?? {}) as Record<string, number>;
      if (Object.hasOwn(consumed, name)) throw conflictError("sign_in_used", "this sign-in was already used");
      const live = Object.entries(consumed).filter(([, expires_ms]) => !isExpired({ expires_ms }, now));
      tx.put("meta", SIGN_INS, { ...Object.fromEntries(live), [name]: expires_ms });
    },
  });
}

/** Consumes a token. Returns false if it was consumed before. Kept as long as idempotent replies. */
export function consumeToken(
  { store }: SessionStore,
  key: string,
  run_id: string,
  at_ms: number,
): Promise<boolean> {
  return store.transact({
    needs: [["replies", key]],
    run(tx) {
      if (tx.get("replies", key) !== undefined) return false;
      tx.put("replies", key, { run_id, request_hash: "", body: null, at_ms });
      return true;
    },
  });
}
