/**
 * Bursts of requests. One sliding window per actor counts opened requests. A request above the policy's number opens
 * normally, but its notification goes into a digest. The actors above the limit are also listed separately, so that the
 * alert does not have to search for them.
 */

import { asJson, fromJson } from "../../kernel/json/json.ts";
import type { FloodLimit } from "../../rules/policy/checks/approvals.ts";
import { chargedCounter, usedIn } from "../../rules/policy/checks/counters.ts";
import type { StateStore, StoreTx } from "../port/store.ts";
import { isProbe } from "../roles.ts";
import type { RunDoc } from "../runs/run.ts";

const FLOODS_KEY = "approval_floods";

interface Flood {
  actor: string;
  tenants: (string | null)[];
  since_ms: number;
  last_ms: number;
}

const counterOf = (actor: string): string => `flood:requests:actor:${actor}`;

/** Counts an opened request. Returns true if it is above the limit. */
export function countRequest(tx: StoreTx, run: RunDoc, limit: FloodLimit, now: number): boolean {
  // The probe's requests need no approver.
  if (isProbe(run.principal)) return false;
  const key = counterOf(run.actor);
  const counter = chargedCounter(tx.get("counters", key), limit.window_ms, now, 1);
  tx.put("counters", key, counter);
  if (usedIn(counter, limit.window_ms, now) <= limit.max) return false;
  noteFlood(tx, run, limit, now);
  return true;
}

/** Records a burst when it begins and at intervals while it lasts, not with each request. */
function noteFlood(tx: StoreTx, { actor, tenant }: RunDoc, { window_ms }: FloodLimit, now: number): void {
  const floods = fromJson<Flood[]>(tx.get("meta", FLOODS_KEY) ?? []);
  const known = floods.find((one) => one.actor === actor && now - one.last_ms < window_ms);
  const fresh = known !== undefined && now - known.last_ms < window_ms / 10;
  if (fresh && known.tenants.includes(tenant)) return;
  const others = floods.filter((one) => one.actor !== actor && now - one.last_ms < 2 * window_ms);
  const tenants = [...new Set([...(known?.tenants ?? []), tenant])];
  const flood: Flood = { actor, tenants, since_ms: known?.since_ms ?? now, last_ms: now };
  tx.put("meta", FLOODS_KEY, asJson([...others, flood]));
}

/** Actors above the limit now; with a tenant, those with requests in that tenant. */
export async function listActiveFloods(
  store: StateStore,
  limit: FloodLimit,
  now: number,
  tenant: string | null,
): Promise<Flood[]> {
  const floods = fromJson<Flood[]>((await store.get("meta", FLOODS_KEY)) ?? []);
  const active: Flood[] = [];
  for (const flood of floods) {
    if (tenant !== null && !flood.tenants.includes(tenant)) continue;
    const counter = await store.get("counters", counterOf(flood.actor));
    if (usedIn(counter, limit.window_ms, now) > limit.max) active.push(flood);
  }
  return active;
}
