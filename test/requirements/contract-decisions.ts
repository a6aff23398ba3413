/** Decisions of the contract: approvals, delegations, policy. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const contractApproval = section("contract", "2. Approval request and delegation", {
  "contract.approval.fields": [3, "an approval request has `id`, `run_id`, `tool`, `actor`, `tenant`, `args_hash`, `arg_names`, `reason`, `rule`, `status`, `requested_ms`, `expires_ms`, `approvers {groups, quorum}`, `votes`, `decided_by`, `decided_ms`, `note`, `kind`, `step`, `escalated_ms`, `break_glass`"],
  "contract.approval.votes": [3, "a vote is `{by, decision, note, at_ms, for}`"],
  "contract.approval.kind": [3, "`kind` is `call` or `compensation`"],
  "contract.approval.statuses": [3, "`status` is `pending`, `escalated`, `approved`, `denied`, `expired` or `consumed`"],
  "contract.approval.escalated-open": [3, "escalation leaves a request open: it can be approved or denied as before"],
  "contract.approval.ttl-default": [3, "a request lives 24h by default"],
  "contract.approval.four-eyes": [3, "with `approvals.four_eyes: true` deciding one's own request is a 403 `you cannot decide your own request`"],
  "contract.approval.four-eyes-registry": [3, "with `four_eyes` nobody approves their own draft in the registry"],
  "contract.approval.four-eyes-default": [3, "`four_eyes` is false by default"],
  "contract.approval.doctor-warns": [3, "a key with the agent role and an approving role beside it draws a warning from `svc doctor`"],
  "contract.approval.covers-one": [3, "an approval is good for its own run, its own tool and its own arguments, and for nothing else"],
  "contract.approval.re-evaluated": [3, "using an approval runs the pipeline anew, so a policy or manifest tightened in between still refuses"],
  "contract.approval.same-request": [3, "repeating a call whose request is undecided names the request that exists, and opens no second one"],
  "contract.delegation.fields": [3, "a delegation is `{id: dlg_<uuid>, from, to, tools, reason, created_ms, expires_ms, revoked_ms}`"],
  "contract.delegation.lends": [3, "a delegate decides with the authority of the approver that lent it, and no longer after `expires_ms`"],
  "contract.delegation.expiry-required": [3, "`expires_ms` is required and at most 30 days away"],
  "contract.delegation.tools": [3, "`tools` is a glob that limits the delegation"],
  "contract.delegation.recorded": [3, "a decision under a delegation is recorded as `decided_by: <to>` and `votes[].for: <from>`"],
  "contract.delegation.no-chains": [3, "a delegate cannot delegate on"],
});

// biome-ignore format: one statement a line
export const contractPolicyRules = section("contract", "3. Policy: rules", {
  "contract.policy.match-tool": [3, "a rule may match the `tool`"],
  "contract.policy.match-actor": [3, "a rule may match the `actor`"],
  "contract.policy.match-tenant": [3, "a rule may match the `tenant`"],
  "contract.policy.match-environment": [3, "a rule may match the `environment`"],
  "contract.policy.match-effect": [3, "a rule may match the `effect`"],
  "contract.policy.match-data-class": [3, "a rule may match the `data_class`"],
  "contract.policy.match-globs": [3, "match fields are globs with `*`, `?` and `{a,b}`"],
  "contract.policy.match-missing-field": [3, "a field that a match leaves out matches anything"],
  "contract.policy.actions": [3, "a rule's action is `allow`, `require_approval` or `deny`"],
  "contract.policy.rule-approval": [3, "a rule's `approval` sets `groups`, `quorum`, `ttl`, `escalate_after` and `escalate_to`"],
  "contract.policy.approval-groups": [3, "only members of the rule's groups can decide"],
  "contract.policy.approval-quorum": [3, "a request is approved when its quorum of different principals has approved"],
  "contract.policy.approval-escalation": [3, "a request escalates after `escalate_after` to `escalate_to`"],
  "contract.policy.when-all": [3, "all conditions of `when` must hold"],
  "contract.policy.op-eq-ne": [3, "ops `eq` and `ne`"],
  "contract.policy.op-order": [3, "ops `gt`, `gte`, `lt` and `lte`"],
  "contract.policy.op-in": [3, "ops `in` and `not_in`"],
  "contract.policy.op-contains": [3, "ops `contains` and `not_contains`"],
  "contract.policy.op-affixes": [3, "ops `starts_with` and `ends_with`"],
  "contract.policy.op-matches": [3, "ops `matches` and `not_matches`"],
  "contract.policy.op-exists": [3, "ops `exists` and `absent`"],
  "contract.policy.missing-path": [3, "a condition on a path that is not there is false, except with `absent`"],
  "contract.policy.incomparable-restricts": [3, "a value that cannot be compared makes a restricting rule match, with `could not compare <path>` in its reason"],
  "contract.policy.incomparable-no-allow": [3, "a value that cannot be compared does not make an allowing rule match"],
  "contract.policy.incomparable-no-exception": [3, "a value that cannot be compared never throws and never passes silently"],
  "contract.policy.linear-regex": [3, "`matches` runs in linear time"],
  "contract.policy.regex-subset": [3, "a pattern outside the linear subset is a load error"],
});

// biome-ignore format: one statement a line
export const contractPolicySections = section("contract", "3. Policy: sections", {
  "contract.policy.content-settings": [3, "`content` settings are `off`, `warn`, `require_approval` or `deny`"],
  "contract.policy.content-secrets": [3, "`content.secrets` checks for secrets"],
  "contract.policy.content-pii": [3, "`content.pii` checks for personal data"],
  "contract.policy.content-injection": [3, "`content.injection` checks for instruction-like text inside arguments"],
  "contract.policy.content-max-bytes": [3, "`content.max_bytes` limits the size of arguments"],
  "contract.policy.risk-weights": [3, "`risk.weights` are optional for effect, blast radius, data class and environment, with built-in defaults"],
  "contract.policy.risk-approval": [3, "a score at `risk.require_approval_at` needs approval"],
  "contract.policy.risk-deny": [3, "a score at `risk.deny_at` is denied"],
  "contract.policy.risk-range": [3, "`risk_score` is 0 to 100"],
  "contract.policy.limits": [3, "`limits` count calls: `id`, `match`, `max`, `per`, `window`, `action`"],
  "contract.policy.budgets": [3, "`budgets` sum a number in the arguments: `id`, `match`, `path`, `max`, `per`, `window`, `action`"],
  "contract.policy.budget-warn-at": [3, "a budget's `warn_at` marks it as near its limit"],
  "contract.policy.per-values": [3, "`per` is `run`, `actor`, `tenant`, `tool` or `global`"],
  "contract.policy.windows": [3, "outside the days and hours of a `windows` entry its action applies"],
  "contract.policy.windows-tz": [3, "a window's hours are read in its time zone"],
  "contract.policy.freezes": [3, "between `from` and `to` of a `freezes` entry its action applies"],
  "contract.policy.approval-defaults": [3, "`approvals` sets the defaults for every rule: `ttl`, `quorum`, `four_eyes`"],
  "contract.policy.max-open-per-run": [3, "`approvals.max_open_per_run` caps the open requests of a run, 100 by default"],
});

// biome-ignore format: one statement a line
export const contractCombining = section("contract", "3. Policy: combining", {
  "contract.combine.every-rule": [3, "every matching rule counts"],
  "contract.combine.strictest": [3, "the strictest action wins: `deny`, then `require_approval`, then `allow`"],
  "contract.combine.allow-lifts-risk": [3, "an explicit `allow` rule lifts a risk-score action"],
  "contract.combine.allow-lifts-window": [3, "an explicit `allow` rule lifts a window action"],
  "contract.combine.allow-lifts-nothing-else": [3, "an `allow` rule leaves denials, content checks, limits and halts standing"],
  "contract.combine.all-reasons": [2, "a refused call is told all the reasons at once"],
  "contract.combine.order-foundation": [2, "the first reasons are ordered so: run state, manifest, lifecycle, scope, halts, prerequisites with dependencies, idempotency"],
  "contract.combine.order-policy": [3, "after those come freezes with windows, content, rules, limits with budgets, risk, and approvals last"],
  "contract.policy-test.inputs": [3, "a policy test may give `input.actor`, `input.tenant`, `input.environment` and `input.at`"],
  "contract.policy-test.expects": [3, "a policy test expects `allow`, `require_approval` or `deny`"],
  "contract.policy.needs-approval-word": [7, "`needs_approval` in previews means the same as `require_approval` in policy"],
});
