/** Finds the foreign values that the arguments of a call carry. Reads only the marks of the call's own values. */
import { asJson, type JsonValue } from "../../kernel/json/json.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import type { CarriedFacts, CarriedOrigin, CarriedValue, PolicyCall } from "../../rules/policy/call.ts";
import { NOTHING_CARRIED } from "../../rules/policy/checks/flows.ts";
import { fingerprintsOf } from "../../rules/trace/fingerprint.ts";
import { FingerprintMap } from "../../rules/trace/fingerprint-map.ts";
import { LOST_CAUSES } from "../../rules/trace/lost-causes.ts";
import { traceValuesOf } from "../../rules/trace/trace-values.ts";
import type { EngineCore } from "../core.ts";
import type { DocKey, StoreTx } from "../port/store.ts";
import type { RunDoc } from "../runs/run.ts";
import { type TenantKeys, tenantKeys, tenantMarkKey } from "./tenant-trace.ts";
import { type MarkedOrigin, marksKey, type OpenResult, originOf, type TraceDoc } from "./trace.ts";
import { type TracedRun, tracedRun } from "./traced-run.ts";

/** For a policy with a flow that follows values. */
export function carriedFacts(
  tx: StoreTx,
  own: RunDoc,
  call: PolicyCall,
  manifest: ToolManifest | null,
): CarriedFacts {
  const run = tracedRun(tx, own, own.next_step);
  const trace = tx.get("traces", run.run_id);
  if (trace === undefined)
    return run.has_earlier_calls ? { values: [], open: [], lost: LOST_CAUSES.late } : NOTHING_CARRIED;
  const originCall = (mark: MarkedOrigin) => {
    const { labels, ...origin } = originOf(trace, mark);
    return { ...origin, call: { ...call, ...labels, args: null } };
  };
  return {
    values: foreignValues(tx, trace, run.salt, call.args, manifest).map(({ mark, ...value }) => ({
      ...value,
      from: originCall(mark),
    })),
    open: trace.open.map(originCall),
    lost: trace.lost === undefined ? null : LOST_CAUSES[trace.lost],
  };
}

/** Foreign values of all runs of the tenant. Values that the run was given do not count. */
export function tenantFacts(
  core: Pick<EngineCore, "storeKey">,
  tx: StoreTx,
  own: RunDoc,
  call: PolicyCall,
  manifest: ToolManifest | null,
): CarriedFacts {
  const keys = tenantKeys(core, own.tenant);
  const run = tracedRun(tx, own, own.next_step);
  const trace = tx.get("traces", run.run_id);
  const isLate =
    trace === undefined ? run.has_earlier_calls : trace.lost === "late" || trace.lost === "store";
  const lost = isLate ? LOST_CAUSES[trace?.lost ?? "late"] : null;
  const state = tx.get("tenant_traces", keys.id);
  if (state === undefined) return { ...NOTHING_CARRIED, lost };
  const originCall = ({ at_ms, run_id, step, tool, lost: cause }: OpenResult): CarriedOrigin => {
    const labels = state.tools[tool]!;
    return {
      run_id,
      step,
      tool: labels.tool,
      at_ms,
      ...(cause === undefined ? {} : { lost: LOST_CAUSES[cause] }),
      call: { ...call, ...callerOf(tx, run_id), ...labels, args: null },
    };
  };
  const values = tenantValues(tx, { keys, run }, call.args, manifest);
  const origins = new Set([...values.map(({ from }) => from), ...state.open].map(({ run_id }) => run_id));
  tx.expect([...origins].map((run_id) => ["runs", run_id]));
  return {
    values: values.map(({ from, ...value }) => ({ ...value, from: originCall(from) })),
    open: state.open.map(originCall),
    lost,
    dropped_ms: state.dropped_ms,
  };
}

/** The parts of an earlier call that its run determines. */
function callerOf(tx: StoreTx, run_id: string): Partial<PolicyCall> {
  const run = tx.get("runs", run_id);
  if (run === undefined) return {};
  return { actor: run.actor, acting: run.acting ?? [], environment: run.environment };
}

type TenantValue = Omit<CarriedValue, "from"> & { from: OpenResult };

