/** Statements of the core document: manifests, policy, rollback plan and report, ledger record. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const coreManifest = section("core", "Resources: Manifest entry", {
  "core.manifest.yaml-list": [2, "manifests are a YAML list"],
  "core.manifest.file-or-folder": [2, "manifests come from a file or from a folder"],
  "core.manifest.tool-required": [2, "`tool` is required and a string"],
  "core.manifest.effect-required": [2, "`effect` is required"],
  "core.manifest.effect-known": [2, "`reversible`, `compensable` and `irreversible` are effects"],
  "core.manifest.effect-unknown-refused": [2, "an effect that is not on the list is a validation error"],
  "core.manifest.permission-required": [2, "`permission` is required and a string"],
  "core.manifest.permission-in-scope": [2, "the run's scope must hold the manifest's permission"],
  "core.manifest.requires-tools": [2, "`requires` names tools that must have run before"],
  "core.manifest.requires-orders-rollback": [4, "`requires` also gives the dependencies that order a rollback"],
  "core.manifest.compensation-tool": [2, "`compensation` names the undo tool"],
  "core.manifest.compensation-args-from-args": [4, "compensation arguments may take values by `$args.<name>`"],
  "core.manifest.compensation-args-from-result": [4, "compensation arguments may take values by `$result.<name>`"],
  "core.manifest.residue": [2, "`residue` lists, as strings, what stays behind after the undo"],
  "core.manifest.kind": [2, "`kind` is `inverse` (the exact state is back) or `compensation` (amends are made)"],
  "core.manifest.requires-approval": [2, "`requires_approval` is a boolean"],
  "core.manifest.verification": [2, "`verification` names a read-only tool, its arguments, `expect`, `retries` and `backoff_ms`"],
  "core.manifest.idempotency": [2, "with `idempotency`, a logically equal call is refused as long as its forerunner stands"],
  "core.manifest.idempotency-frees": [2, "the same logical call may be made again once the first no longer stands"],
  "core.manifest.risk-data-class": [2, "`risk` carries labels, among them `data_class`"],
  "core.manifest.risk-blast-radius": [2, "`risk` carries the blast radius"],
  "core.manifest.owner": [2, "`owner` is a string label"],
  "core.manifest.audit-redaction": [2, "`audit.redaction` is a list of `$args` and `$result` paths"],
  "core.manifest.audit-retention-days": [2, "`audit.retention_days` is an integer"],
  "core.manifest.audit-evidence-export": [2, "`audit.evidence_export` may be `required`"],
  "core.manifest.audit-evidence-forces-bundle": [8, "`evidence_export: required` forces a signed bundle before deletion"],
  "core.manifest.version": [2, "a manifest has a version"],
  "core.manifest.lifecycle": [2, "`lifecycle` is draft, approved or deprecated"],
  "core.validate.ok-line": [2, "`svc validate <path>` prints `ok: <n> tool manifests valid`"],
  "core.validate.ok-exit": [2, "`svc validate` exits 0 when all entries are valid"],
  "core.validate.one-error-per-entry": [2, "`svc validate` lists an error for each invalid entry"],
  "core.validate.error-exit": [2, "`svc validate` exits 1 when an entry is invalid"],
});

// biome-ignore format: one statement a line
export const corePolicy = section("core", "Resources: Policy", {
  "core.policy.version-is-1": [3, "`version` is the integer 1; another one is refused"],
  "core.policy.rule-id": [3, "a rule has an `id`"],
  "core.policy.rule-match-tool-glob": [3, "a rule's `match` takes a tool as a glob"],
  "core.policy.rule-when": [3, "a rule's `when` is a list of `{path, op, value}`"],
  "core.policy.rule-path-args": [3, "a condition's path may be `$args.<name>`"],
  "core.policy.op-gt": [3, "the op `gt` compares numbers"],
  "core.policy.op-matches": [3, "the op `matches` tests a regular expression"],
  "core.policy.action-require-approval": [3, "a rule's action may be `require_approval`"],
  "core.policy.rule-reason": [3, "a rule has a `reason`, which is told when it decides"],
  "core.policy.content-secrets-deny": [3, "`content: {secrets: deny}` refuses calls whose arguments hold secrets"],
  "core.policy.test-entry": [3, "a test has `name`, `input` with `tool` and `args`, and `expect`"],
  "core.policy.test-expect-values": [3, "a test may expect `allow` or `require_approval`"],
  "core.policy.test-rule-optional": [3, "a test may name the `rule` that decides"],
  "core.policy.retention-section": [8, "the policy holds the `retention` section"],
  "core.policy.risk-enables-scoring": [3, "calls are scored only where the policy has a `risk` section"],
  "core.policy-check.validates": [3, "`svc policy check <file>` validates a policy"],
  "core.policy-test.ok-line": [3, "`svc policy test <file>` prints `ok  <name>` for each test that passes"],
  "core.policy-test.passed-line": [3, "`svc policy test` prints `<n> passed`"],
  "core.policy-test.fail-line": [3, "a failing test prints a line `FAIL ... expected <x>, got <y>`"],
  "core.policy-test.fail-exit": [3, "`svc policy test` exits 1 when a test fails"],
});

// biome-ignore format: one statement a line
export const corePlan = section("core", "Resources: Rollback plan", {
  "core.plan.shape": [4, "a plan is `{run_id, actions[], fully_reversible}`"],
  "core.plan.action-fields": [4, "each action has `step`, `tool` and `kind`"],
  "core.plan.compensate-fields": [4, "a `compensate` action has `compensation_tool` and `args`"],
  "core.plan.key-is-stable": [4, "`idempotency_key` is a string that stays the same over every retry and re-run"],
  "core.plan.needs-approval": [4, "`needs_approval` tells whether the undo waits for an approval"],
  "core.plan.residue": [4, "`residue` lists what the undo leaves behind"],
  "core.plan.compensation-kind": [4, "`compensation_kind` is `inverse` or `compensation`"],
  "core.plan.verified": [4, "`verified` is true when the undo will be read back"],
  "core.plan.defer-blocked-by": [4, "a `defer` action carries `blocked_by`"],
  "core.plan.kind-compensate": [4, "a step with a declared undo is `compensate`"],
  "core.plan.kind-skip": [4, "reads and idempotent tools are `skip`"],
  "core.plan.kind-unrecoverable-irreversible": [4, "an irreversible step is `unrecoverable`"],
  "core.plan.kind-unrecoverable-arguments": [4, "a step whose compensation arguments cannot be built, because a `$result` value is missing, is `unrecoverable`"],
  "core.plan.kind-unresolved": [4, "a step that is `intended` or `uncertain` is `unresolved`"],
  "core.plan.kind-unmanifested": [4, "a step without a manifest is `unmanifested`"],
  "core.plan.kind-defer": [4, "a step with a dependent that still stands is `defer`"],
  "core.plan.fully-reversible-true": [4, "`fully_reversible` is true when each standing step is `compensate` or `skip`"],
  "core.plan.fully-reversible-assumes-success": [4, "`fully_reversible` takes for granted that each compensation succeeds"],
  "core.plan.residue-does-not-count": [4, "residue does not make `fully_reversible` false"],
});

// biome-ignore format: one statement a line
export const coreReport = section("core", "Resources: Rollback report", {
  "core.report.same-on-all-doors": [4, "`svc rollback --json` and the server job give the same report"],
  "core.report.gateway-gives-it": [5, "the gateway tool gives the same report"],
  "core.report.compensated": [4, "`compensated` lists the steps that were undone"],
  "core.report.skipped": [4, "`skipped` lists the steps that needed no undo"],
  "core.report.failed": [4, "`failed` lists `{step, error}` of what failed after its retries"],
  "core.report.failed-verification": [4, "`failed` also lists steps whose verification failed"],
  "core.report.unrecoverable": [4, "`unrecoverable` lists steps that are irreversible or whose arguments are unavailable"],
  "core.report.unresolved": [4, "`unresolved` lists steps with an unknown outcome"],
  "core.report.unmanifested": [4, "`unmanifested` lists steps without a manifest"],
  "core.report.deferred": [4, "`deferred` lists `{step, blocked_by}`"],
  "core.report.awaiting-approval": [4, "`awaiting_approval` lists steps whose compensation approval is pending or denied"],
  "core.report.unverified": [4, "`unverified` lists steps that were undone and whose declared read-back could not run"],
  "core.report.complete": [4, "`complete` is false as soon as one of failed, unrecoverable, unresolved, unmanifested, deferred, awaiting_approval or unverified has an entry"],
});

// biome-ignore format: one statement a line
export const coreRecord = section("core", "Resources: Ledger record", {
  "core.record.seq": [2, "a record has a sequence number `seq`"],
  "core.record.event": [2, "a record has an event name `event`"],
  "core.record.hash-linked": [2, "a record has a hash that is linked to its predecessor"],
});
