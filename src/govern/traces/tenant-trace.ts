/**
 * Values of a tenant that flows with `carries` and a duration follow from run to run. One document per value holds the
 * calls whose results had it, and one document per tenant lists the calls whose results are not known. Both are keyed
 * by the tenant's own key. Nothing is stored unless the policy has such a flow.
 */
import { hmacHex } from "../../kernel/hash.ts";
import { LruMap } from "../../kernel/lru.ts";
import type { EngineCore } from "../core.ts";
import type { StoreTx } from "../port/store.ts";
import {
  MAX_OPEN_RESULTS,
  type OpenResult,
  positionOfTool,
  type TenantOrigin,
  type TenantTraceDoc,
  type TracedTool,
} from "./trace.ts";

/** Maximum tools whose latest call a value names. */
const MAX_ORIGINS = 8;

/** Where a tenant's values are stored, and the key of their fingerprints. */
export interface TenantKeys {
  id: string;
  salt: string;
}

export function tenantKeys({ storeKey }: Pick<EngineCore, "storeKey">, tenant: string | null): TenantKeys {
  const name = JSON.stringify(tenant);
  const known = known_keys.get(`${storeKey}\n${name}`);
  if (known !== undefined) return known;
  const keys = {
    id: hmacHex(storeKey, `trace id\n${name}`).slice(0, 24),
    salt: hmacHex(storeKey, `trace salt\n${name}`),
  };
  known_keys.set(`${storeKey}\n${name}`, keys);
  return keys;
}

/** Cached, because each decision needs the keys several times. */
const known_keys = new LruMap<string, TenantKeys>(1_000);

export const tenantMarkKey = ({ id }: TenantKeys, fingerprint: number): string =>
  `${id}/${fingerprint.toString(36)}`;

/** The tenant's state, to change it within a unit. */
export class TenantTrace {
  readonly keys: TenantKeys;
  private readonly tx: StoreTx;
  private readonly doc: TenantTraceDoc;

  constructor(tx: StoreTx, keys: TenantKeys) {
    this.tx = tx;
    this.keys = keys;
    this.doc = structuredClone(tx.get("tenant_traces", keys.id) ?? { tools: [], open: [] });
  }

  get hasOpen(): boolean {
    return this.doc.open.length > 0 || this.doc.dropped_ms !== undefined;
  }

  /** Counts every value as this call's, until its result is known. */
  addOpen(call: Omit<OpenResult, "tool">, tool: TracedTool, since: number): void {
    const listed = this.doc.open.filter((one) => one.at_ms > since && !isSameCall(one, call));
    listed.push({ ...call, tool: positionOfTool(this.doc.tools, tool) });
    const dropped = listed.splice(0, Math.max(0, listed.length - MAX_OPEN_RESULTS));
    for (const { at_ms } of dropped) this.doc.dropped_ms = Math.max(at_ms, this.doc.dropped_ms ?? 0);
    if ((this.doc.dropped_ms ?? since) <= since) delete this.doc.dropped_ms;
    this.doc.open = listed;
  }

  removeOpen(call: { run_id: string; step: number }): void {
    this.doc.open = this.doc.open.filter((one) => one.lost !== undefined || !isSameCall(one, call));
  }

  /** Notes that the result of this call held the values with these keys. */
  addMarks(keys: Iterable<string>, at: Omit<OpenResult, "tool" | "lost">, tool: TracedTool): void {
    const position = positionOfTool(this.doc.tools, tool);
    const origin: TenantOrigin = [at.at_ms, at.run_id, at.step, position];
    for (const key of keys) {
      const others = (this.tx.get("tenant_marks", key)?.from ?? []).filter((one) => one[3] !== position);
      this.tx.put("tenant_marks", key, { run_id: at.run_id, from: [...others, origin].slice(-MAX_ORIGINS) });
    }
  }

  write(): void {
    this.tx.put("tenant_traces", this.keys.id, this.doc);
  }
}

const isSameCall = (a: { run_id: string; step: number }, b: { run_id: string; step: number }): boolean =>
  a.run_id === b.run_id && a.step === b.step;

/** Deletes the stored values of a run. `marks` are the keys of its marks. */
export function forgetTenantValues(
  core: Pick<EngineCore, "storeKey">,
  tx: StoreTx,
  { run_id, tenant }: { run_id: string; tenant: string | null },
  marks: readonly string[],
): void {
  const { id } = tenantKeys(core, tenant);
  const state = tx.get("tenant_traces", id);
  if (state?.open.some((one) => one.run_id === run_id))
    tx.put("tenant_traces", id, { ...state, open: state.open.filter((one) => one.run_id !== run_id) });
  tx.expect(marks.map((key) => ["tenant_marks", key]));
  for (const key of marks) {
    const from = (tx.get("tenant_marks", key)?.from ?? []).filter(([, run]) => run !== run_id);
    const last = from.at(-1);
    if (last === undefined) tx.delete("tenant_marks", key);
    else tx.put("tenant_marks", key, { run_id: last[1], from });
  }
}
