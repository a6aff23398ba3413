/**
 * The shape of a policy file. Unknown keys are errors everywhere, since a misspelt one would silently
 * switch a safeguard off. Nothing here fills in defaults: the document stays as written, and so its hash.
 */
import * as z from "zod";
import { BLAST_RADII, EFFECTS } from "../manifest/types.ts";
import {
  argsPath,
  duration,
  glob,
  group,
  hours,
  id,
  lookback,
  shortText,
  timestamp,
  zone,
} from "./fields.ts";
import { APPROVAL_SHOWS, RESTRICTING_ACTIONS, RULE_ACTIONS } from "./finding.ts";
import { DAYS } from "./hours.ts";
import { OP_NAMES } from "./ops/table.ts";

const PER = ["run", "actor", "tenant", "tool", "global"] as const;
export type Per = (typeof PER)[number];
export const MATCH_FIELDS = [
  "tool",
  "actor",
  "tenant",
  "environment",
  "effect",
  "data_class",
  "source",
  "sink",
] as const;
export type MatchField = (typeof MATCH_FIELDS)[number];
export const UNPROVEN = ["warn", "require_approval", "deny"] as const;
const CONTENT_ACTIONS = ["off", "warn", "require_approval", "deny"] as const;

const match = z.strictObject({
  tool: glob.optional(),
  actor: glob.optional(),
  tenant: glob.optional(),
  environment: glob.optional(),
  effect: glob.optional(),
  data_class: glob.optional(),
  source: glob.optional(),
  sink: glob.optional(),
});

const approval = z.strictObject({
  groups: z.array(group).max(50).optional(),
  quorum: z.int().min(1).max(100).optional(),
  ttl: duration.optional(),
  escalate_after: duration.optional(),
  escalate_to: z.array(group).max(50).optional(),
});

const condition = z.strictObject({ path: argsPath, op: z.enum(OP_NAMES), value: z.unknown().optional() });

const rule = z.strictObject({
  id,
  match: match.optional(),
  when: z.array(condition).max(100).optional(),
  action: z.enum(RULE_ACTIONS),
  reason: shortText.optional(),
  hint: shortText.optional(),
  approval: approval.optional(),
});

/** What everything that only restricts has in common; without an action it denies. */
const restricting = {
  id,
  action: z.enum(RESTRICTING_ACTIONS).optional(),
  reason: shortText.optional(),
  hint: shortText.optional(),
  approval: approval.optional(),
};

const restriction = { ...restricting, match: match.optional() };

/** A call that matches `then` is restricted once one that matches `after` was accepted. */
// biome-ignore lint/suspicious/noThenProperty: the policy's own word; it holds a match, never a function
const flow = z.strictObject({ ...restricting, after: match, then: match, within: lookback.optional() });

/** What everything that counts has in common. `refund`: a proven undo gives back what its call was charged. */
const counting = { ...restriction, per: z.enum(PER), window: duration, refund: z.boolean().optional() };

const limit = z.strictObject({ ...counting, max: z.int().min(0) });

const budget = z.strictObject({
  ...counting,
  path: argsPath,
  max: z.number().min(0),
  warn_at: z.number().gt(0).max(1).optional(),
});

const timeWindow = z.strictObject({
  ...restriction,
  days: z.array(z.enum(DAYS)).min(1).max(7).optional(),
  hours: hours.optional(),
  tz: zone.optional(),
});

const freeze = z.strictObject({ ...restriction, from: timestamp, to: timestamp });

const content = z.strictObject({
  secrets: z.enum(CONTENT_ACTIONS).optional(),
  pii: z.enum(CONTENT_ACTIONS).optional(),
  injection: z.enum(CONTENT_ACTIONS).optional(),
  max_bytes: z.int().min(1).optional(),
});

const points = z.number().min(0).max(100);
const weightsOf = (names: readonly string[]) =>
  z.strictObject(Object.fromEntries([...names, "unset", "*"].map((name) => [name, points.optional()])));

