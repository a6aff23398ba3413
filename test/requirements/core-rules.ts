/** Statements of the core document: authentication, events, errors, limits, versioning. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const coreAuthentication = section("core", "Authentication", {
  "core.auth.api-key": [2, "a bearer API key is accepted on each `/v1` route"],
  "core.auth.oidc-token": [3, "a bearer OIDC token is accepted on each `/v1` route"],
  "core.auth.key-by-sha256": [2, "a key is found by the SHA-256 of what was presented"],
  "core.auth.keys-on-sighup": [2, "SIGHUP re-reads the key file"],
  "core.auth.keys-on-change": [2, "a changed key file is noticed; it is looked at every two seconds"],
  "core.auth.keys-broken-file": [2, "a broken key file changes nothing: the keys read before keep working"],
  "core.auth.missing-401": [2, "a missing credential is a 401"],
  "core.auth.invalid-401": [2, "an invalid credential is a 401"],
  "core.auth.expired-401": [2, "an expired key is a 401"],
  "core.auth.not-before-401": [2, "a key before its `not_before` is a 401"],
  "core.auth.disabled-401": [2, "a disabled key is a 401"],
  "core.auth.no-restart": [2, "changes of keys take effect without a restart"],
  "core.auth.agent-cap": [2, "an agent key opens runs only within its `max_permissions`"],
  "core.auth.agent-approvals-403": [3, "an agent on `/v1/approvals` gets 403"],
  "core.auth.approver-reads-plan": [4, "an approver may read a plan"],
  "core.auth.approver-compensation-403": [4, "an approver on the compensation route gets 403"],
  "core.auth.operator-halt-403": [2, "an operator on `/v1/halt` gets 403"],
  "core.auth.admin-manages-keys": [3, "only an admin may manage keys"],
  "core.auth.oidc-valid": [3, "a token with a valid signature, audience and expiry is accepted"],
  "core.auth.oidc-bad-signature": [3, "a token with an invalid signature is a 401"],
  "core.auth.oidc-wrong-audience": [3, "a token for another audience is a 401"],
  "core.auth.oidc-expired": [3, "an expired token is a 401"],
  "core.auth.oidc-role-map": [3, "a token's role comes from the configured map"],
  "core.auth.oidc-principal": [3, "a token's principal, the ledger's actor, is its `sub` claim"],
  "core.auth.oidc-beside-keys": [3, "API keys go on working beside OIDC"],
  "core.auth.console-off": [9, "console mode `off`: there is no console"],
  "core.auth.console-open-actor": [9, "console mode `open`: no login, and the actor is `local-console`"],
  "core.auth.console-open-role": [9, "console mode `open`: the role is operator by default or a chosen lower one, never admin"],
  "core.auth.console-open-localhost": [9, "console mode `open`: only requests addressed to localhost are answered"],
  "core.auth.console-open-origin": [9, "console mode `open`: only requests from the same origin are answered"],
  "core.auth.console-open-loopback": [9, "console mode `open`: it refuses to start on an address that is not loopback"],
  "core.auth.console-open-not-admin": [9, "console mode `open`: it refuses to start as admin"],
  "core.auth.console-login-key": [9, "console mode `login`: an API key can be pasted"],
  "core.auth.console-login-token": [9, "console mode `login`: an OIDC token can be pasted"],
  "core.auth.console-login-no-agent": [9, "console mode `login`: agent keys are refused"],
  "core.auth.console-follows-role": [9, "console mode `login`: pages and buttons follow the role"],
  "core.auth.console-cookie": [9, "the session cookie is `HttpOnly; SameSite=Strict`"],
  "core.auth.console-session-key-end": [9, "disabling or expiry of the key ends its console session"],
  "core.auth.console-session-token-end": [9, "a session ends when its token expires"],
  "core.auth.console-lower-role": [9, "a valid CSRF token does not help a role that is too low; the post is refused"],
  "core.auth.webhook-signature": [8, "a webhook body is signed with HMAC-SHA-256 in `x-svc-signature: sha256=<hex>`"],
  "core.auth.ledger-no-keys": [2, "the ledger never stores a key"],
});

// biome-ignore format: one statement a line
export const coreEvents = section("core", "Events", {
  "core.event.blocked": [2, "`blocked` is written when an intent is refused"],
  "core.event.would-block": [2, "`would_block` marks, in observe and advise mode, an intent that enforce would refuse"],
  "core.event.approved-approver": [3, "`approved` is written when an approver approves, with the approver as actor"],
  "core.event.approved-engine": [3, "`approved` is written when the engine consumes an approval, with the engine as actor"],
  "core.event.intended": [2, "`intended` is written when an intent is accepted"],
  "core.event.outcomes": [2, "`succeeded`, `failed` and `uncertain` are written when an outcome is reported"],
  "core.event.resolved": [2, "`succeeded` and `failed` are written when an operator resolves a step"],
  "core.event.compensating": [4, "`compensating` is written before a compensation runs"],
  "core.event.compensated": [4, "`compensated` or `compensation_failed` is written after a compensation"],
  "core.event.readback": [4, "`verified`, `verification_failed` or `unverified` is written for a read-back"],
  "core.event.purged": [8, "`purged` marks the deletion of a run's working data by retention"],
  "core.event.trail-cli": [2, "`svc export --run <run_id>` reads a run's trail"],
  "core.event.trail-http": [2, "`GET /v1/runs/{id}/export` reads a run's trail"],
});

// biome-ignore format: one statement a line
export const coreErrors = section("core", "Errors", {
  "core.error.400": [2, "an invalid body, id or query is a 400"],
  "core.error.400-policy": [3, "an invalid policy is a 400"],
  "core.error.401": [2, "a missing or invalid credential is a 401"],
  "core.error.403": [2, "what a role or a permission cap forbids is a 403"],
  "core.error.404-run": [2, "an unknown run is a 404"],
  "core.error.404-approval": [3, "an unknown approval is a 404"],
  "core.error.404-feature": [2, "a feature that is not enabled on this server is a 404"],
  "core.error.409-run": [2, "a duplicate run id is a 409"],
  "core.error.409-outcome": [2, "an outcome already reported is a 409"],
  "core.error.409-approval": [3, "an approval already decided is a 409"],
  "core.error.409-configuration": [3, "configuration that was saved and does not load is a 409"],
  "core.error.413": [2, "a body over 1 MB is a 413"],
  "core.error.502": [6, "a failed anchor delivery is a 502"],
  "core.error.503": [2, "an unavailable ledger is a 503; the request is refused (fail closed)"],
  "core.error.message-retention": [8, "the message for missing retention settings includes `no retention settings`"],
  "core.error.message-capture": [7, "the message for capture being off includes `capture is off`"],
  "core.error.message-registry": [3, "the message for a missing registry includes `no manifest registry folder is configured on this server`"],
  "core.error.message-bundles": [6, "the message for a missing signing key includes `signed bundles are not enabled on this server`"],
  "core.error.message-approver": [3, "the role message for approvers includes `approver role required`"],
  "core.error.message-auditor": [2, "the role message for auditors includes `auditor role required`"],
  "core.error.message-admin": [2, "the role message for admins includes `admin only`"],
  "core.error.text-verification-failed": [4, "a read-back that never matches says `verification failed: <tool> did not show the expected state after the undo`"],
  "core.error.text-cannot-verify": [4, "unresolvable verification arguments say `cannot verify: arguments unavailable`"],
  "core.error.evidence-required": [8, "where a manifest requires evidence, deleting needs an archive directory and a key, and is refused otherwise"],
});

// biome-ignore format: one statement a line
export const coreLimits = section("core", "Limits", {
  "core.limit.body": [2, "a request body of exactly 1 MB passes and one byte more is a 413"],
  "core.limit.run-id": [2, "a run id of 128 characters passes and one of 129 does not"],
  "core.limit.retries": [4, "rollback retries are 1 to 10 on every surface"],
  "core.limit.gateway-readback": [5, "the gateway makes 3 attempts from a base of 250 ms"],
  "core.limit.key-reload": [2, "the key file is looked at every two seconds and on SIGHUP"],
});

// biome-ignore format: one statement a line
export const coreVersioning = section("core", "Versioning", {
  "core.version.path-prefix": [2, "the HTTP API has the path prefix `/v1`"],
  "core.version.policy": [3, "policy files carry `version: 1`"],
  "core.version.policy-folder": [3, "a folder can hold several versions of the policy"],
  "core.version.policy-activate": [3, "`POST /v1/registry/policy/{version}/activate` puts one of the versions into force"],
  "core.version.manifest-on-step": [2, "the manifest's version is recorded on each step"],
  "core.version.migrations": [2, "a store migrates its schema by itself at first start"],
});
