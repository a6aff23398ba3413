/**
 * Calls that flows with `when` compare later calls with. One document per flow and run (or actor) keeps the compared
 * values of the latest different calls, as keyed hashes, so that a decision reads one document per flow.
 */
import { hmacHex } from "../../kernel/hash.ts";
import { toCanonicalJson } from "../../kernel/json/canonical.ts";
import { asJson, type JsonValue } from "../../kernel/json/json.ts";
import { tryPath, type ValuePath } from "../../kernel/paths.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import type { PolicyCall } from "../../rules/policy/call.ts";
import {
  type ComparedCalls,
  type EarlierCall,
  earlierPaths,
  type FlowConditions,
  ownPaths,
  seeValues,
} from "../../rules/policy/checks/compared-calls.ts";
import { flowKey } from "../../rules/policy/checks/flows.ts";
import type { CompiledPolicy, PolicyFlow } from "../../rules/policy/compile.ts";
import { isPrefix } from "../../rules/redact/mask.ts";
import type { EngineCore } from "../core.ts";
import type { DocKey, StoreTx } from "../port/store.ts";

/** Maximum different calls that one document lists. */
const MAX_EARLIER_CALLS = 200;

type Core = Pick<EngineCore, "storeKey">;

/** The parts of a call that its compared values depend on. */
interface ComparableCall {
  call: PolicyCall;
  manifest: ToolManifest | null;
  at_ms: number;
}

const comparing = (flows: PolicyFlow[]): (PolicyFlow & { when: FlowConditions })[] =>
  flows.filter((flow): flow is PolicyFlow & { when: FlowConditions } => flow.when !== null);

/** Keys of the documents that a decision on the call reads, or its acceptance writes. */
export function earlierCallKeys({ flows, compares }: CompiledPolicy, call: PolicyCall): DocKey[] {
  if (!compares) return [];
  const concerned = new Set([...flows.restricting.matching(call), ...flows.setting_off.matching(call)]);
  return comparing([...concerned]).map((flow) => ["earlier_calls", flowKey(flow, call)]);
}

/** What the restricting flows compare, by flow. */
export function comparedCalls(
  { storeKey }: Core,
  tx: StoreTx,
  { flows }: CompiledPolicy,
  { call, manifest, at_ms }: ComparableCall,
): Map<string, ComparedCalls> {
  const facts = new Map<string, ComparedCalls>();
  for (const flow of comparing(flows.restricting.matching(call))) {
    const key = flowKey(flow, call);
    const doc = tx.get("earlier_calls", key);
    if (doc === undefined) continue;
    const since = at_ms - (flow.within_ms ?? Number.POSITIVE_INFINITY);
    facts.set(flow.id, {
      own: seeValues(
        ownPaths(flow.when),
        { args: call.args, result: undefined },
        options(storeKey, key, manifest),
      ),
      calls: doc.calls.filter((one) => one.at_ms > since),
      over: doc.dropped_ms !== undefined && doc.dropped_ms > since,
    });
  }
  return facts;
}

/** Notes an accepted call, with the values of its arguments. */
export function noteEarlierCall(
  core: Core,
  tx: StoreTx,
  { flows, compares }: CompiledPolicy,
  { call, manifest, at_ms }: ComparableCall,
): void {
  if (!compares) return;
  for (const flow of comparing(flows.setting_off.matching(call))) {
    const key = flowKey(flow, call);
    const given = { args: call.args, result: undefined };
    const values = seeValues(earlierPaths(flow.when, "args"), given, options(core.storeKey, key, manifest));
    const { run_id, step, tool } = call;
    putCall(tx, key, flow, { run_id, step, tool, at_ms, values }, call.counted_run);
  }
}

/** Adds the values of the result, once it is known. */
export function noteEarlierResult(
  core: Core,
  tx: StoreTx,
  { flows, compares }: CompiledPolicy,
  { call, manifest }: Omit<ComparableCall, "at_ms">,
  result: JsonValue | undefined,
): void {
  if (!compares || result === undefined) return;
  for (const flow of comparing(flows.setting_off.matching(call))) {
    const paths = earlierPaths(flow.when, "result");
    const key = flowKey(flow, call);
    const noted = tx
      .get("earlier_calls", key)
      ?.calls.find(({ run_id, step }) => run_id === call.run_id && step === call.step);
    if (paths.length === 0 || noted === undefined) continue;
    const values = seeValues(paths, { args: undefined, result }, options(core.storeKey, key, manifest));
    putCall(tx, key, flow, { ...noted, values: { ...noted.values, ...values } });
  }
}

/**
 * Replaces an earlier call with the same values, because the latest counts longest. A document of a run belongs to the
 * root of its tree.
 */
function putCall(
  tx: StoreTx,
  key: string,
  { within_ms, when }: PolicyFlow,
  noted: EarlierCall,
  root = noted.run_id,
): void {
  const doc = tx.get("earlier_calls", key);
  const isSame = (one: EarlierCall) => one.run_id === noted.run_id && one.step === noted.step;
  const isWhole = when!.compared.every(({ earlier }) => noted.values[earlier.source] !== undefined);
  const values = toCanonicalJson(asJson(noted.values));
  const others = (doc?.calls ?? []).filter(
    (one) => !isSame(one) && !(isWhole && toCanonicalJson(asJson(one.values)) === values),
  );
  const all = [...others, noted];
  const calls = all.slice(-MAX_EARLIER_CALLS);
  const dropped_ms = all.length > calls.length ? all[0]!.at_ms : doc?.dropped_ms;
  const run_id = within_ms === null ? root : "";
  tx.put("earlier_calls", key, {
    run_id: doc?.run_id ?? run_id,
    calls,
    ...(dropped_ms === undefined ? {} : { dropped_ms }),
  });
}

function options(storeKey: string, key: string, manifest: ToolManifest | null) {
  const hidden = (manifest?.audit.redaction ?? []).flatMap((source) => tryPath(source) ?? []);
  return {
    hash: (value: JsonValue) => hmacHex(storeKey, `${key}\n${toCanonicalJson(value)}`),
    isMasked: ({ root, keys }: ValuePath) =>
      hidden.some((one) => one.root === root && (isPrefix(one.keys, keys) || isPrefix(keys, one.keys))),
  };
}
