/**
 * Compiled policy: globs, patterns and paths compiled, defaults filled in, entries indexed by tool. Built once when a
 * policy loads, immutable, and shared by all decisions.
 */

import { parseDuration, tryTimestamp } from "../../kernel/duration.ts";
import { valueHash } from "../../kernel/hash.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import { asJson } from "../../kernel/json/json.ts";
import { parsePath, type ValuePath } from "../../kernel/paths.ts";
import { type ApprovalSettings, compileApprovals, compileTerms } from "./checks/approvals.ts";
import { compileFlowConditions, type FlowConditions } from "./checks/compared-calls.ts";
import { type HourRange, parseHours, WEEKDAY_NAMES } from "./checks/hours.ts";
import { type CompiledRisk, compileRisk } from "./checks/risk-weights.ts";
import type { ApprovalTerms, RestrictingAction, RestrictingEntry, RuleAction } from "./finding.ts";
import { MatchIndex } from "./match.ts";
import type { CompareFn } from "./ops/op.ts";
import { COMPARISON_OPS } from "./ops/table.ts";
import { type EntryGuard, guardOf } from "./rule-index.ts";
import type {
  ApprovalTermsDoc,
  CounterScope,
  FlowDoc,
  MatchDoc,
  PolicyDoc,
  RetentionDoc,
  RuleDoc,
  UNPROVEN_ACTIONS,
} from "./schema.ts";

export type { PolicyCall } from "./call.ts";

export interface PolicyCondition {
  path: ValuePath;
  whenMissing: boolean;
  compare: CompareFn;
}

export interface PolicyRule {
  id: string;
  action: RuleAction;
  reason: string;
  hint: string | null;
  /** True if the rule does not apply to calls from inside `svc run`. */
  passes_sandboxed: boolean;
  when: PolicyCondition[];
  approval: ApprovalTerms;
}

export interface PolicyLimit extends RestrictingEntry {
  max: number;
  per: CounterScope;
  window: string;
  window_ms: number;
  /** True if a verified undo refunds the charge of its call. */
  refund: boolean;
}

export interface PolicyBudget extends PolicyLimit {
  path: ValuePath;
  warn_at: number | null;
}

export interface TimeWindow extends RestrictingEntry {
  days: ReadonlySet<number>;
  hours: HourRange[];
  tz: string;
  shown: string;
}

export interface PolicyFlow extends RestrictingEntry {
  /** How far the flow looks back over all runs of the actor; null for the current run only. */
  within_ms: number | null;
  within: string;
  /** Restricts only calls whose arguments hold a value from the first call's result. */
  carries: boolean;
  /** Conditions that compare the later call with the first; null without any. */
  when: FlowConditions | null;
}

export interface PolicyFreeze extends RestrictingEntry {
  from_ms: number;
  to_ms: number;
}

export interface CompiledPolicy {
  doc: PolicyDoc;
  hash: string;
  approvals: ApprovalSettings;
  content: NonNullable<PolicyDoc["content"]>;
  risk: CompiledRisk | null;
  retention: RetentionDoc | null;
  /** Requirements on undos without a recent drill; null if the policy has none. */
  undo: { max_age_ms: number; unproven: (typeof UNPROVEN_ACTIONS)[number] } | null;
  rules: MatchIndex<PolicyRule>;
  limits: MatchIndex<PolicyLimit>;
  budgets: MatchIndex<PolicyBudget>;
  /** The same flows, indexed by the calls that trigger them and by the calls that they restrict. */
  flows: { setting_off: MatchIndex<PolicyFlow>; restricting: MatchIndex<PolicyFlow> };
  /** How many values are followed per run, and for how long between runs; null if no flow follows values. */
  carries: { max: number; within_ms: number | null } | null;
  /** True if a flow compares calls. */
  compares: boolean;
  windows: MatchIndex<TimeWindow>;
  freezes: MatchIndex<PolicyFreeze>;
}

interface RestrictionDoc {
  id: string;
  action?: RestrictingAction | undefined;
  reason?: string | undefined;
  hint?: string | undefined;
  approval?: ApprovalTermsDoc | undefined;
}

/** Default maximum age of a drill result. */
const PROOF_AGE = "30d";
/** Default maximum of followed values per run. */
export const MAX_FOLLOWED_VALUES = 20_000;
const WHOLE_DAY: HourRange[] = [{ from: 0, to: 24 * 60 }];

