/** Statements of the core document: conventions and HTTP routes. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const coreConventions = section("core", "Endpoints: Conventions", {
  "core.http.bearer-required": [2, "each `/v1` route needs `Authorization: Bearer <credential>`"],
  "core.http.healthz-open": [2, "`GET /healthz` needs no credential"],
  "core.http.readyz-open": [2, "`GET /readyz` needs no credential"],
  "core.http.metrics-auditor": [2, "`GET /metrics` needs an auditor credential"],
  "core.http.metrics-public": [2, "`SVC_METRICS_PUBLIC=1` opens `GET /metrics`"],
  "core.http.json-bodies": [2, "request and response bodies are JSON unless a route says otherwise"],
  "core.http.body-cap": [2, "a request body may have 1 MB and no more"],
  "core.http.roles-cumulative": [2, "auditor, approver, operator, admin: each role includes the ones before it"],
  "core.http.foreign-run-404": [2, "agents see the runs they opened; any other run is a 404 to them"],
  "core.http.auditor-reads-any-run": [2, "an auditor or higher can read any run"],
  "core.http.journal-by-owner": [2, "intents are accepted from the run's own principal alone; further roles on a key do not help"],
  "core.http.outcome-by-owner": [2, "outcomes are accepted from the run's own principal alone; further roles on a key do not help"],
  "core.http.error-body": [2, "errors are `{error: <message>}` with no other key"],
  "core.http.refusal-is-200": [2, "a policy refusal is a 200 with `block` and `reasons`, not an error"],
  "core.http.nothing-after-close": [33, "after an answer with `Connection: close` nothing more of that connection is performed, on every listener"],
  "core.http.answered-in-order": [33, "requests sent ahead of their answers are performed one after the other, and each that is performed is answered before the connection ends"],
  "core.http.not-enabled-404": [2, "using a feature that is switched off is a 404 whose message explains it"],
});

// biome-ignore format: one statement a line
export const coreAgentRoutes = section("core", "Endpoints: Agent routes", {
  "core.route.runs-post-permissions": [2, "`POST /v1/runs` requires `permissions`, a list of strings"],
  "core.route.runs-post-cap": [2, "`permissions` must fit within the key's `max_permissions`, else 403"],
  "core.route.runs-post-run-id": [2, "`run_id` is optional and generated when left out"],
  "core.route.runs-post-mode": [2, "`mode` is optional and one of `enforce`, `observe`, `advise`"],
  "core.route.runs-post-reason": [2, "`reason` is an optional string"],
  "core.route.runs-post-201": [2, "opening a run is a 201 with `{run_id, mode, scope_seal}`"],
  "core.route.runs-post-400-body": [2, "an invalid body is a 400"],
  "core.route.runs-post-400-id": [2, "an invalid run id is a 400"],
  "core.route.runs-post-403-observe": [2, "`observe` without `allow_observe` is a 403"],
  "core.route.runs-post-403-advise": [2, "`advise` without `allow_observe` is a 403"],
  "core.route.runs-post-409": [2, "a run id that exists is a 409"],
  "core.route.runs-get": [2, "`GET /v1/runs` answers `{runs: [<run_id>]}`"],
  "core.route.runs-get-own": [2, "an agent is shown its own runs only"],
  "core.route.run-get": [2, "`GET /v1/runs/{id}` answers the run with `unresolved`"],
  "core.route.run-get-404": [2, "an unknown run is a 404"],
  "core.route.run-get-foreign-404": [2, "what an agent is told of someone else's run is, to the letter, what it is told of an unknown one"],
  "core.route.intents-200": [2, "`POST /v1/runs/{id}/intents` answers 200 with the decision"],
  "core.route.intents-approval-reason": [3, "a call awaiting approval is blocked with `approval required: request <approval_id> is pending an operator decision; retry after it is approved`"],
  "core.route.outcome-200": [2, "`POST /v1/runs/{id}/steps/{n}/outcome` answers 200 with `{step, status}`"],
  "core.route.outcome-409": [2, "reporting an outcome twice is a 409"],
  "core.reason.no-manifest": [2, "a tool without a manifest is refused with `no manifest is registered for this tool`"],
  "core.reason.scope": [2, "a permission outside the scope is refused with `permission <permission> is not in the run's scope`"],
  "core.reason.content": [3, "a content check refuses with `content check (<kind>): <detail>`"],
  "core.reason.policy-rule": [3, "a policy rule that refuses gives its reason"],
});

// biome-ignore format: one statement a line
export const coreReadRoutes = section("core", "Endpoints: Read routes", {
  "core.route.plan": [4, "`GET /v1/runs/{id}/plan` gives an auditor the rollback plan"],
  "core.route.rollback-progress": [4, "`GET /v1/runs/{id}/rollback` gives an auditor the progress of a rollback job"],
  "core.route.export": [2, "`GET /v1/runs/{id}/export` gives an auditor the run's ledger records"],
  "core.route.report-html": [6, "`GET /v1/runs/{id}/report` gives an auditor the run report in HTML"],
  "core.route.report-pdf": [6, "`GET /v1/runs/{id}/report.pdf` gives an auditor the run report in PDF"],
  "core.route.search-runs": [8, "`GET /v1/search/runs` gives an auditor a search over runs"],
  "core.route.search-records": [8, "`GET /v1/search/records` gives an auditor a search over records"],
  "core.route.impact": [7, "`GET /v1/impact` is for auditors"],
  "core.route.speculate": [7, "`POST /v1/speculate` is for auditors"],
  "core.route.period-report": [6, "`GET /v1/report` is for auditors"],
  "core.route.alerts": [8, "`GET /v1/alerts` is for auditors"],
  "core.route.connectors-empty": [8, "`GET /v1/connectors` is for auditors, and its list is empty on the standalone server"],
  "core.route.run-bundle": [6, "`GET /v1/runs/{id}/bundle` is for auditors"],
  "core.route.ledger-bundle": [6, "`GET /v1/ledger/bundle` is for auditors"],
  "core.route.evidence-key": [6, "`GET /v1/evidence/key` is for auditors"],
  "core.route.ledger-verify": [6, "`GET /v1/ledger/verify` is for auditors"],
  "core.route.status": [2, "`GET /v1/status` gives an auditor the status"],
  "core.route.halts": [2, "`GET /v1/halts` gives an auditor the halts"],
  "core.route.approvals": [3, "`GET /v1/approvals` gives an auditor `{approvals: [..]}`"],
  "core.route.approvals-status": [3, "`GET /v1/approvals?status=pending` lists requests of that status only"],
});

// biome-ignore format: one statement a line
export const coreApprovalRoutes = section("core", "Endpoints: Approval routes", {
  "core.route.approve": [3, "`POST /v1/approvals/{id}/approve` returns the request with `approved` and `decided_by`"],
  "core.route.approve-note": [3, "approving takes an optional `note` in the body"],
  "core.route.approve-403": [3, "a lower role gets 403 `approver role required`"],
  "core.route.deny": [3, "`POST /v1/approvals/{id}/deny` is for approvers and takes an optional `note`"],
  "core.route.break-glass-admin": [3, "`POST /v1/approvals/{id}/break-glass` is for admins only"],
  "core.route.pre-approve": [3, "`POST /v1/runs/{id}/approvals` lets an approver approve a call beforehand"],
  "core.route.delegations-read": [3, "auditors and approvers can read `GET /v1/delegations`"],
  "core.route.delegations-write": [3, "approvers can `POST` and `DELETE` delegations, auditors cannot"],
  "core.route.chat-signature": [3, "`POST /integrations/chat/actions` is authenticated by the chat service's request signature"],
  "core.route.chat-404-secret": [3, "chat actions are a 404 unless `SVC_CHAT_SIGNING_SECRET` is set"],
  "core.route.chat-404-users": [3, "chat actions are a 404 unless `SVC_CHAT_USERS` is set"],
  "core.route.approve-decided-409": [3, "approving a request that is already decided is a 409"],
});

// biome-ignore format: one statement a line
export const coreOperatorRoutes = section("core", "Endpoints: Operator routes", {
  "core.route.resolve": [2, "`POST /v1/runs/{id}/steps/{n}/resolve` is for operators"],
  "core.route.resolve-status": [2, "resolve takes `status` `succeeded` or `failed` and nothing else"],
  "core.route.resolve-note": [2, "resolve without a `note` is a 400"],
  "core.route.resolve-result": [2, "resolve takes an optional `result`, any JSON"],
  "core.route.compensation-begin": [4, "`POST /v1/runs/{id}/steps/{n}/compensation` lets a remote worker of role operator begin a compensation"],
  "core.route.compensation-outcome": [4, "`POST /v1/runs/{id}/steps/{n}/compensation/outcome` lets it complete one"],
  "core.route.rollback-202": [4, "`POST /v1/runs/{id}/rollback` with `confirm: true` starts a job and answers 202 when `SVC_COMPENSATOR_CMD` is set"],
  "core.route.simulate": [7, "`POST /v1/simulate` is for operators"],
  "core.route.replay": [7, "`POST /v1/runs/{id}/replay` is for operators"],
  "core.route.registry-get": [3, "`GET /v1/registry` is for operators"],
  "core.route.registry-404": [3, "registry routes are a 404 without a registry folder"],
  "core.route.registry-draft": [3, "an operator creates a manifest draft with `POST /v1/registry/manifests`"],
  "core.route.registry-approve": [3, "an admin approves with `POST /v1/registry/manifests/{tool}/approve`; an operator cannot"],
  "core.route.registry-deprecate": [3, "an admin deprecates with `POST /v1/registry/manifests/{tool}/deprecate`; an operator cannot"],
  "core.route.registry-policy": [3, "an operator creates a policy draft with `POST /v1/registry/policy`"],
  "core.route.registry-activate": [3, "an admin activates with `POST /v1/registry/policy/{version}/activate`; an operator cannot"],
});

// biome-ignore format: one statement a line
export const coreAdminRoutes = section("core", "Endpoints: Admin routes", {
  "core.route.halt": [2, "`POST /v1/halt` is for admins and takes `reason`"],
  "core.route.halt-scope": [2, "`POST /v1/halt` takes optional `tool`, `actor`, `tenant` and `environment`"],
  "core.route.resume": [2, "`POST /v1/resume` is for admins and lifts halts"],
  "core.route.reload": [3, "`POST /v1/reload` is for admins and reloads the configuration"],
  "core.route.keys-list": [3, "`GET /v1/keys` is for admins and lists the entries"],
  "core.route.keys-create": [3, "`POST /v1/keys` is for admins and creates a key"],
  "core.route.keys-shown-once": [3, "a new key's value is shown once, when it is created"],
  "core.route.keys-patch": [3, "`PATCH /v1/keys/{index}` is for admins and changes an entry"],
  "core.route.keys-delete": [3, "`DELETE /v1/keys/{index}` is for admins and removes an entry"],
});

// biome-ignore format: one statement a line
export const coreOpenRoutes = section("core", "Endpoints: Open routes", {
  "core.route.healthz": [2, "`GET /healthz` answers while the process lives"],
  "core.route.readyz-ok": [2, "a ready server answers `GET /readyz` with an object that has `ok: true` and further fields"],
  "core.route.readyz-upstreams": [5, "the gateway's `readyz` adds `upstreams`, a list of `{name, ok}`"],
});
