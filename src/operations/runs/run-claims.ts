/** Claims of the run that a principal without sessions uses, shared by every gateway of the store. */

import type { EngineCore } from "../../govern/core.ts";
import { asJson, fromJson } from "../../kernel/json/json.ts";

interface RunClaim {
  run_id: string;
  /** Hash of mode and permissions. A different hash means that the principal's authority changed. */
  scope: string;
  used_ms: number;
}

type ClaimStore = Pick<EngineCore, "store">;

const keyOf = (principal_id: string): string => `gateway-run/${principal_id}`;

/** Claims the principal's current run, or `fresh` after an idle period or with a different scope. */
export function claimRun(
  { store }: ClaimStore,
  principal_id: string,
  { fresh, scope, now, idle_ms }: { fresh: string; scope: string; now: number; idle_ms: number },
): Promise<string> {
  const key = keyOf(principal_id);
  return store.transact({
    needs: [["meta", key]],
    run(tx) {
      const found = fromJson<RunClaim | undefined>(tx.get("meta", key));
      const goes_on = found?.scope === scope && now - found.used_ms < idle_ms;
      const next: RunClaim = { run_id: goes_on ? found.run_id : fresh, scope, used_ms: now };
      tx.put("meta", key, asJson(next));
      return next.run_id;
    },
  });
}

/** Stores the last use of the claimed run. */
export function touchRunClaim(
  { store }: ClaimStore,
  principal_id: string,
  run_id: string,
  now: number,
): Promise<void> {
  const key = keyOf(principal_id);
  return store.transact({
    needs: [["meta", key]],
    run(tx) {
      const found = fromJson<RunClaim | undefined>(tx.get("meta", key));
      if (found?.run_id === run_id) tx.put("meta", key, asJson({ ...found, used_ms: now }));
    },
  });
}

export function dropRunClaim({ store }: ClaimStore, principal_id: string, run_id: string): Promise<void> {
  const key = keyOf(principal_id);
  return store.transact({
    needs: [["meta", key]],
    run(tx) {
      const found = fromJson<RunClaim | undefined>(tx.get("meta", key));
      if (found?.run_id === run_id) tx.delete("meta", key);
    },
  });
}