/** Compiles a document from `loadPolicy`, which rejects documents that cannot be compiled. */
export function compilePolicy(doc: PolicyDoc): CompiledPolicy {
  const steps = compilingPolicy(doc, valueHash(asJson(doc)));
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/**
 * Compiles one entry at a time, so that a server can handle requests in between. `hash` is the hash of the document.
 */
export function* compilingPolicy(doc: PolicyDoc, hash: string): Generator<void, CompiledPolicy> {
  const approvals = compileApprovals(doc.approvals);
  const common = (entry: RestrictionDoc): RestrictingEntry => ({
    id: entry.id,
    action: entry.action ?? "deny",
    reason: entry.reason ?? null,
    hint: entry.hint ?? null,
    approval: compileTerms(entry.approval, approvals),
  });
  return {
    doc,
    hash,
    approvals,
    content: doc.content ?? {},
    risk: doc.risk === undefined ? null : compileRisk(doc.risk),
    retention: doc.retention ?? null,
    undo:
      doc.undo === undefined
        ? null
        : {
            max_age_ms: parseDuration(doc.undo.max_age ?? PROOF_AGE),
            unproven: doc.undo.unproven ?? "warn",
          },
    rules: yield* index(doc.rules, (rule) => compileRule(rule, approvals), ruleGuard),
    limits: yield* index(doc.limits, (limit) => ({
      ...common(limit),
      max: limit.max,
      per: limit.per,
      window: limit.window,
      window_ms: parseDuration(limit.window),
      refund: limit.refund ?? false,
    })),
    budgets: yield* index(doc.budgets, (budget) => ({
      ...common(budget),
      max: budget.max,
      per: budget.per,
      window: budget.window,
      window_ms: parseDuration(budget.window),
      refund: budget.refund ?? false,
      path: parsePath(budget.path),
      warn_at: budget.warn_at ?? null,
    })),
    flows: yield* flowIndex(doc.flows, (flow) => ({
      ...common(flow),
      within: flow.within ?? "run",
      within_ms: (flow.within ?? "run") === "run" ? null : parseDuration(flow.within!),
      carries: flow.carries ?? false,
      when: flow.when === undefined || flow.when.length === 0 ? null : compileFlowConditions(flow.when),
    })),
    carries: compileCarries(doc),
    compares: (doc.flows ?? []).some(({ when }) => when !== undefined && when.length > 0),
    windows: yield* index(doc.windows, (window) => ({
      ...common(window),
      days: new Set((window.days ?? WEEKDAY_NAMES).map((day) => WEEKDAY_NAMES.indexOf(day))),
      hours: window.hours === undefined ? WHOLE_DAY : parseHours(window.hours),
      tz: window.tz ?? "UTC",
      shown: [window.days?.join(" "), window.hours, window.tz ?? "UTC"]
        .filter((part) => part !== undefined)
        .join(", "),
    })),
    freezes: yield* index(doc.freezes, (freeze) => ({
      ...common(freeze),
      from_ms: tryTimestamp(freeze.from)!,
      to_ms: tryTimestamp(freeze.to)!,
    })),
  };
}

function compileCarries({ flows = [], carries }: PolicyDoc): CompiledPolicy["carries"] {
  const following = flows.filter((flow) => flow.carries === true);
  if (following.length === 0) return null;
  const spans = following.flatMap(({ within = "run" }) => (within === "run" ? [] : [parseDuration(within)]));
  return {
    max: carries?.max ?? MAX_FOLLOWED_VALUES,
    within_ms: spans.length === 0 ? null : Math.max(...spans),
  };
}

/** Policy without entries, for a service without a policy file. */
export const EMPTY_POLICY: CompiledPolicy = compilePolicy({ version: 1 });

function* index<D extends { match?: MatchDoc | undefined }, T>(
  docs: readonly D[] | undefined,
  compile: (doc: D) => T,
  guard: (doc: D) => EntryGuard | undefined = () => undefined,
): Generator<void, MatchIndex<T>> {
  const made = new MatchIndex<T>();
  for (const doc of docs ?? []) {
    made.add(doc.match, compile(doc), guard(doc));
    yield;
  }
  return made;
}

function* flowIndex(
  docs: readonly FlowDoc[] | undefined,
  compile: (doc: FlowDoc) => PolicyFlow,
): Generator<void, CompiledPolicy["flows"]> {
  const made = { setting_off: new MatchIndex<PolicyFlow>(), restricting: new MatchIndex<PolicyFlow>() };
  for (const doc of docs ?? []) {
    const flow = compile(doc);
    made.setting_off.add(doc.after, flow);
    made.restricting.add(doc.then, flow);
    yield;
  }
  return made;
}

export const DEFAULT_REASON: Record<RuleAction, (id: string) => string> = {
  allow: (id) => `rule ${id} allows this call`,
  require_approval: (id) => `rule ${id} requires approval`,
  deny: (id) => `rule ${id} denies this call`,
};

function compileRule(rule: RuleDoc, approvals: ApprovalSettings): PolicyRule {
  return {
    id: rule.id,
    action: rule.action,
    reason: rule.reason ?? DEFAULT_REASON[rule.action](rule.id),
    hint: rule.hint ?? null,
    passes_sandboxed: rule.sandboxed === "allow",
    when: (rule.when ?? []).map((condition) => {
      const op = COMPARISON_OPS[condition.op];
      return {
        path: parsePath(condition.path),
        whenMissing: op.whenMissing,
        compare: op.compile((condition.value ?? null) as JsonValue),
      };
    }),
    approval: compileTerms(rule.approval, approvals),
  };
}

function ruleGuard({ when = [] }: RuleDoc): EntryGuard | undefined {
  return guardOf(
    when.map(({ path, op, value }) => ({ path: parsePath(path), op, value: value as JsonValue })),
  );
}

/** True if decisions depend on the time. */
export function isTimed({ doc }: CompiledPolicy): boolean {
  return (doc.windows?.length ?? 0) + (doc.freezes?.length ?? 0) > 0;
}
