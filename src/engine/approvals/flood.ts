/**
 * Floods of requests. Each request that an actor opens is counted in one sliding window; one past the policy's number
 * opens like any other and is told to people in a digest. Which actors are past it is kept apart, so that the alert
 * need not look for them.
 */
import type { Json } from "../../kernel/json.ts";
import type { FloodLimit } from "../../model/policy/approvals.ts";
import { charged, usedIn } from "../../model/policy/counters.ts";
import { isProbe } from "../../model/roles.ts";
import type { RunDoc } from "../../model/run.ts";
import type { Store, Tx } from "../../port/store.ts";

const FLOODS_KEY = "approval_floods";

interface Flood {
  actor: string;
  tenants: (string | null)[];
  since_ms: number;
  last_ms: number;
}

const counterOf = (actor: string): string => `flood:requests:actor:${actor}`;

/** Counts a request that is being opened; answers whether it is past the limit. */
export function countRequest(tx: Tx, run: RunDoc, limit: FloodLimit, now: number): boolean {
  // The service's own probe asks no person.
  if (isProbe(run.principal)) return false;
  const key = counterOf(run.actor);
  const counter = charged(tx.get("counters", key), limit.window_ms, now, 1);
  tx.put("counters", key, counter);
  if (usedIn(counter, limit.window_ms, now) <= limit.max) return false;
  noteFlood(tx, run, limit, now);
  return true;
}

/** Written when a flood begins and now and then while it lasts, not with each of its requests. */
function noteFlood(tx: Tx, { actor, tenant }: RunDoc, { window_ms }: FloodLimit, now: number): void {
  const floods = (tx.get("meta", FLOODS_KEY) ?? []) as unknown as Flood[];
  const known = floods.find((one) => one.actor === actor && now - one.last_ms < window_ms);
  const fresh = known !== undefined && now - known.last_ms < window_ms / 10;
  if (fresh && known.tenants.includes(tenant)) return;
  const others = floods.filter((one) => one.actor !== actor && now - one.last_ms < 2 * window_ms);
  const tenants = [...new Set([...(known?.tenants ?? []), tenant])];
  const flood: Flood = { actor, tenants, since_ms: known?.since_ms ?? now, last_ms: now };
  tx.put("meta", FLOODS_KEY, [...others, flood] as unknown as Json);
}

/** The actors that are past the limit now; with a tenant, those that asked there. */
export async function standingFloods(
  store: Store,
  limit: FloodLimit,
  now: number,
  tenant: string | null,
): Promise<Flood[]> {
  const floods = ((await store.get("meta", FLOODS_KEY)) ?? []) as unknown as Flood[];
  const standing: Flood[] = [];
  for (const flood of floods) {
    if (tenant !== null && !flood.tenants.includes(tenant)) continue;
    const counter = await store.get("counters", counterOf(flood.actor));
    if (usedIn(counter, limit.window_ms, now) > limit.max) standing.push(flood);
  }
  return standing;
}
