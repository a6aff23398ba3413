/**
 * Schema of a policy file. Unknown keys are errors, since a misspelt key would silently disable a safeguard. The schema
 * fills in no defaults, so that the document and its hash stay as written.
 */
import * as z from "zod";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { BLAST_RADII, TOOL_EFFECTS } from "../manifest/schema.ts";
import { DEFAULT_WEIGHTS, type RiskFactor } from "./checks/default-weights.ts";
import { WEEKDAY_NAMES } from "./checks/hours.ts";
import {
  argsPath,
  describeField,
  hoursSchema,
  idSchema,
  inWords,
  lookbackSchema,
  policyDurationSchema,
  shortText,
  timestampSchema,
  timeZoneSchema,
} from "./fields.ts";
import { APPROVAL_SHOWS, RESTRICTING_ACTIONS, RULE_ACTIONS } from "./finding.ts";
import {
  approvalOf,
  type approvalSchema,
  approvalTerms,
  conditionList,
  matchOf,
  matchSchema,
  optionalMatch,
} from "./schema-parts.ts";

const PER = ["run", "actor", "tenant", "tool", "global"] as const;
export type CounterScope = (typeof PER)[number];
export const MATCH_FIELDS = [
  "tool",
  "actor",
  "acting",
  "tenant",
  "environment",
  "effect",
  "data_class",
  "source",
  "sink",
] as const;
export type MatchField = (typeof MATCH_FIELDS)[number];
export const UNPROVEN_ACTIONS = ["warn", "require_approval", "deny"] as const;
const CONTENT_ACTIONS = ["off", "warn", "require_approval", "deny"] as const;

const entryId = describeField(idSchema, "unique name, shown in reasons and on the ledger");
const entryReason = describeField(
  shortText,
  "text that agents and approvers see; never contains argument values",
);
const entryHint = describeField(
  shortText,
  "suggestion to the agent about an allowed alternative",
  inWords("none"),
).optional();

const rule = z.strictObject({
  id: entryId,
  match: optionalMatch.optional(),
  when: describeField(conditionList, "conditions on the arguments; all must be true", []).optional(),
  action: describeField(z.enum(RULE_ACTIONS), "decision for calls that match; the strictest entry wins"),
  reason: describeField(entryReason, entryReason.description!, inWords("names the rule")).optional(),
  hint: entryHint,
  sandboxed: describeField(
    z.literal("allow"),
    "with `require_approval`: the rule does not apply inside `svc run`",
    inWords("the rule applies everywhere"),
  ).optional(),
  approval: approvalTerms.optional(),
});

/** Common fields of all restricting entries, which deny by default. */
const restricting = {
  id: entryId,
  action: describeField(
    z.enum(RESTRICTING_ACTIONS),
    "decision for calls that this entry restricts",
    "deny",
  ).optional(),
  reason: describeField(entryReason, entryReason.description!, inWords("names the entry")).optional(),
  hint: entryHint,
  approval: approvalTerms.optional(),
};

const restriction = { ...restricting, match: optionalMatch.optional() };

/** Once a call that matches `after` was accepted, calls that match `then` are restricted. */
const flow = z.strictObject({
  ...restricting,
  after: describeField(matchOf("the first call"), "accepted calls that start the restriction"),
  // biome-ignore lint/suspicious/noThenProperty: the policy's own word; it holds a match, never a function
  then: describeField(matchOf("the later call"), "later calls that the flow restricts"),
  within: describeField(
    lookbackSchema,
    "`run`, or a duration over all runs of the same agent and tenant (with `carries`: of the tenant)",
    "run",
  ).optional(),
  when: describeField(
    conditionList,
    "conditions on the later call; a value such as `$after.args.account` is the first call's",
    [],
  ).optional(),
  carries: describeField(
    z.boolean(),
    "restrict only calls whose arguments hold a value from the first call's result",
    false,
  ).optional(),
});

/** Values that flows with `carries` follow. */
const carries = z.strictObject({
  max: describeField(
    z.int().min(1).max(1_000_000),
    "values followed per run; past it, every value counts as carried",
    20_000,
  ).optional(),
});

/** Common fields of all counting entries. With `refund`, a verified undo refunds the charge of its call. */
const counting = {
  ...restriction,
  per: describeField(z.enum(PER), "scope of each count; `global` has one count for all calls"),
  window: describeField(policyDurationSchema, "length of the sliding window, such as `1h`"),
  refund: describeField(
    z.boolean(),
    "return the charge of a call when its undo is verified",
    false,
  ).optional(),
};

const limit = z.strictObject({
  ...counting,
  max: describeField(z.int().min(0), "accepted calls per window; the next call is restricted"),
});

const budget = z.strictObject({
  ...counting,
  path: describeField(argsPath, "argument with the amount, such as `$args.amount`"),
  max: describeField(z.number().min(0), "largest sum per window; a call that would exceed it is restricted"),
  warn_at: describeField(
    z.number().gt(0).max(1),
    "share of `max` from which reports list the budget",
    0.9,
  ).optional(),
});

