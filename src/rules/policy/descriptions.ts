/**
 * What each field of a policy means, for editors and for the reference. A key is a path in the schema or its end, so
 * that fields which occur in several sections are described once; the longest key wins.
 */
const POLICY_FIELDS: Record<string, string> = {
  version: "Version of the policy format. Always 1.",
  rules: "Which calls pass, wait for a person, or are refused.",
  content: "Checks of the text in arguments. Each check is off by default.",
  risk: "A score from 0 to 100 for every call, from its effect, blast radius, data class and environment.",
  limits: "How many calls are allowed in a sliding window.",
  budgets: "How much a number in the arguments can add up to in a sliding window.",
  flows: "Calls that are restricted once another call was accepted, such as sending after reading.",
  windows: "When calls are allowed: days and hours.",
  freezes: "Periods in which calls are restricted, such as a release freeze.",
  approvals: "Defaults for every approval request.",
  undo: "How far an undo counts that no drill has tested lately.",
  retention: "How many days the working data of runs is stored.",
  claims: "Statements about all calls. `svc policy check` proves each one or shows a counterexample.",
  tests: "Example calls with the decision that you expect. `svc policy test` runs them.",

  id: "Name of this entry, unique in its section. It appears in approvals, tests and reports.",
  match: "Which calls this entry is about. Without it: every call.",
  "match.tool": "Glob over the tool name, such as `payments.*`.",
  "match.actor": "Glob over the name of the agent.",
  "match.acting":
    "Glob over the names of those who act for the user. A call that its user makes directly never matches.",
  "match.tenant": "Glob over the tenant. `?*` means any tenant, but not none.",
  "match.environment": "Glob over the environment of the service, such as `prod*`.",
  "match.effect": "Glob over the manifest's effect, such as `irreversible`.",
  "match.data_class": "Glob over the manifest's data class, such as `pii`.",
  "match.source":
    "Glob over the manifest's labels for where data comes from. A tool without labels never matches.",
  "match.sink": "Glob over the manifest's labels for where data goes. A tool without labels never matches.",
  when: "Conditions on the arguments. All of them must hold; without any, the entry always applies.",
  "when[].path": 'The argument, such as `$args.amount`, `$args.items[0]` or `$args["any name"]`.',
  "when[].op": "The comparison. A missing value satisfies only `absent`.",
  "when[].value":
    "What to compare with: a number, a text, a list or a pattern. `exists` and `absent` take none.",
  action: "What happens to a matching call. Without it the entry denies.",
  "rules[].action":
    "What happens to a matching call. The strictest action wins; `allow` only lifts what a window or the risk score requires.",
  reason: "Why, for the agent and the approver.",
  sandboxed: "Whether the rule lets calls pass without approval inside `svc run`.",
  "input.sandboxed": "Whether the call comes from inside `svc run`.",
  hint: "What the agent can do instead. The agent receives it with the block.",

  approval: "Who approves, for `require_approval`. Without it the defaults under `approvals` apply.",
  groups: "An approver must be in one of these groups. Without it: any user with the approver role.",
  quorum: "How many different people must approve. The default is 1.",
  ttl: "How long the request can be approved, such as `4h`. The default is 24h.",
  escalate_after: "How long a request can wait before it is escalated, such as `30m`.",
  escalate_to: "Groups that are also notified and can decide once the request is escalated.",
  "approvals.four_eyes": "Nobody decides their own request. The default is false.",
  "approvals.max_open_per_run": "How many requests of one run can be open. The default is 100.",
  "approvals.show":
    "Whether approvers see argument values (`arguments`) or only the names of the arguments (`names`).",
  "approvals.flood":
    "From how many open requests on an agent's requests are grouped and notified as a digest.",
  "approvals.flood.max": "How many requests of one agent are notified separately.",
  "approvals.flood.window": "The period for `max`, such as `10m`.",

  secrets: "Credentials in arguments, such as API keys, private keys and passwords.",
  pii: "Personal data in arguments: email addresses, phone numbers, card numbers, IBANs.",
  injection: "Text in arguments that addresses a model, such as orders to ignore instructions.",
  max_bytes: "Arguments whose JSON is longer than this are denied.",

  weights: "Points that replace the built-in ones.",
  "weights.effect": "Points for each effect.",
  "weights.blast_radius": "Points for each blast radius.",
  "weights.data_class": "Points for each data class. `unset` is for tools without one, `*` for all others.",
  "weights.environment":
    "Points for each environment. `unset` is for services without one, `*` for all others.",
  "weights.unset": "Points for a tool without the label.",
  "weights.*": "Points for this value.",
  require_approval_at: "Calls with at least this score wait for a person.",
  deny_at: "Calls with at least this score are refused.",

  per: "What has its own count: each run, agent, tenant or tool, or all calls together (`global`).",
  window: "The length of the sliding window, such as `1h` or `1d`.",
  refund: "Whether an undo refunds the charge of its call.",
  "limits[].max": "How many calls are allowed. The call after that is restricted.",
  "budgets[].path": "The number to add up, such as `$args.amount`.",
  "budgets[].max": "The sum that is allowed. The call that would exceed it is restricted.",
  warn_at: "The share of `max` from which reports name the budget, such as 0.8.",

  after: "The call that starts the restriction.",
  // biome-ignore lint/suspicious/noThenProperty: the policy's own word, with a text
  then: "The calls that are restricted afterwards.",
  within:
    "`run` for the same run (the default), or a duration for all runs of the same agent and tenant. With `carries`, a duration covers all agents of the tenant.",
  "windows[].days": "Days on which matching calls are allowed. Without it: every day.",
  hours: "Hours in which matching calls are allowed, such as `09:00-17:00`.",
  tz: "Time zone of the days and hours, such as `Europe/Berlin`.",
  from: "First moment of the freeze, such as `2026-12-20T00:00:00Z`.",
  to: "End of the freeze. From this moment on, calls are no longer restricted.",

  max_age: "How old the last successful drill of an undo can be, such as `30d`.",
  unproven: "What happens to a call whose undo no drill has tested within `max_age`.",
  default_days: "For how many days runs are stored if no rule matches.",
  "retention.rules": "Other periods for some runs. The longest period that applies to a run wins.",
  "retention.rules[].match": "Which runs this period is for.",
  "retention.rules[].days": "For how many days these runs are stored.",

  "claims[].name": "The statement in your words.",
  at_least: "The weakest action that every such call gets.",
  unless: "Calls that the claim is not about.",

  "tests[].name": "What this test shows.",
  "tests[].input": "The call.",
  "tests[].expect": "The action that the policy must decide.",
  "tests[].rule": "The id of the entry that must decide.",
  "input.tool": "Name of the tool.",
  args: "Arguments of the call.",
  at: "When the call is made. Without it: now.",
  "input.effect": "Effect of the tool, instead of its manifest's.",
  "input.data_class": "Data class of the tool, instead of its manifest's.",
  "input.blast_radius": "Blast radius of the tool, instead of its manifest's.",
  "input.source": "Labels for where data comes from, instead of the manifest's.",
  "input.sink": "Labels for where data goes, instead of the manifest's.",
  "input.actor": "Name of the agent.",
  "input.acting": "Names of those who act for the user, outermost first.",
  "input.tenant": "Tenant of the run.",
  "input.environment": "Environment of the service.",
  given: "Texts of people. Flows with `carries` do not count their values as foreign.",
  earlier: "Accepted calls that the same run made before. A flow that looks at values reads each `result`.",
  result:
    "What the call returned. Without it, a source's result is not known, and every value counts as carried.",
  repeat: "The decision on the last of so many equal calls, for limits and budgets.",
};

/** Keys that hold a match or an earlier call under another name. */
const ALIASES: readonly (readonly [RegExp, string])[] = [
  [/(^|\.)(after|then|unless)\./, "$1match."],
  [/\.input\.earlier\[\]\./, ".input."],
  [/\.weights\.(effect|blast_radius)\.unset$/, ".weights.unset"],
  [/\.weights\.(effect|blast_radius)\.[^.]+$/, ".weights.*"],
];

/** The description of a field by its path in the schema, such as `rules[].when[].op`. */
export function describePolicyField(path: string): string | undefined {
  const known = ALIASES.reduce((text, [pattern, other]) => text.replace(pattern, other), path);
  const parts = known.split(".");
  for (let start = 0; start < parts.length; start++) {
    const text = POLICY_FIELDS[parts.slice(start).join(".")];
    if (text !== undefined) return text;
  }
  return undefined;
}