/** One entry per argument, kind and call. */
function tenantValues(
  tx: StoreTx,
  { keys, run }: { keys: TenantKeys; run: TracedRun },
  args: JsonValue,
  manifest: ToolManifest | null,
): TenantValue[] {
  const traced = traceValuesOf(args, "$args");
  const found = fingerprintsOf(keys.salt, traced);
  const mark_keys = tenantMarkKeys(keys, found);
  tx.expect(mark_keys.map((key) => ["tenant_marks", key]));
  const values = new Map<string, TenantValue>();
  let isGiven: ReturnType<typeof givenValues> | undefined;
  let constants: FingerprintMap | undefined;
  let position = 0;
  for (const [fingerprint, { kind, path }] of found) {
    const mark = tx.get("tenant_marks", mark_keys[position++]!);
    if (mark === undefined) continue;
    isGiven ??= givenValues(tx, run, found, fingerprintsOf(run.salt, traced));
    if (isGiven(fingerprint)) continue;
    constants ??=
      manifest === null
        ? new FingerprintMap()
        : fingerprintsOf(keys.salt, traceValuesOf(asJson(manifest), "$given"));
    if (constants.has(fingerprint)) continue;
    for (const [at_ms, run_id, step, tool] of mark.from)
      values.set(`${path} ${kind} ${run_id} ${step}`, { path, kind, from: { at_ms, run_id, step, tool } });
  }
  return [...values.values()];
}

/** Which of the tenant's fingerprints the run was given. Its own fingerprints are of the same values, in order. */
function givenValues(
  tx: StoreTx,
  run: TracedRun,
  found: FingerprintMap,
  own: FingerprintMap,
): (fingerprint: number) => boolean {
  if (found.size !== own.size || tx.get("traces", run.run_id) === undefined) return () => false;
  tx.expect(markKeys(run.run_id, own));
  const paired = own.keys();
  const positions = new Map(found.keys().map((fingerprint, i) => [fingerprint, paired[i]!]));
  return (fingerprint) => {
    const mine = positions.get(fingerprint)!;
    return tx.get("trace_marks", marksKey(run.run_id, mine))?.marks[mine] === 0;
  };
}

/** In the order of the fingerprints. */
const tenantMarkKeys = (keys: TenantKeys, found: FingerprintMap): string[] =>
  found.keys().map((fingerprint) => tenantMarkKey(keys, fingerprint));

type FoundValue = Omit<CarriedValue, "from"> & { mark: MarkedOrigin };

function foreignValues(
  tx: StoreTx,
  trace: TraceDoc,
  salt: string,
  args: JsonValue,
  manifest: ToolManifest | null,
): FoundValue[] {
  if (trace.foreign === 0) return [];
  const found = fingerprintsOf(salt, traceValuesOf(args, "$args"));
  tx.expect(markKeys(trace.run_id, found));
  const values = new Map<string, FoundValue>();
  let constants: FingerprintMap | undefined;
  for (const [fingerprint, { kind, path }] of found) {
    const mark = tx.get("trace_marks", marksKey(trace.run_id, fingerprint))?.marks[fingerprint];
    if (mark === undefined || mark === 0) continue;
    constants ??=
      manifest === null
        ? new FingerprintMap()
        : fingerprintsOf(salt, traceValuesOf(asJson(manifest), "$given"));
    const name = `${path} ${mark.join(".")} ${kind}`;
    if (!constants.has(fingerprint) && !values.has(name)) values.set(name, { path, kind, mark });
  }
  return [...values.values()];
}

/** Parts of the run's fingerprints that hold these values. */
export function markKeys(run_id: string, found: FingerprintMap): DocKey[] {
  const keys = new Set(found.keys().map((fingerprint) => marksKey(run_id, fingerprint)));
  return [...keys].map((key) => ["trace_marks", key]);
}

/** Keys of the marks that a decision on these arguments reads; none if the run follows no values. */
export function carriedMarkKeys(
  core: Pick<EngineCore, "rules" | "storeKey">,
  tx: StoreTx,
  own: RunDoc,
  args: JsonValue,
): DocKey[] {
  const { carries } = core.rules().policy;
  if (carries === null) return [];
  const run = tracedRun(tx, own, own.next_step);
  const values = traceValuesOf(args, "$args");
  const keys =
    tx.get("traces", run.run_id) === undefined ? [] : markKeys(run.run_id, fingerprintsOf(run.salt, values));
  if (carries.within_ms === null) return keys;
  const tenant = tenantKeys(core, own.tenant);
  const shared = tenantMarkKeys(tenant, fingerprintsOf(tenant.salt, values));
  return [...keys, ...shared.map((key): DocKey => ["tenant_marks", key])];
}