const timeWindow = z.strictObject({
  ...restriction,
  days: describeField(
    z.array(z.enum(WEEKDAY_NAMES)).min(1).max(7),
    "weekdays on which the window is open",
    inWords("every day"),
  ).optional(),
  hours: describeField(
    hoursSchema,
    "hours in which it is open, such as `09:00-12:00, 13:00-17:00`",
    inWords("all day"),
  ).optional(),
  tz: describeField(
    timeZoneSchema,
    "time zone of `days` and `hours`, such as `Europe/Berlin`",
    "UTC",
  ).optional(),
});

const freeze = z.strictObject({
  ...restriction,
  from: describeField(timestampSchema, "start of the freeze (ISO 8601)"),
  to: describeField(timestampSchema, "end of the freeze (ISO 8601)"),
});

const contentAction = (finds: string) =>
  describeField(z.enum(CONTENT_ACTIONS), `action if the arguments contain ${finds}`, "off").optional();
const content = z.strictObject({
  secrets: contentAction("credentials, such as API keys and passwords"),
  pii: contentAction("personal data, such as email addresses and card numbers"),
  injection: contentAction("text that tries to instruct a model"),
  max_bytes: describeField(
    z.int().min(1),
    "largest size of the arguments; larger ones are denied",
    inWords("no limit"),
  ).optional(),
});

const points = z.number().min(0).max(100);
const labelPoints = (field: RiskFactor, label: string): string => {
  const factor = field.replace("_", " ");
  if (label === "unset") return `points of a call without ${factor}`;
  return label === "*" ? `points of any other ${factor}` : `points of the ${factor} \`${label}\``;
};
const weightsOf = (factor: "effect" | "blast_radius", names: readonly string[]) =>
  z.strictObject(
    Object.fromEntries(
      [...names, "unset", "*"].map((label) => [
        label,
        describeField(points, labelPoints(factor, label), DEFAULT_WEIGHTS[factor][label]).optional(),
      ]),
    ),
  );
const weightsByLabel = (factor: "data_class" | "environment") =>
  describeField(
    z.record(z.string(), points),
    `points per ${factor.replace("_", " ")}, with \`unset\` and \`*\``,
    DEFAULT_WEIGHTS[factor],
  ).optional();

const score = z.int().min(0).max(100);
const risk = z.strictObject({
  weights: describeField(
    z.strictObject({
      effect: describeField(weightsOf("effect", TOOL_EFFECTS), "points per effect").optional(),
      blast_radius: describeField(
        weightsOf("blast_radius", BLAST_RADII),
        "points per blast radius",
      ).optional(),
      data_class: weightsByLabel("data_class"),
      environment: weightsByLabel("environment"),
    }),
    "points that replace the built-in ones; the score is their sum",
  ).optional(),
  require_approval_at: describeField(
    score,
    "score from which a call requires approval",
    inWords("never"),
  ).optional(),
  deny_at: describeField(score, "score from which a call is denied", inWords("never")).optional(),
});

const approvals = z.strictObject({
  ...approvalOf({ ttl: "24h" }).shape,
  four_eyes: describeField(z.boolean(), "nobody can approve their own request", false).optional(),
  max_open_per_run: describeField(
    z.int().min(1).max(100_000),
    "open requests per run; further calls are blocked without a request",
    SERVICE_LIMITS.open_approvals_per_run,
  ).optional(),
  show: describeField(
    z.enum(APPROVAL_SHOWS),
    "what the card keeps of the call: its argument values, or only their names",
    "arguments",
  ).optional(),
  flood: describeField(
    z.strictObject({
      max: describeField(z.int().min(0).max(100_000), "requests per agent and window"),
      window: describeField(policyDurationSchema, "length of the window, such as `10m`"),
    }),
    "above this rate, one digest per window replaces single notifications",
    inWords("off"),
  ).optional(),
});

/** Treatment of undos without a recent drill. */
const undo = z.strictObject({
  max_age: describeField(
    policyDurationSchema,
    "age after which a passed drill no longer counts",
    "30d",
  ).optional(),
  unproven: describeField(
    z.enum(UNPROVEN_ACTIONS),
    "action for undoable calls whose undo has no recent passed drill",
    "warn",
  ).optional(),
});

const days = z.int().min(1).max(36_500);

const retention = z.strictObject({
  default_days: describeField(days, "days to keep the working data of a run, counted from its start"),
  rules: describeField(
    z.array(
      z.strictObject({
        match: describeField(
          matchSchema.pick({ tool: true, tenant: true, environment: true, data_class: true }),
          "runs with at least one such call",
        ),
        days: describeField(days, "days to keep those runs; the longest period wins"),
      }),
    ),
    "other periods for some runs",
    [],
  ).optional(),
});

const flowLabels = z.union([shortText, z.array(shortText).max(100)]);

