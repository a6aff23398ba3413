/**
 * The flows stage: what a call may no longer do because of an earlier one, such as sending out what was read. Of
 * each flow one counter is kept, for the run or for the actor, that remembers the step that set it off; so a decision
 * costs the same after one step and after a million.
 */
import type { PolicyCall } from "./call.ts";
import type { Flow, Policy } from "./compile.ts";
import { type CounterDoc, usedIn } from "./counters.ts";
import { type Finding, restricted } from "./finding.ts";
import type { Charge, CounterNeed } from "./limits.ts";

function keyOf({ id, within_ms }: Flow, { run_id, actor, tenant }: PolicyCall): string {
  if (within_ms === null) return `flow:${id}:run:${run_id}`;
  return `flow:${id}:actor:${JSON.stringify([tenant, actor])}`;
}

/** The counters that judging this call will read, and those that it moves if it is accepted. */
export function flowKeys({ flows }: Policy, call: PolicyCall): CounterNeed[] {
  if (flows.restricting.size === 0) return [];
  const concerned = new Set([...flows.restricting.matching(call), ...flows.setting_off.matching(call)]);
  return [...concerned].map((flow): CounterNeed => ({ key: keyOf(flow, call), kind: "flow", id: flow.id }));
}

export function checkFlows(
  { flows }: Policy,
  call: PolicyCall,
  counters: ReadonlyMap<string, CounterDoc>,
  now_ms: number,
): { findings: Finding[]; charges: Charge[] } {
  const findings: Finding[] = [];
  for (const flow of flows.restricting.matching(call)) {
    const doc = counters.get(keyOf(flow, call));
    if (!isSetOff(flow, doc, now_ms)) continue;
    const earlier = stepOf(doc!, call);
    const finding = restricted("flow", flow, `flow ${flow.id}: restricted`);
    findings.push({ ...finding, reason: `${finding.reason}; follows ${earlier}` });
  }
  const charges: Charge[] = [];
  for (const flow of flows.setting_off.matching(call)) {
    const key = keyOf(flow, call);
    const doc = counters.get(key);
    // In a run the first one counts for ever; over time the latest counts the longest.
    if (flow.within_ms === null && doc !== undefined) continue;
    charges.push({ key, doc: setOff(doc, call, now_ms) });
  }
  return { findings, charges };
}

function isSetOff({ within_ms }: Flow, doc: CounterDoc | undefined, now_ms: number): boolean {
  return doc !== undefined && usedIn(doc, within_ms ?? Number.POSITIVE_INFINITY, now_ms) > 0;
}

/** Time that goes backwards never shortens how long an earlier step counts. */
function setOff(doc: CounterDoc | undefined, { run_id, step, tool }: PolicyCall, now_ms: number): CounterDoc {
  const at_ms = Math.max(now_ms, doc?.buckets[0]?.[0] ?? now_ms);
  return { buckets: [[at_ms, 1]], step: { run_id, step, tool } };
}

function stepOf({ step }: CounterDoc, { run_id }: PolicyCall): string {
  if (step === undefined) return "an earlier step";
  const where = step.run_id === run_id ? "this run" : `run ${step.run_id}`;
  return `step ${step.step} (${step.tool}) of ${where}`;
}