const risk = z.strictObject({
  weights: z
    .strictObject({
      effect: weightsOf(EFFECTS).optional(),
      blast_radius: weightsOf(BLAST_RADII).optional(),
      data_class: z.record(z.string(), points).optional(),
      environment: z.record(z.string(), points).optional(),
    })
    .optional(),
  require_approval_at: z.int().min(0).max(100).optional(),
  deny_at: z.int().min(0).max(100).optional(),
});

const approvals = z.strictObject({
  ...approval.shape,
  four_eyes: z.boolean().optional(),
  max_open_per_run: z.int().min(1).max(100_000).optional(),
  show: z.enum(APPROVAL_SHOWS).optional(),
  flood: z.strictObject({ max: z.int().min(0).max(100_000), window: duration }).optional(),
});

/** What an undo that was never tried, or not lately, counts for. */
const undo = z.strictObject({ max_age: duration.optional(), unproven: z.enum(UNPROVEN).optional() });

const days = z.int().min(1).max(36_500);

const retention = z.strictObject({
  default_days: days,
  rules: z
    .array(
      z.strictObject({
        match: match.pick({ tool: true, tenant: true, environment: true, data_class: true }),
        days,
      }),
    )
    .optional(),
});

const flowLabels = z.union([shortText, z.array(shortText).max(100)]);

/** The call of a test: what is said here goes before what the tool's manifest says. */
const testCall = {
  tool: z.string().min(1).max(256),
  args: z.unknown().optional(),
  at: timestamp.optional(),
  effect: z.enum([...EFFECTS, "read_only"]).optional(),
  data_class: shortText.optional(),
  blast_radius: z.enum(BLAST_RADII).optional(),
  source: flowLabels.optional(),
  sink: flowLabels.optional(),
};

export const policyTestInput = z.strictObject({
  ...testCall,
  actor: shortText.optional(),
  tenant: shortText.optional(),
  environment: shortText.optional(),
  /** Calls that the same run made before, and that were accepted. */
  earlier: z.array(z.strictObject(testCall)).max(100).optional(),
  /** The decision wanted is that on the last of so many equal calls, for limits and budgets. */
  repeat: z.int().min(1).max(1_000).optional(),
});

const policyTest = z.strictObject({
  name: shortText,
  input: policyTestInput,
  expect: z.enum(RULE_ACTIONS),
  rule: id.optional(),
});

/** A statement about all calls, which is proved or shown to be wrong. */
const claim = z.strictObject({
  name: shortText,
  match: match.optional(),
  when: z.array(condition).max(100).optional(),
  at_least: z.enum(RESTRICTING_ACTIONS),
  unless: match.optional(),
});

export const policySchema = z.strictObject({
  version: z.literal(1),
  rules: z.array(rule).optional(),
  content: content.optional(),
  risk: risk.optional(),
  limits: z.array(limit).optional(),
  budgets: z.array(budget).optional(),
  flows: z.array(flow).optional(),
  windows: z.array(timeWindow).optional(),
  freezes: z.array(freeze).optional(),
  approvals: approvals.optional(),
  undo: undo.optional(),
  retention: retention.optional(),
  claims: z.array(claim).max(500).optional(),
  tests: z.array(policyTest).optional(),
});

export type PolicyDoc = z.infer<typeof policySchema>;
export type RuleDoc = z.infer<typeof rule>;
export type MatchDoc = z.infer<typeof match>;
export type ApprovalTermsDoc = z.infer<typeof approval>;
export type LimitDoc = z.infer<typeof limit>;
export type FlowDoc = z.infer<typeof flow>;
export type BudgetDoc = z.infer<typeof budget>;
export type RiskDoc = z.infer<typeof risk>;
export type RetentionDoc = z.infer<typeof retention>;
export type ClaimDoc = z.infer<typeof claim>;
export type PolicyTestDoc = z.infer<typeof policyTest>;