/** Call of a test. Its values override those of the tool's manifest. */
const testCall = {
  tool: describeField(z.string().min(1).max(256), "tool that the test calls"),
  args: describeField(z.unknown(), "arguments of the call", {}).optional(),
  at: describeField(timestampSchema, "time of the call (ISO 8601)", inWords("now")).optional(),
  effect: describeField(
    z.enum([...TOOL_EFFECTS, "read_only"]),
    "effect, instead of the manifest's",
  ).optional(),
  data_class: describeField(shortText, "data class, instead of the manifest's").optional(),
  blast_radius: describeField(z.enum(BLAST_RADII), "blast radius, instead of the manifest's").optional(),
  source: describeField(flowLabels, "source labels, instead of the manifest's").optional(),
  sink: describeField(flowLabels, "sink labels, instead of the manifest's").optional(),
};

const earlierCall = z.strictObject({
  ...testCall,
  result: describeField(z.unknown(), "what the call returned", inWords("not known")).optional(),
});

export const policyTestInput = z.strictObject({
  ...testCall,
  actor: describeField(shortText, "agent that makes the call").optional(),
  acting: describeField(
    z.array(shortText).max(10),
    "those who act for the actor, as in the token's `act`, outermost first",
    [],
  ).optional(),
  tenant: describeField(shortText, "tenant of the run", inWords("none")).optional(),
  environment: describeField(shortText, "environment of the service", inWords("none")).optional(),
  sandboxed: describeField(z.boolean(), "whether the call comes from inside `svc run`", false).optional(),
  given: describeField(
    z.array(z.string().max(100_000)).max(100),
    "users' texts, whose values do not count as foreign",
    [],
  ).optional(),
  earlier: describeField(z.array(earlierCall).max(100), "accepted calls of the same run", []).optional(),
  repeat: describeField(
    z.int().min(1).max(1_000),
    "number of equal calls; the test checks the last decision",
    1,
  ).optional(),
});

const policyTest = z.strictObject({
  name: describeField(shortText, "name of the test"),
  input: describeField(policyTestInput, "call to decide"),
  expect: describeField(z.enum(RULE_ACTIONS), "expected decision"),
  rule: describeField(idSchema, "id of an entry that must be among the reasons", inWords("any")).optional(),
});

/** Statement about all calls, which the policy checks prove or refute. */
const claim = z.strictObject({
  name: describeField(shortText, "statement about all calls, in your words"),
  match: describeField(matchSchema, "calls that the claim covers", inWords("every call")).optional(),
  when: describeField(conditionList, "conditions on the arguments; all must be true", []).optional(),
  at_least: describeField(z.enum(RESTRICTING_ACTIONS), "mildest decision that any covered call can get"),
  unless: describeField(
    matchOf("the exceptions"),
    "calls that the claim leaves out",
    inWords("none"),
  ).optional(),
});

export const policySchema = z.strictObject({
  version: describeField(z.literal(1), "version of the format"),
  rules: describeField(z.array(rule), "decisions by tool, caller and arguments", []).optional(),
  content: describeField(content, "checks of the argument values").optional(),
  risk: describeField(risk, "score of each call from its labels", inWords("off")).optional(),
  limits: describeField(z.array(limit), "largest number of calls per time", []).optional(),
  budgets: describeField(z.array(budget), "largest sum of an argument per time", []).optional(),
  flows: describeField(z.array(flow), "restrictions on calls that follow other calls", []).optional(),
  carries: describeField(carries, "bounds of flows with `carries`").optional(),
  windows: describeField(z.array(timeWindow), "times outside which calls are restricted", []).optional(),
  freezes: describeField(z.array(freeze), "periods in which calls are restricted", []).optional(),
  approvals: describeField(approvals, "defaults and limits of approval requests").optional(),
  undo: describeField(undo, "requirements on tested undos", inWords("off")).optional(),
  retention: describeField(
    retention,
    "how long to keep the working data of runs",
    inWords("forever"),
  ).optional(),
  claims: describeField(
    z.array(claim).max(500),
    "statements that `svc policy check` proves or refutes",
    [],
  ).optional(),
  tests: describeField(
    z.array(policyTest),
    "expected decisions that `svc policy test` checks",
    [],
  ).optional(),
});

export type PolicyDoc = z.infer<typeof policySchema>;
export type RuleDoc = z.infer<typeof rule>;
export type MatchDoc = z.infer<typeof matchSchema>;
export type ApprovalTermsDoc = z.infer<typeof approvalSchema>;
export type LimitDoc = z.infer<typeof limit>;
export type FlowDoc = z.infer<typeof flow>;
export type BudgetDoc = z.infer<typeof budget>;
export type RiskDoc = z.infer<typeof risk>;
export type RetentionDoc = z.infer<typeof retention>;
export type ClaimDoc = z.infer<typeof claim>;
export type PolicyTestDoc = z.infer<typeof policyTest>;
