/**
 * Places where agents keep texts for later, such as notes: tools with one `risk.store` label share one. Once a call has
 * written a foreign value there, the results of reads from there are foreign, too, in all runs of the tenant.
 */
import { labelTexts } from "../../rules/manifest/labels.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import type { CarriedFacts, PolicyCall } from "../../rules/policy/call.ts";
import type { EngineCore } from "../core.ts";
import type { StoreTx } from "../port/store.ts";
import { type TenantKeys, tenantKeys } from "./tenant-trace.ts";
import type { StoreTaint } from "./trace.ts";

type Core = Pick<EngineCore, "storeKey">;

/** What a read from a store returns: source labels, and the calls that wrote foreign values. */
export interface StoredValues extends StoreTaint {
  writes: readonly { run_id: string; step: number }[];
}

/** Maximum runs that one store lists. */
const MAX_WRITERS = 500;

const storeKeys = (keys: TenantKeys, manifest: ToolManifest | null): string[] =>
  labelTexts(manifest?.risk["store"]).map((label) => `${keys.id}/${label}`);

/** Notes an accepted call that writes foreign values to a store. */
export function noteStoredValues(
  core: Core,
  tx: StoreTx,
  call: PolicyCall,
  manifest: ToolManifest | null,
): void {
  if (manifest === null || manifest.effect === "read") return;
  const stores = storeKeys(tenantKeys(core, call.tenant), manifest);
  if (stores.length === 0) return;
  const taint = joined([taintOf(call.carried), taintOf(call.shared)].filter((one) => one !== null));
  if (taint === null) return;
  for (const key of stores) {
    const doc = tx.get("tainted_stores", key) ?? { writes: [] };
    const own = doc.writes.find(({ run_id }) => run_id === call.run_id);
    const others = doc.writes.filter((one) => one !== own);
    const all = joined([taint, ...(own === undefined ? [] : [own])])!;
    const writes = [...others, { run_id: call.run_id, step: call.step, ...all }];
    const dropped = writes.splice(0, Math.max(0, writes.length - MAX_WRITERS));
    const older = joined([...dropped, ...(doc.older === undefined ? [] : [doc.older])]);
    tx.put("tainted_stores", key, { writes, ...(older === null ? {} : { older }) });
  }
}

function taintOf(facts: CarriedFacts | undefined): StoreTaint | null {
  if (facts === undefined) return null;
  const { values, open, lost, dropped_ms } = facts;
  const isLost = lost !== null || dropped_ms !== undefined;
  if (values.length === 0 && open.length === 0 && !isLost) return null;
  const sources = [...values.map(({ from }) => from), ...open].flatMap(({ call }) => call.source);
  return { sources: [...new Set(sources)], ...(isLost ? { lost: true as const } : {}) };
}

function joined(taints: readonly StoreTaint[]): StoreTaint | null {
  if (taints.length === 0) return null;
  const sources = [...new Set(taints.flatMap((one) => one.sources))];
  return { sources, ...(taints.some(({ lost }) => lost) ? { lost: true as const } : {}) };
}

/** What a call reads from its stores; null if nothing foreign was written there. */
export function storedValues(
  core: Core,
  tx: StoreTx,
  tenant: string | null,
  manifest: ToolManifest | null,
): StoredValues | null {
  if (manifest === null || manifest.effect !== "read") return null;
  const docs = storeKeys(tenantKeys(core, tenant), manifest).flatMap(
    (key) => tx.get("tainted_stores", key) ?? [],
  );
  const writes = docs.flatMap((doc) => doc.writes);
  const taint = joined([...writes, ...docs.flatMap(({ older }) => older ?? [])]);
  return taint === null ? null : { ...taint, writes };
}

/** Deletes what a run wrote. `manifests` are those of its calls. */
export function forgetStoredValues(
  core: Core,
  tx: StoreTx,
  { run_id, tenant }: { run_id: string; tenant: string | null },
  manifests: readonly ToolManifest[],
): void {
  const keys = tenantKeys(core, tenant);
  for (const key of new Set(manifests.flatMap((manifest) => storeKeys(keys, manifest)))) {
    const doc = tx.get("tainted_stores", key);
    if (doc === undefined) continue;
    const writes = doc.writes.filter((one) => one.run_id !== run_id);
    if (writes.length === 0 && doc.older === undefined) tx.delete("tainted_stores", key);
    else if (writes.length < doc.writes.length) tx.put("tainted_stores", key, { ...doc, writes });
  }
}
