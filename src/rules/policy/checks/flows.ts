/**
 * Flows stage: restricts calls because of an earlier call, for example sending out data that the agent has read. Each
 * flow has one counter per run or actor, which remembers the step that triggered it, so the cost of a decision does not
 * grow with the number of steps.
 */
import type { CarriedFacts, CarriedOrigin, PolicyCall } from "../call.ts";
import type { CompiledPolicy, PolicyFlow } from "../compile.ts";
import { type PolicyFinding, restrictionFinding } from "../finding.ts";
import { constantsHold, type FlowConditions, findRestricting } from "./compared-calls.ts";
import { type CounterDoc, usedIn } from "./counters.ts";
import type { CounterCharge, CounterNeed } from "./limits.ts";

/** Key of what a flow remembers for the run's tree, or for the actor. */
export function flowKey(
  { id, within_ms }: PolicyFlow,
  { run_id, counted_run, actor, tenant }: PolicyCall,
): string {
  if (within_ms === null) return `flow:${id}:run:${counted_run ?? run_id}`;
  return `flow:${id}:actor:${JSON.stringify([tenant, actor])}`;
}

/** Counters that a decision on this call reads, and counters that it updates if the call is accepted. */
export function flowKeys({ flows }: CompiledPolicy, call: PolicyCall): CounterNeed[] {
  if (flows.restricting.size === 0) return [];
  const concerned = new Set([...flows.restricting.matching(call), ...flows.setting_off.matching(call)]);
  return [...concerned]
    .filter(isCounted)
    .map((flow): CounterNeed => ({ key: flowKey(flow, call), kind: "flow", id: flow.id }));
}

export function checkFlows(
  { flows }: CompiledPolicy,
  call: PolicyCall,
  counters: ReadonlyMap<string, CounterDoc>,
  now_ms: number,
): { findings: PolicyFinding[]; charges: CounterCharge[] } {
  const findings: PolicyFinding[] = [];
  for (const flow of flows.restricting.matching(call)) {
    const why = isCounted(flow)
      ? followsReason(flow, call, counters.get(flowKey(flow, call)), now_ms)
      : valuesReason(flow, flows.setting_off, call, now_ms);
    if (why === null) continue;
    const finding = restrictionFinding("flow", flow, `flow ${flow.id}: restricted`);
    findings.push({ ...finding, reason: `${finding.reason}; ${why}` });
  }
  const charges: CounterCharge[] = [];
  for (const flow of flows.setting_off.matching(call)) {
    if (!isCounted(flow)) continue;
    const key = flowKey(flow, call);
    const doc = counters.get(key);
    // Within a run, the first trigger counts forever. Across runs, the latest counts longest.
    if (flow.within_ms === null && doc !== undefined) continue;
    charges.push({ key, doc: setOff(doc, call, now_ms) });
  }
  return { findings, charges };
}

/** True if a counter tells whether the flow applies: it compares no values. */
const isCounted = ({ carries, when }: PolicyFlow): boolean => !carries && when === null;

/** For a call that no earlier call feeds. */
export const NOTHING_CARRIED: CarriedFacts = { values: [], open: [], lost: null };

function followsReason(
  flow: PolicyFlow,
  call: PolicyCall,
  doc: CounterDoc | undefined,
  now_ms: number,
): string | null {
  return isSetOff(flow, doc, now_ms) ? `follows ${stepOf(doc!, call)}` : null;
}

function isSetOff({ within_ms }: PolicyFlow, doc: CounterDoc | undefined, now_ms: number): boolean {
  return doc !== undefined && usedIn(doc, within_ms ?? Number.POSITIVE_INFINITY, now_ms) > 0;
}

/** Records the trigger. A clock that goes back never shortens how long an earlier step counts. */
function setOff(doc: CounterDoc | undefined, { run_id, step, tool }: PolicyCall, now_ms: number): CounterDoc {
  const at_ms = Math.max(now_ms, doc?.buckets[0]?.[0] ?? now_ms);
  return { buckets: [[at_ms, 1]], step: { run_id, step, tool } };
}

function stepOf({ step }: Pick<CounterDoc, "step">, { run_id }: PolicyCall): string {
  if (step === undefined) return "an earlier step";
  const where = step.run_id === run_id ? "this run" : `run ${step.run_id}`;
  return `step ${step.step} (${step.tool}) of ${where}`;
}

/** Why a flow that looks at values applies; null if it does not. With `carries` and `when`, both must hold. */
function valuesReason(
  flow: PolicyFlow,
  setting_off: CompiledPolicy["flows"]["setting_off"],
  call: PolicyCall,
  now_ms: number,
): string | null {
  if (call.assumed_flows !== undefined) return assumedReason(flow, call, call.assumed_flows);
  const carried = flow.carries ? carriedReason(flow, setting_off, call, now_ms) : null;
  if (flow.carries && carried === null) return null;
  if (flow.when === null) return carried;
  const compared = comparedReason(flow.id, flow.when, call);
  return compared === null ? null : (carried ?? compared);
}

function assumedReason(
  { id, carries, when }: PolicyFlow,
  { args }: PolicyCall,
  assumed: ReadonlySet<string>,
): string | null {
  if (!assumed.has(id) || (when !== null && !constantsHold(when, args))) return null;
  return carries
    ? "an argument carries a value of an earlier result"
    : "an earlier call meets the conditions";
}

function comparedReason(id: string, when: FlowConditions, call: PolicyCall): string | null {
  if (!constantsHold(when, call.args)) return null;
  if (call.compared === undefined) return "the earlier calls of this call were not compared";
  const facts = call.compared.get(id);
  if (facts === undefined) return null;
  const earlier = findRestricting(when, facts);
  if (earlier !== undefined) return `follows ${stepOf({ step: earlier }, call)}`;
  return facts.over ? "follows more calls than it can compare" : null;
}

/** Needs no counter: a value names the call that it came from. */
function carriedReason(
  flow: PolicyFlow,
  setting_off: CompiledPolicy["flows"]["setting_off"],
  call: PolicyCall,
  now_ms: number,
): string | null {
  const since = now_ms - (flow.within_ms ?? Number.POSITIVE_INFINITY);
  const facts = flow.within_ms === null ? call.carried : call.shared;
  const { values, open, lost, dropped_ms = since } = facts ?? NOT_FOLLOWED;
  const applies = ({ call: earlier, at_ms = now_ms }: CarriedOrigin) =>
    at_ms > since && setting_off.matching(earlier).includes(flow);
  const carried = values.find(({ from }) => applies(from));
  if (carried !== undefined) return `${carried.path} comes from ${stepName(carried.from, call)}`;
  const unknown = open.find(applies);
  if (unknown?.lost !== undefined) return `${unknown.lost} (${stepName(unknown, call)})`;
  if (unknown !== undefined)
    return `the result of ${stepName(unknown, call)} is not known, so every value counts as carried`;
  return dropped_ms > since ? "too many results are not known" : lost;
}

/** For callers that evaluate a call without its facts: nothing is known, so the flow applies. */
const NOT_FOLLOWED: CarriedFacts = {
  values: [],
  open: [],
  lost: "the values of this call were not followed",
};

/** Text such as `mail.read, step 3`. */
function stepName({ run_id, step, tool }: CarriedOrigin, call: PolicyCall): string {
  return `${tool}, step ${step}${run_id === call.run_id ? "" : ` of run ${run_id}`}`;
}
