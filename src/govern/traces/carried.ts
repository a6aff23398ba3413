/** Finds the foreign values that the arguments of a call carry. Reads only the marks of the call's own values. */
import { asJson, type JsonValue } from "../../kernel/json/json.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import type { CarriedFacts, CarriedValue, PolicyCall } from "../../rules/policy/call.ts";
import { type FingerprintMap, fingerprintsOf } from "../../rules/trace/fingerprint.ts";
import { traceValuesOf } from "../../rules/trace/trace-values.ts";
import type { DocKey, StoreTx } from "../port/store.ts";
import type { RunDoc } from "../runs/run.ts";
import { LOST_CAUSES, type MarkedOrigin, marksKey, originOf, type TraceDoc } from "./trace.ts";
import { tracedRun } from "./traced-run.ts";

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

const NOTHING_CARRIED: CarriedFacts = { values: [], open: [], lost: null };

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
      manifest === null ? new Map() : fingerprintsOf(salt, traceValuesOf(asJson(manifest), "$given"));
    const name = `${path} ${mark.join(".")} ${kind}`;
    if (!constants.has(fingerprint) && !values.has(name)) values.set(name, { path, kind, mark });
  }
  return [...values.values()];
}

/** Parts of the run's fingerprints that hold these values. */
export function markKeys(run_id: string, found: FingerprintMap): DocKey[] {
  const keys = new Set([...found.keys()].map((fingerprint) => marksKey(run_id, fingerprint)));
  return [...keys].map((key) => ["trace_marks", key]);
}

/** Keys of the marks that a decision on these arguments reads; none if the run follows no values. */
export function carriedMarkKeys(tx: StoreTx, own: RunDoc, args: JsonValue): DocKey[] {
  const run = tracedRun(tx, own, own.next_step);
  if ((tx.get("traces", run.run_id)?.foreign ?? 0) === 0) return [];
  return markKeys(run.run_id, fingerprintsOf(run.salt, traceValuesOf(args, "$args")));
}
