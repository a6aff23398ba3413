/** Statements about policies that follow the data, explain themselves and can be proved. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyondFlows = section("beyond", "Flows", {
  "beyond.flow.restricts-after": [20, "a call that matches `then` is restricted once one that matches `after` was accepted in the run"],
  "beyond.flow.would-block-counts": [20, "a call that was answered `would_block` sets a flow off; one that was blocked does not"],
  "beyond.flow.within-duration": [20, "`within` a duration looks at all runs of the same actor and tenant, and at no other's"],
  "beyond.flow.order": [20, "the reasons of flows come after those of rules and before those of limits"],
  "beyond.flow.names-step": [20, "the reason of a flow names the earlier step"],
  "beyond.flow.labels": [20, "matches read `source` and `sink` from a manifest's risk labels"],
  "beyond.flow.approval": [20, "a flow may ask for an approval with terms of its own"],
  "beyond.flow.sandboxes": [20, "simulation, replay, impact preview and speculation follow flows"],
  "beyond.flow.stores": [20, "flows hold over several processes on every store"],
  "beyond.flow.tested": [20, "a policy test names earlier calls of its run"],
  "beyond.flow.checked": [20, "a flow with a wrong field, span or effect is an error with its line"],
});

// biome-ignore format: one statement a line
export const beyondHints = section("beyond", "Hints", {
  "beyond.hint.decision": [20, "a blocked decision carries the hints of the rules, limits and budgets that spoke, beside its reasons"],
  "beyond.hint.absent": [20, "a decision without hints has no such field"],
  "beyond.hint.gateway": [20, "the gateway's result carries the hints"],
  "beyond.hint.library": [20, "the library's BlockedError carries the hints, embedded and remote"],
  "beyond.hint.sdk": [20, "the Python SDK's Blocked carries the hints"],
});

// biome-ignore format: one statement a line
export const beyondClaims = section("beyond", "Claims", {
  "beyond.claim.never-wrong": [20, "no claim is called proved that a call contradicts"],
  "beyond.claim.proved": [20, "`svc policy check` and `policy test` say `proved` of a claim that holds for all calls"],
  "beyond.claim.counterexample-exit": [20, "a claim with a counterexample exits with 1"],
  "beyond.claim.incomplete-exit": [20, "a claim that cannot be decided is `incomplete` with the reason, and exits with 2"],
  "beyond.claim.checked": [20, "a claim over a field that does not exist is an error with its line"],
  "beyond.claim.registry": [20, "the registry refuses to activate a policy whose claim has a counterexample (409)"],
  "beyond.claim.console": [20, "the console's Policy page says of each claim what it is, with the counterexample"],
  "beyond.claim.cookbook": [20, "the cookbook has twelve policies at least whose claims are proved, and would not hold without the policy"],
  "beyond.claim.counterexample-run": [20, "a counterexample is a call that the decision function was run on"],
});

// biome-ignore format: one statement a line
export const beyondDiff = section("beyond", "Diff", {
  "beyond.diff.never-wrong": [20, "a complete diff names every class of call that is decided differently"],
  "beyond.diff.command": [20, "`svc policy diff` exits with 2 when the second policy is looser anywhere"],
  "beyond.diff.route": [20, "`POST /v1/policy/diff` compares a policy with the one in force or another"],
  "beyond.diff.roles": [20, "comparing policies is for operators"],
  "beyond.diff.second-admin": [20, "`registry.loosening: second_admin` makes a looser policy answer 202 and wait for another admin"],
  "beyond.diff.second-admin-now": [20, "the first admin's activation counts only while that admin could still give it"],
  "beyond.diff.second-admin-recorded": [20, "the record of an activation that took two admins names both; one that waits is in the log"],
  "beyond.diff.console": [20, "the console's Policy page compares a text with the policy in force or a version, each class with an example"],
  "beyond.flow.idle": [20, "`svc policy check` warns of a flow that no declared tool can set off, or that restricts none"],
  "beyond.diff.real-tools": [20, "a class of a diff names the declared tools in it; a name is made up only for tools without a manifest, and that is said"],
  "beyond.diff.examples-run": [20, "each class has an example that the decision function was run on under both policies"],
});

// biome-ignore format: one statement a line
export const beyondSuggest = section("beyond", "Suggest", {
  "beyond.suggest.draft": [20, "`svc policy suggest` drafts limits and budgets with room above the peak, rules for irreversible tools, and grants for what is always approved"],
  "beyond.suggest.permissions": [20, "the draft names the permissions that each agent used, and those that it held and did not"],
  "beyond.suggest.evidence": [20, "each line of the draft has its evidence, in calls and runs, and the whole is marked as a draft"],
  "beyond.suggest.simulated": [20, "the draft was simulated on the same history: nothing that ran well is newly blocked, and it says so"],
  "beyond.suggest.checks": [20, "what `svc policy suggest` prints passes `svc policy check` as it is"],
  "beyond.suggest.actor": [20, "`--actor` drafts from the calls of one agent, for it alone"],
  "beyond.suggest.empty": [20, "a history without calls is an error that says why"],
});

// biome-ignore format: one statement a line
export const beyondIdle = section("beyond", "Entries without effect", {
  "beyond.idle.unmatched": [33, "an entry whose match fits no declared tool is warned of, with the nearest name, where manifests are there"],
  "beyond.idle.contradiction": [33, "conditions that no value meets together are warned of"],
  "beyond.idle.shadowed": [33, "an entry that stricter rules cover completely is warned of, with their ids"],
  "beyond.idle.times": [33, "a freeze that has ended and a window that is always open are warned of"],
  "beyond.idle.never-wrong": [33, "no call contradicts a warning; what cannot be decided is not warned of"],
  "beyond.idle.commands": [33, "`svc policy check`, `svc policy test` and `svc validate` print the warnings and keep their exit code"],
  "beyond.idle.registry": [33, "publishing a policy answers with `warnings`"],
  "beyond.idle.console": [33, "the console's Policy page shows the warnings where a text is checked"],
  "beyond.idle.log": [33, "a server logs the warnings at its start and when its rules change"],
  "beyond.claim.no-ok": [33, "`svc policy check` prints no `ok` where a claim is not proved, and ends with how many are not"],
});

// biome-ignore format: one statement a line
export const beyondPlayground = section("beyond", "Playground", {
  "beyond.playground.types": [20, "the console's Policy page decides a call as one types: tool, arguments, actor, time"],
  "beyond.playground.spoke": [20, "it shows which rules, limits and flows spoke, and with which words"],
  "beyond.playground.now": [33, "without a time the call is made now, and the kept test carries that time where a window or a freeze concerns the call"],
  "beyond.playground.button": [20, "without scripts a button does the same"],
  "beyond.playground.keeps": [20, "it keeps the call as a test in the policy's text, whose other lines stay as they are"],
  "beyond.playground.counterexample": [20, "a counterexample or an example of a difference becomes a test in one click"],
});

// biome-ignore format: one statement a line
export const beyondErrors = section("beyond", "Errors where people stumble", {
  "beyond.errors.validate-warns": [20, "`svc validate` warns of undeclared tools in `requires`, compensation and verification, and of a path without its `$`"],
  "beyond.errors.nearest-tool": [20, "the refusal of an undeclared tool keeps its reason and carries the nearest name within the run's scope as a hint"],
  "beyond.errors.key-without-permissions": [20, "making an agent key without permissions says that it can request none"],
  "beyond.errors.test-now": [33, "a policy test without `input.at` is judged at the current time: by `svc policy test`, `svc doctor`, the registry and the console"],
  "beyond.errors.test-names-rules": [20, "a failing policy test names the rules that decided"],
});
