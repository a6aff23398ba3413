/**
 * What a policy test knows of the earlier calls of its run: the values of their results and the values that flows
 * compare. Follows the rules of a live run, with one run and no manifests but labels.
 */
import { toCanonicalJson } from "../../../kernel/json/canonical.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import type { ValuePath } from "../../../kernel/paths.ts";
import { fingerprintsOf } from "../../trace/fingerprint.ts";
import type { FingerprintMap } from "../../trace/fingerprint-map.ts";
import { LOST_CAUSES } from "../../trace/lost-causes.ts";
import { traceValuesOf } from "../../trace/trace-values.ts";
import type { CarriedFacts, CarriedOrigin, PolicyCall } from "../call.ts";
import { type ComparedCalls, earlierPaths, ownPaths, seeValues } from "../checks/compared-calls.ts";
import type { CompiledPolicy } from "../compile.ts";

interface AcceptedCall {
  call: PolicyCall;
  at_ms: number;
  /** Undefined if the test does not say what the call returned. */
  result: JsonValue | undefined;
  /** Whether a manifest or the test itself declares the tool. */
  declared: boolean;
}

const GIVEN = "given";

export class EarlierValues {
  private readonly policy: CompiledPolicy;
  private readonly calls: AcceptedCall[] = [];
  private readonly marks = new Map<number, CarriedOrigin | typeof GIVEN>();
  private readonly open: CarriedOrigin[] = [];
  private foreign = 0;

  constructor(policy: CompiledPolicy, given: readonly string[]) {
    this.policy = policy;
    if (policy.carries === null) return;
    for (const fingerprint of valuesOf([...given], "$given").keys()) this.marks.set(fingerprint, GIVEN);
  }

  add(accepted: AcceptedCall): void {
    this.calls.push(accepted);
    if (this.policy.carries === null) return;
    const { call, at_ms, result, declared } = accepted;
    const isSource = call.source.length > 0;
    const origin: CarriedOrigin = { at_ms, run_id: call.run_id, step: call.step, tool: call.tool, call };
    if (isSource && result === undefined) this.open.push(origin);
    if (result === undefined) return;
    const found = valuesOf(result, "$result");
    const own = valuesOf(call.args, "$args");
    if (isSource) this.mark(found.keys(), origin);
    // An undeclared tool vouches for nothing. Neither does a result while a source's own is not known.
    else if (declared && this.open.length === 0)
      for (const one of found.keys()) if (!own.has(one)) this.mark([one], GIVEN);
  }

  private mark(fingerprints: Iterable<number>, as: CarriedOrigin | typeof GIVEN): void {
    for (const fingerprint of fingerprints) {
      if (this.marks.has(fingerprint)) continue;
      this.marks.set(fingerprint, as);
      if (as !== GIVEN) this.foreign++;
    }
  }

  /** The call with the facts that flows look at. */
  factsOf(call: PolicyCall, at_ms: number): PolicyCall {
    const { carries, compares } = this.policy;
    const carried = carries === null ? undefined : this.carriedBy(call);
    return {
      ...call,
      ...(carried === undefined ? {} : { carried, shared: carried }),
      ...(compares ? { compared: this.comparedWith(call, at_ms) } : {}),
    };
  }

  private carriedBy({ args }: PolicyCall): CarriedFacts {
    const values = [...valuesOf(args, "$args")].flatMap(([fingerprint, { kind, path }]) => {
      const mark = this.marks.get(fingerprint);
      return mark === undefined || mark === GIVEN ? [] : [{ kind, path, from: mark }];
    });
    const isLost = this.foreign > this.policy.carries!.max;
    return { values, open: this.open, lost: isLost ? LOST_CAUSES.max : null };
  }

  private comparedWith(call: PolicyCall, at_ms: number): Map<string, ComparedCalls> {
    const facts = new Map<string, ComparedCalls>();
    const { restricting, setting_off } = this.policy.flows;
    for (const flow of restricting.matching(call)) {
      const { when } = flow;
      if (when === null) continue;
      const since = at_ms - (flow.within_ms ?? Number.POSITIVE_INFINITY);
      const first = this.calls.filter(
        (one) => one.at_ms > since && setting_off.matching(one.call).includes(flow),
      );
      const paths = [...earlierPaths(when, "args"), ...earlierPaths(when, "result")];
      const calls = first.map(({ call: { run_id, step, tool, args }, at_ms: made_ms, result }) => ({
        run_id,
        step,
        tool,
        at_ms: made_ms,
        values: seeValues(paths, { args, result }, PLAIN),
      }));
      if (calls.length > 0)
        facts.set(flow.id, {
          own: seeValues(ownPaths(when), { args: call.args, result: undefined }, PLAIN),
          calls,
          over: false,
        });
    }
    return facts;
  }
}

const PLAIN = { hash: toCanonicalJson, isMasked: (_: ValuePath) => false };

const valuesOf = (value: JsonValue, root: "$args" | "$result" | "$given"): FingerprintMap =>
  fingerprintsOf("", traceValuesOf(value, root));
