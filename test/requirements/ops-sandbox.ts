/** Statements of the operations document: capture, simulation, replay, impact preview, speculation. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const opsCapture = section("operations", "Captured call", {
  "ops.capture.only-when-on": [7, "calls are captured only when capture is on"],
  "ops.capture.no-step-when-blocked": [7, "a captured call carries its run id and step; a blocked one has no step"],
  "ops.capture.who": [7, "a captured call carries tool, actor, tenant and environment"],
  "ops.capture.arguments-redacted": [7, "captured arguments are redacted before they are written"],
  "ops.capture.result-when-finished": [7, "the result is there once the call has finished"],
  "ops.capture.decision-and-reasons": [7, "a captured call carries its decision and reasons"],
  "ops.capture.outcome": [7, "a captured call carries its outcome"],
  "ops.capture.version-and-risk": [7, "a captured call carries manifest version and risk score"],
  "ops.capture.times": [7, "a captured call carries its captured and its expires time"],
  "ops.capture.expired-not-listed": [7, "a record past `expires` is not listed"],
  "ops.capture.expired-not-used": [7, "a record past `expires` is not used in simulation or replay"],
  "ops.redaction.credentials": [7, "a credential in any string becomes `[REDACTED:<kind>]`"],
  "ops.redaction.pii-email": [7, "an email address becomes `[PII:<kind>]`"],
  "ops.redaction.pii-phone": [7, "a phone number becomes `[PII:<kind>]`"],
  "ops.redaction.pii-card-luhn": [7, "a card number that passes the Luhn check becomes `[PII:<kind>]`, one that fails it stays"],
  "ops.redaction.pii-ssn": [7, "a US social security number becomes `[PII:<kind>]`"],
  "ops.redaction.pii-iban": [7, "an IBAN that passes its checksum becomes `[PII:<kind>]`, one that fails it stays"],
  "ops.redaction.pii-switch": [7, "`redact_pii: false` leaves personal data as it is"],
  "ops.redaction.manifest-paths": [7, "each path in `audit.redaction` becomes `[REDACTED]`"],
  "ops.redaction.long-strings": [7, "a string over 20,000 characters is cut"],
  "ops.redaction.many-entries": [7, "a list or object over 200 entries is cut to 200"],
  "ops.redaction.deep-nesting": [7, "nesting over 12 levels is cut"],
  "ops.redaction.before-writing": [7, "no unredacted value is ever written to the store"],
  "ops.redaction.simulation-note": [7, "a report carries a note where a rule read inside a redacted value"],
});

// biome-ignore format: one statement a line
export const opsSimulationReport = section("operations", "Simulation report", {
  "ops.simulation.compares-decision": [7, "the new decision on each captured call is set against the old: `allow`, `needs_approval` or `block`"],
  "ops.simulation.newly-blocked": [7, "calls that are now refused are grouped as `newly_blocked`"],
  "ops.simulation.newly-needs-approval": [7, "calls that now need approval are grouped as `newly_needs_approval`"],
  "ops.simulation.newly-allowed": [7, "calls that are now allowed are grouped as `newly_allowed`"],
  "ops.simulation.approval-to-block": [7, "from `needs_approval` to `block` counts as newly blocked"],
  "ops.simulation.summary": [7, "the summary tells the number of captured calls, of runs, and of unchanged calls"],
});

// biome-ignore format: one statement a line
export const opsReplayReport = section("operations", "Replay report", {
  "ops.replay-report.keys": [7, "a replay report has `baseline`, `variant`, `differences`, `baseline_plan` and `variant_plan`"],
  "ops.replay-report.both-decisions": [7, "for each call there are two decisions: the recorded one and the one under the changes"],
});

// biome-ignore format: one statement a line
export const opsImpactReport = section("operations", "Impact preview", {
  "ops.impact.decision": [7, "a preview tells the decision now, `allow`, `needs_approval` or `block`, with reasons"],
  "ops.impact.risk": [7, "a preview has the risk score, and what effect, blast radius, data class and environment added to it"],
  "ops.impact.labels": [7, "a preview tells the owner and the risk labels"],
  "ops.impact.prerequisites": [7, "a preview tells which tools must run first"],
  "ops.impact.approvers": [7, "a preview tells who must approve and how many"],
  "ops.impact.outlook": [7, "a preview tells the undo tool, its residue, whether it is verified and whether it needs approval"],
  "ops.impact.warn-irreversible": [7, "a preview warns of an irreversible effect"],
  "ops.impact.warn-lifecycle": [7, "a preview warns of a draft or deprecated manifest"],
  "ops.impact.warn-unverified": [7, "a preview warns of an unverified undo"],
  "ops.impact.unknown-tool-block": [7, "a tool without a manifest previews as `block`, because no manifest is registered"],
  "ops.impact.unknown-tool-outlook": [7, "the rollback outlook of a tool without a manifest is unknown"],
  "ops.impact.unknown-tool-warning": [7, "a tool without a manifest gets the warning unclassified tool"],
  "ops.impact.requires-assumed": [7, "a preview takes the tools in `requires` as having run"],
});

// biome-ignore format: one statement a line
export const opsSpeculationResult = section("operations", "Speculation result", {
  "ops.speculation.blocked-at": [7, "`blocked_at` is the first refused call of a plan"],
  "ops.speculation.approvals": [7, "a result tells the approvals needed"],
  "ops.speculation.risk": [7, "a result tells the highest and the total risk score"],
  "ops.speculation.irreversible-tools": [7, "a result tells the irreversible tools"],
  "ops.speculation.residue": [7, "a result tells the residue that a rollback would leave"],
  "ops.speculation.fully-reversible": [7, "a result tells whether the plan is fully reversible and has its rollback plan"],
  "ops.speculation.notes": [7, "a result carries notes"],
  "ops.speculation.weight-blocked": [7, "a blocked plan ranks 10,000 worse"],
  "ops.speculation.weight-approval": [7, "each approval ranks 10 worse"],
  "ops.speculation.weight-risk": [7, "the highest risk score is added to the rank"],
  "ops.speculation.weight-irreversible": [7, "each irreversible call ranks 50 worse"],
  "ops.speculation.weight-not-reversible": [7, "a plan that is not fully reversible ranks 25 worse"],
  "ops.speculation.recommended": [7, "`recommended` marks the lowest-ranked plan among those with no blocked call, if there is any"],
  "ops.speculation.risk-zero": [7, "with no `risk` section in the policy every risk score is 0"],
});

// biome-ignore format: one statement a line
export const opsCaptureStates = section("operations", "States: captured call", {
  "ops.capture-state.stored": [7, "with capture on, deciding a call stores it"],
  "ops.capture-state.expired": [7, "a stored call expires when its time has passed"],
  "ops.capture-state.purge-expired": [7, "`svc capture purge` deletes what has expired"],
  "ops.capture-state.purge-run": [7, "`svc capture purge --run <id>` deletes everything of one run, expired or not"],
  "ops.capture-state.purge-retention": [8, "retention that deletes a run deletes its captured calls"],
});

// biome-ignore format: one statement a line
export const opsCaptureEndpoints = section("operations", "Endpoints: Capture", {
  "ops.capture-config.enabled": [7, "`capture.enabled` is a boolean and false by default"],
  "ops.capture-config.ttl": [7, "`capture.ttl` is a duration and 7d by default"],
  "ops.capture-config.redact-pii": [7, "`capture.redact_pii` is a boolean and true by default"],
  "ops.capture-config.env": [7, "`SVC_CAPTURE=1` turns capture on"],
  "ops.capture-config.env-ttl": [7, "`SVC_CAPTURE_TTL_DAYS=<n>` sets the ttl in days"],
  "ops.capture-config.server-records": [7, "the server records when capture is on"],
  "ops.capture-config.gateway-records": [7, "the gateway records when capture is on"],
  "ops.capture-config.doctor": [7, "`svc doctor` tells whether capture is on"],
  "ops.capture-list.line": [7, "`svc capture list` gives each call a line with time, run and step, tool, decision, outcome and arguments"],
  "ops.capture-list.run": [7, "`svc capture list --run <id>` lists one run's calls"],
  "ops.capture-list.tool": [7, "`svc capture list --tool <name>` lists one tool's calls"],
  "ops.capture-list.since": [7, "`svc capture list --since <period>` lists recent calls"],
  "ops.capture-list.json": [7, "`svc capture list --json` prints JSON"],
  "ops.capture-purge.line": [7, "`svc capture purge` prints `removed <n> captured calls`"],
  "ops.capture.no-other-surface": [7, "captured calls are reached from the command line only: neither HTTP nor console nor gateway has them"],
});

// biome-ignore format: one statement a line
export const opsSimulationEndpoints = section("operations", "Endpoints: Policy simulation", {
  "ops.simulate.command": [7, "`svc simulate --policy <file>` simulates a policy file"],
  "ops.simulate.versions-folder": [7, "`--policy` also takes a versions folder"],
  "ops.simulate.since": [7, "`--since <period>` sets the period; the default is 7d"],
  "ops.simulate.run": [7, "`--run <id>` limits it to one run"],
  "ops.simulate.json": [7, "`--json` prints the report as JSON"],
  "ops.simulate.exit-2": [7, "newly blocked calls make `svc simulate` exit 2"],
  "ops.simulate.http-policy": [7, "`POST /v1/simulate` takes `policy` as YAML text"],
  "ops.simulate.http-active": [7, "without `policy` the active one is simulated"],
  "ops.simulate.http-run-id": [7, "`POST /v1/simulate` takes an optional `run_id`"],
  "ops.simulate.http-since": [7, "`POST /v1/simulate` takes an optional `since`"],
  "ops.simulate.http-operator": [7, "`POST /v1/simulate` needs the operator role"],
  "ops.simulate.console": [9, "the console's Policy page simulates the last 7 days"],
  "ops.simulate.other-reasons": [7, "history's blocks by halts, prerequisites or content checks may turn up among the newly allowed"],
  "ops.simulate.captured-only": [7, "only captured, unexpired calls are simulated"],
});

// biome-ignore format: one statement a line
export const opsReplayEndpoints = section("operations", "Endpoints: Replay", {
  "ops.replay.command": [7, "`svc replay <run_id> --set <path>=<value>` replays a run; `--set` may be repeated"],
  "ops.replay.policy": [7, "`svc replay --policy <file>` replays under another policy"],
  "ops.replay.json": [7, "`svc replay --json` prints the report as JSON"],
  "ops.replay.set-json": [7, "a `--set` value is parsed as JSON, and taken as a string when it is just a word"],
  "ops.replay.set-all": [7, "`<path>=<value>` applies to every call"],
  "ops.replay.set-step": [7, "`<step>.<path>=<value>` applies to one step"],
  "ops.replay.set-tool": [7, "`tool:<tool>/<path>=<value>` applies to every call to that tool"],
  "ops.replay.http-body": [7, "`POST /v1/runs/{id}/replay` takes `policy` (YAML text) and `changes[]` of `{step, tool, path, value}`"],
  "ops.replay.http-operator": [7, "`POST /v1/runs/{id}/replay` needs the operator role"],
  "ops.replay.http-404": [7, "a run with no captures is a 404"],
  "ops.replay.console": [9, "the run's page has a Replay form when capture is on, with one change per submit"],
  "ops.replay.twice": [7, "a replay runs the sandbox two times: once unchanged, once with the changes"],
  "ops.replay.compares": [7, "decisions and rollback plans of both runs are compared in the report"],
});

// biome-ignore format: one statement a line
export const opsImpactEndpoints = section("operations", "Endpoints: Impact preview", {
  "ops.impact.command": [7, "`svc impact <tool>` takes `--args <json>`, `--actor <name>`, `--policy <file>` and `--json`"],
  "ops.impact.http": [7, "`GET /v1/impact?tool=<tool>&args=<json>&actor=<name>` needs the auditor role"],
  "ops.impact.console": [9, "`/console/impact` shows a preview"],
  "ops.impact.gateway": [7, "the gateway tool `svc.preview_impact` takes `{tool, arguments}`, on the agent endpoint too"],
  "ops.impact.capture-off": [7, "a preview works with capture off"],
});

// biome-ignore format: one statement a line
export const opsSpeculationEndpoints = section("operations", "Endpoints: Speculative execution", {
  "ops.speculate.command": [7, "`svc speculate <plans file>` takes `--policy <file>`, `--actor <name>` and `--json`"],
  "ops.speculate.http": [7, "`POST /v1/speculate` takes `plans[]` of `{name, calls[]}`, `policy` (YAML text) and `actor`, and needs the auditor role"],
  "ops.speculate.call": [7, "a call of a plan is `{tool, args, result}`, `result` optional"],
  "ops.speculate.file": [7, "plans come from a YAML file: `plans[]`, each a `name` and its `calls[]`"],
  "ops.speculate.given-result": [7, "a given `result` builds the compensation's arguments"],
  "ops.speculate.synthesized-result": [7, "where a call has no result one is made up from the manifest, and a note says so"],
  "ops.speculate.no-other-surface": [7, "neither the console nor the gateway offers speculation"],
});

// biome-ignore format: one statement a line
export const opsSandboxLimits = section("operations", "Endpoints: Sandbox limits", {
  "ops.sandbox.ledger-untouched": [7, "the real ledger does not change"],
  "ops.sandbox.runs-untouched": [7, "the real runs do not change"],
  "ops.sandbox.loaded-now": [7, "manifests and policy are used as they are loaded now"],
  "ops.sandbox.real-clock": [7, "time windows and freezes see the real clock"],
  "ops.sandbox.every-permission": [7, "scope never blocks in the sandbox, whose runs hold all permissions of the manifests"],
  "ops.sandbox.empty-counters": [7, "counters of limits and budgets start empty and count the replayed calls only"],
});
