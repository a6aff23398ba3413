/** Statements of the core document: what the service does, runs, steps, intents, outcomes, keys, halts. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const corePurpose = section("core", "What the service does", {
  "core.purpose.intent-needs-run": [2, "a call is asked for as an intent on a run that was opened before; there is no intent without a run"],
  "core.purpose.three-answers": [2, "an intent is answered with one of exactly three decisions: `allow`, `would_block`, `block`"],
  "core.purpose.agent-executes": [2, "the service never runs the agent's tool itself: the agent does, on `allow` or `would_block`, and reports the step's outcome"],
  "core.purpose.decides-by-manifest": [2, "the tool's manifest (effect, permission, prerequisites, compensation) takes part in the decision"],
  "core.purpose.decides-by-scope": [2, "the run's scope takes part in the decision"],
  "core.purpose.decides-by-policy": [3, "the policy in force takes part in the decision with rules, content checks, risk scores, limits and budgets"],
  "core.purpose.decides-by-approvals": [3, "approvals take part in the decision"],
  "core.purpose.decides-by-halts": [2, "halts take part in the decision"],
  "core.purpose.every-decision-on-ledger": [2, "each decision appends at least one ledger record"],
  "core.purpose.every-outcome-on-ledger": [2, "each outcome appends a ledger record"],
  "core.purpose.ledger-append-only": [2, "the ledger can only be appended to"],
  "core.purpose.ledger-hash-chained": [2, "each ledger record is linked by hash to the one before it"],
  "core.purpose.ledger-holds-no-values": [2, "the ledger holds hashes, reasons and details, and no argument value ever"],
  "core.purpose.ledger-never-deleted": [2, "nothing the service offers deletes a ledger record"],
  "core.purpose.rollback-by-manifest": [4, "standing steps are undone with the compensation that their manifest declared"],
  "core.purpose.rollback-honest": [4, "a rollback reports what it could not undo"],
  "core.purpose.approver-decides": [3, "approvers decide approval requests"],
  "core.purpose.operator-reconciles": [2, "operators reconcile unknown outcomes"],
  "core.purpose.operator-rolls-back": [4, "operators run rollbacks"],
  "core.purpose.admin-halts": [2, "admins halt and resume"],
  "core.purpose.admin-keys": [3, "admins manage keys"],
  "core.purpose.admin-publishes": [3, "admins publish manifests and policy"],
  "core.purpose.surface-http": [2, "there is an HTTP API under `/v1`"],
  "core.purpose.surface-cli": [2, "there is a command `svc`"],
  "core.purpose.surface-console": [9, "there is a console under `/console`, rendered on the server"],
  "core.purpose.surface-gateway": [5, "there is a gateway before MCP tool servers, with one endpoint for agents and one for operators"],
  "core.purpose.process-server": [2, "the standalone server is one process that serves the HTTP API"],
  "core.purpose.process-server-console": [9, "the standalone server also serves the console"],
  "core.purpose.process-gateway": [5, "the gateway is a process of its own that serves the MCP proxy"],
  "core.purpose.process-gateway-console": [9, "the gateway also serves the console"],
  "core.purpose.shared-ledger": [2, "several processes on one data store see the same ledger"],
  "core.purpose.shared-approvals": [3, "several processes on one data store see the same approvals"],
  "core.purpose.shared-halts": [2, "several processes on one data store see the same halts"],
  "core.purpose.mode-enforce": [2, "in `enforce` mode a violating call is refused"],
  "core.purpose.mode-observe": [2, "in `observe` mode a violating call gets `would_block` and may run"],
  "core.purpose.mode-advise": [2, "in `advise` mode a violating call gets `would_block` and may run"],
  "core.purpose.unmanifested-observe-only": [2, "a tool without a manifest can be called in observe mode and in no other"],
});

// biome-ignore format: one statement a line
export const coreRun = section("core", "Resources: Run", {
  "core.run.id-length": [2, "a run id has at most 128 characters"],
  "core.run.id-characters": [2, "a run id consists of letters, digits, `.`, `_` and `-`"],
  "core.run.id-first-character": [2, "a run id begins with a letter or a digit"],
  "core.run.actor-key-name": [2, "`actor` is the name of the API key that opened the run"],
  "core.run.actor-token-sub": [3, "`actor` is the `sub` claim of the token that opened the run"],
  "core.run.mode-default": [2, "`mode` is `enforce` when not given"],
  "core.run.mode-sealed": [2, "`mode` is fixed when the run is made and cannot be changed after"],
  "core.run.scope-object": [2, "`scope` is an object of the permissions (strings) and a seal"],
  "core.run.scope-not-widened": [2, "the scope cannot be widened later"],
  "core.run.created-ms": [2, "`created_ms` is the creation time as an integer of milliseconds"],
  "core.run.steps-from-zero": [2, "the first accepted intent is step 0, the next step 1, and so on"],
  "core.run.unresolved-numbers": [2, "`unresolved` is a list of the numbers of steps with an unknown outcome"],
  "core.run.creation-response": [2, "creating a run answers with `run_id`, `mode` and `scope_seal`, a string"],
});

// biome-ignore format: one statement a line
export const coreStep = section("core", "Resources: Step entry", {
  "core.step.tool-and-reason": [2, "a step entry tells its tool and reason"],
  "core.step.effect-and-status": [2, "a step entry tells its effect and status"],
  "core.step.dependencies": [2, "a step entry tells the steps it depends on"],
  "core.step.compensation-tool": [2, "a step entry tells its compensation tool and handle"],
  "core.step.error": [2, "a step entry tells its error"],
  "core.step.manifest-version": [2, "a step entry tells the manifest version it was decided under"],
  "core.step.risk-score": [3, "a step entry tells its risk score"],
});

// biome-ignore format: one statement a line
export const coreIntent = section("core", "Resources: Intent request and decision", {
  "core.intent.tool-required": [2, "`tool` is required and a string"],
  "core.intent.args-required": [2, "`args` is required"],
  "core.intent.args-any-json": [2, "`args` may be any JSON value"],
  "core.intent.args-hashed": [2, "`args` reach the ledger as a hash only"],
  "core.intent.reason-required": [2, "`reason` is required and a string"],
  "core.intent.depends-on-optional": [2, "`depends_on` is an optional list of integers"],
  "core.intent.answer-allow": [2, "an allowed call is answered `{decision: allow, step: <n>}`"],
  "core.intent.answer-would-block": [2, "a call that would be refused is answered `{decision: would_block, step: <n>, reasons: [<text>]}`"],
  "core.intent.answer-block": [2, "a refused call is answered `{decision: block, reasons: [<text>]}`"],
  "core.intent.block-has-no-step": [2, "a refused call gets no step number"],
});

// biome-ignore format: one statement a line
export const coreOutcome = section("core", "Resources: Outcome report", {
  "core.outcome.status-values": [2, "`status` is `succeeded`, `failed` or `uncertain`"],
  "core.outcome.result-optional": [2, "`result` is optional and may be any JSON value"],
  "core.outcome.result-for-undo": [4, "`result` serves only to build the arguments of the compensation"],
  "core.outcome.result-hashed": [2, "`result` reaches the ledger as a hash only"],
  "core.outcome.error-optional": [2, "`error` is an optional string, for `failed` and `uncertain`"],
  "core.outcome.answer": [2, "the answer is `{step: <n>, status: <status>}`"],
});

// biome-ignore format: one statement a line
export const coreApprovalRequest = section("core", "Resources: Approval request", {
  "core.approval.id-form": [3, "an approval request's id has the form `apr_<uuid>`"],
  "core.approval.decided-by": [3, "`decided_by` is the principal that decided"],
  "core.approval.note-optional": [3, "`note` is optional text given with the decision"],
  "core.approval.names-not-values": [3, "a listing shows argument names and never values"],
});

// biome-ignore format: one statement a line
export const coreKey = section("core", "Resources: API key entry", {
  "core.key.file-is-json-list": [2, "the key file is a JSON list of entries"],
  "core.key.name-is-actor": [2, "`name` is the actor on the ledger"],
  "core.key.role-string": [2, "`role` gives one role as a string"],
  "core.key.roles-list": [2, "`roles` gives several roles as a list"],
  "core.key.role-values": [2, "a role is `agent`, `auditor`, `approver`, `operator` or `admin`; another one is refused"],
  "core.key.sha256-lowercase-hex": [2, "`key_sha256` is the SHA-256 of the key in lowercase hex; other spellings are refused"],
  "core.key.never-stored": [2, "the key itself is stored nowhere"],
  "core.key.max-permissions": [2, "`max_permissions` is the most that a run of an agent key may request"],
  "core.key.groups-optional": [3, "`groups` is an optional list"],
  "core.key.tenant-optional": [2, "`tenant` is an optional string"],
  "core.key.not-before-optional": [2, "`not_before` is an optional timestamp"],
  "core.key.expires-at": [2, "`expires_at` is an optional ISO 8601 timestamp after which the key gets 401"],
  "core.key.disabled": [2, "`disabled: true` makes the key get 401"],
  "core.key.allow-observe": [2, "`allow_observe` is needed to open a run in `observe` or `advise` mode"],
});

// biome-ignore format: one statement a line
export const coreHalt = section("core", "Resources: Halt", {
  "core.halt.id-form": [2, "a halt's id has the form `halt_<uuid>`"],
  "core.halt.reason": [2, "a halt carries a reason, a string"],
  "core.halt.scope-tool": [2, "a halt may be limited to tools by a glob"],
  "core.halt.scope-actor": [2, "a halt may be limited to actors by a glob"],
  "core.halt.scope-tenant": [2, "a halt may be limited to tenants by a glob"],
  "core.halt.scope-environment": [2, "a halt may be limited to environments by a glob"],
  "core.halt.no-scope-halts-all": [2, "a halt without a scope halts everything"],
  "core.halt.every-field-must-match": [2, "a call is halted only when it matches every field the halt names"],
  "core.halt.by": [2, "a halt tells who set it"],
});
