/**
 * A policy made ready: globs, patterns and paths compiled, defaults filled in, entries indexed by tool.
 * It is made once when a policy is loaded and shared by all decisions; nothing in it changes afterwards.
 */
import { parseDuration, tryTimestamp } from "../../kernel/duration.ts";
import { valueHash } from "../../kernel/hash.ts";
import type { Json } from "../../kernel/json.ts";
import { type Path, parsePath } from "../../kernel/paths.ts";
import { type ApprovalSettings, compileApprovals, compileTerms } from "./approvals.ts";
import type { ApprovalTerms, RestrictingAction, Restriction, RuleAction } from "./finding.ts";
import { DAYS, type HourRange, parseHours } from "./hours.ts";
import { MatchIndex } from "./match.ts";
import type { Compare } from "./ops/op.ts";
import { OPS } from "./ops/table.ts";
import { compileRisk, type Risk } from "./risk-weights.ts";
import type {
  ApprovalTermsDoc,
  FlowDoc,
  MatchDoc,
  Per,
  PolicyDoc,
  RetentionDoc,
  RuleDoc,
  UNPROVEN,
} from "./schema.ts";
import { type EntryGuard, guardOf } from "./sieve.ts";

export type { PolicyCall } from "./call.ts";

export interface Condition {
  path: Path;
  whenMissing: boolean;
  compare: Compare;
}

export interface Rule {
  id: string;
  action: RuleAction;
  reason: string;
  hint: string | null;
  when: Condition[];
  approval: ApprovalTerms;
}

export interface Limit extends Restriction {
  max: number;
  per: Per;
  window: string;
  window_ms: number;
  /** Whether a proven undo gives back what its call was charged. */
  refund: boolean;
}

export interface Budget extends Limit {
  path: Path;
  warn_at: number | null;
}

export interface TimeWindow extends Restriction {
  days: ReadonlySet<number>;
  hours: HourRange[];
  tz: string;
  shown: string;
}

export interface Flow extends Restriction {
  /** How far back it looks over all runs of the actor; null for this run alone. */
  within_ms: number | null;
  within: string;
}

export interface Freeze extends Restriction {
  from_ms: number;
  to_ms: number;
}

export interface Policy {
  doc: PolicyDoc;
  hash: string;
  approvals: ApprovalSettings;
  content: NonNullable<PolicyDoc["content"]>;
  risk: Risk | null;
  retention: RetentionDoc | null;
  /** What an undo without a fresh proof counts for; null where the policy does not ask. */
  undo: { max_age_ms: number; unproven: (typeof UNPROVEN)[number] } | null;
  rules: MatchIndex<Rule>;
  limits: MatchIndex<Limit>;
  budgets: MatchIndex<Budget>;
  /** The same flows twice: by the calls that set them off, and by those that they restrict. */
  flows: { setting_off: MatchIndex<Flow>; restricting: MatchIndex<Flow> };
  windows: MatchIndex<TimeWindow>;
  freezes: MatchIndex<Freeze>;
}

interface RestrictionDoc {
  id: string;
  action?: RestrictingAction | undefined;
  reason?: string | undefined;
  hint?: string | undefined;
  approval?: ApprovalTermsDoc | undefined;
}

/** How old a proof may be where the policy does not say. */
const PROOF_AGE = "30d";
const WHOLE_DAY: HourRange[] = [{ from: 0, to: 24 * 60 }];

/** The document must come from `loadPolicy`, which refuses what could not be compiled. */
export function compilePolicy(doc: PolicyDoc): Policy {
  const steps = compiling(doc, valueHash(doc as unknown as Json));
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/**
 * The same, entry by entry: who serves requests meanwhile goes on with the next one when he has the time. The hash
 * is that of the document.
 */
export function* compiling(doc: PolicyDoc, hash: string): Generator<void, Policy> {
  const approvals = compileApprovals(doc.approvals);
  const common = (entry: RestrictionDoc): Restriction => ({
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
    })),
    windows: yield* index(doc.windows, (window) => ({
      ...common(window),
      days: new Set((window.days ?? DAYS).map((day) => DAYS.indexOf(day))),
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

/** A policy that says nothing, for a service that was given none. */
export const EMPTY_POLICY: Policy = compilePolicy({ version: 1 });

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
  compile: (doc: FlowDoc) => Flow,
): Generator<void, Policy["flows"]> {
  const made = { setting_off: new MatchIndex<Flow>(), restricting: new MatchIndex<Flow>() };
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

function compileRule(rule: RuleDoc, approvals: ApprovalSettings): Rule {
  return {
    id: rule.id,
    action: rule.action,
    reason: rule.reason ?? DEFAULT_REASON[rule.action](rule.id),
    hint: rule.hint ?? null,
    when: (rule.when ?? []).map((condition) => {
      const op = OPS[condition.op];
      return {
        path: parsePath(condition.path),
        whenMissing: op.whenMissing,
        compare: op.compile((condition.value ?? null) as Json),
      };
    }),
    approval: compileTerms(rule.approval, approvals),
  };
}

function ruleGuard({ when = [] }: RuleDoc): EntryGuard | undefined {
  return guardOf(when.map(({ path, op, value }) => ({ path: parsePath(path), op, value: value as Json })));
}

/** Whether the clock has a say in it. */
export function isTimed({ doc }: Policy): boolean {
  return (doc.windows?.length ?? 0) + (doc.freezes?.length ?? 0) > 0;
}
