/** Statements of the operations document: egress, notifications, alerts, traces, metrics, logs, errors, limits. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const opsAlertRecord = section("operations", "Alert", {
  "ops.alert.titled": [8, "an alert is a titled condition with a message"],
  "ops.alert.blocked-message": [8, "the denial-spike message begins with `<n> calls blocked`"],
  "ops.alert.blocked-refused": [33, "calls that only wait for approval do not count towards a denial spike"],
  "ops.alert.blocked-agents": [33, "the denial-spike message names the agents with their counts, the most first"],
  "ops.alert.unknown-outcome-message": [8, "the unresolved-step message reads `Outcome still unknown: <tool> in <run_id>`"],
  "ops.alert-state.raised-once": [8, "an alert whose condition appears is raised and sent once"],
  "ops.alert-state.reminded": [8, "a condition that lasts for the `remind` period is reminded of"],
  "ops.alert-state.resolved": [8, "a condition that clears sends a resolved message"],
  "ops.alert-state.incident-closed": [8, "a paging incident is closed when its alert is resolved"],
});

// biome-ignore format: one statement a line
export const opsEgress = section("operations", "Endpoints: Egress rules", {
  "ops.egress.allow": [8, "`egress.allow` is a list of host patterns; unset, any host may be called"],
  "ops.egress.block-private-default": [8, "`egress.block_private` is a boolean and false by default"],
  "ops.egress.block-private": [8, "under `block_private: true` loopback, link-local and private targets are refused"],
  "ops.egress.region-label": [8, "`egress.region` is a label only"],
  "ops.egress.region-shown": [8, "the region appears in refusal messages"],
  "ops.egress.region-evidence": [6, "the region appears in signed anchors and the PDF report"],
  "ops.egress.schemes": [8, "only `http` and `https` may be called"],
  "ops.egress.resolved-first": [8, "a hostname is resolved before anything connects"],
  "ops.egress.redirects-checked": [8, "every redirect is checked like the first address"],
  "ops.egress.redirects-three": [8, "at most three redirects are followed"],
  "ops.egress.metadata-refused": [8, "cloud metadata addresses are refused whatever the settings"],
  "ops.egress.covers-notifications": [8, "the rules cover notifications"],
  "ops.egress.covers-approval-webhook": [8, "the rules cover `SVC_APPROVAL_WEBHOOK`"],
  "ops.egress.covers-anchors": [6, "the rules cover anchor webhooks"],
  "ops.egress.covers-traces": [8, "the rules cover trace export"],
  "ops.egress.covers-manifests": [8, "the rules cover remote manifest URLs"],
  "ops.egress.covers-upstreams": [5, "the rules cover the gateway's upstream URLs"],
  "ops.egress.refusal-is-warning": [8, "refused egress shows as a warning in the log, and in no decision"],
  "ops.doctor.destinations": [8, "`svc doctor` checks each configured destination and sends nothing"],
  "ops.doctor.send-test": [8, "`svc doctor --send-test` sends one message through each notification channel"],
  "ops.egress.console": [9, "the Settings page says if there are egress rules"],
});

// biome-ignore format: one statement a line
export const opsChannels = section("operations", "Endpoints: Notification channels", {
  "ops.channel.chat": [8, "there is a channel for a chat-service message with blocks"],
  "ops.channel.team-chat": [8, "there is a channel for a team-chat card"],
  "ops.channel.incident": [8, "there is a channel for an incident-event service"],
  "ops.channel.alert-service": [8, "there is a channel for an alert service"],
  "ops.channel.mail": [8, "there is a channel for SMTP mail"],
  "ops.channel.webhook": [8, "there is a plain webhook channel, its body signed by HMAC-SHA-256 in `x-svc-signature: sha256=<hex>`"],
  "ops.channel.config": [8, "channels are configured under `notifications:`"],
  "ops.channel.webhook-events": [8, "a webhook can be told to send alerts and nothing else"],
  "ops.channel.approval-webhook": [8, "the older single webhook of `SVC_APPROVAL_WEBHOOK` still works, in addition to channels"],
  "ops.channel.console-url": [8, "`SVC_CONSOLE_URL` is the base of console links"],
  "ops.channel.console-list": [9, "on the Settings page everyone sees the channels, and admins can send a test"],
});

// biome-ignore format: one statement a line
export const opsAlerts = section("operations", "Endpoints: Alerts", {
  "ops.alerts.route-live": [8, "`GET /v1/alerts` evaluates alerts live, for auditors and higher"],
  "ops.alerts.page-live": [9, "the console's Alerts page evaluates alerts live"],
  "ops.alerts.manager-needs-channel": [8, "with one channel or more the alert manager sends; with none it does not"],
  "ops.alerts.remind-default": [8, "`alerts.remind` is one hour by default"],
  "ops.alerts.resolved-message": [8, "a cleared condition sends a message that begins `Resolved:`"],
  "ops.alerts.state-in-store": [8, "alert state is shared through the store: two processes send one message"],
  "ops.alerts.denial-spike": [8, "so many blocked calls as `alerts.denial_spike` says raise the denial-spike alert"],
  "ops.alerts.denial-spike-everywhere": [8, "the denial-spike threshold applies to the manager and the route alike"],
  "ops.alerts.denial-spike-page": [9, "the denial-spike threshold applies to the page"],
  "ops.alerts.window": [8, "kinds that count events see 15 minutes of ledger, and go away when those have passed"],
  "ops.alerts.compensation-failed": [8, "`compensation_failed` is state-based and stays until fixed"],
  "ops.alerts.unresolved-outcome": [8, "`unresolved_outcome` is raised for an outcome unknown for more than an hour and stays until fixed"],
  "ops.alerts.halted": [8, "`halted` is state-based and stays until lifted"],
  "ops.alerts.not-configurable": [8, "no setting changes the 15 minutes or the hour"],
});

// biome-ignore format: one statement a line
export const opsNotificationEvents = section("operations", "Events: Notification events", {
  "ops.notify.approval": [8, "the message for a new approval request has tool, run, argument names and a link to the console"],
  "ops.notify.no-values": [8, "a notification never holds an argument value"],
  "ops.notify.alert": [8, "alerts and resolved alerts are notified of"],
  "ops.notify.retention-purged": [8, "`retention_purged` is notified of"],
  "ops.notify.test-message": [8, "`svc doctor --send-test` sends a test message"],
  "ops.notify.test-message-console": [9, "the console sends a test message"],
  "ops.notify.dead-channel": [8, "when a channel is dead a warning is logged, and calls are decided as ever"],
});

// biome-ignore format: one statement a line
export const opsTraces = section("operations", "Events: Traces", {
  "ops.trace.otlp-json": [8, "traces leave as OTLP JSON over HTTP, posted to `<endpoint>/v1/traces`"],
  "ops.trace.endpoint-env": [8, "`SVC_OTLP_ENDPOINT` or a setting gives the endpoint"],
  "ops.trace.one-trace-per-run": [8, "the trace id follows from the run id, so a run's spans form one trace"],
  "ops.trace.attr-run-and-step": [8, "spans have `svc.run_id` and `svc.step`"],
  "ops.trace.attr-tool-and-actor": [8, "spans have `svc.tool` and `svc.actor`"],
  "ops.trace.attr-effect": [8, "spans have `svc.effect`, from the manifest"],
  "ops.trace.attr-event": [8, "spans have `svc.event`, `svc.reason` and `svc.detail`"],
  "ops.trace.attr-seq": [8, "spans have `svc.seq.start` and `svc.seq.end`, positions on the ledger"],
  "ops.trace.service-name": [8, "the resource has `service.name`, with a fixed default"],
  "ops.trace.environment": [8, "the resource has `deployment.environment`, from `environment:`"],
  "ops.trace.no-values": [8, "spans never hold arguments or results"],
  "ops.trace.batch-50": [8, "spans are sent when 50 are waiting"],
  "ops.trace.batch-5s": [8, "spans are sent at the latest after five seconds"],
  "ops.trace.timeout": [8, "a trace export times out after 10 s"],
  "ops.trace.guarded": [8, "trace export goes through the egress guard"],
  "ops.trace.failure": [8, "collector failures appear on stderr and nowhere else"],
});

// biome-ignore format: one statement a line
export const opsMetrics = section("operations", "Events: Metrics", {
  "ops.metrics.text-format": [2, "`GET /metrics` answers in the text exposition format"],
  "ops.metrics.ledger-events": [2, "there is `svc_ledger_events_total{event=<event>}`"],
  "ops.metrics.approvals": [3, "there is `svc_approvals{status=<status>}`"],
  "ops.metrics.halted": [2, "there is `svc_halted`, 1 while halted"],
  "ops.metrics.runs": [2, "there is `svc_runs`"],
  "ops.metrics.suggested-alerts": [8, "the suggested alerts are given: halted, a rising rate of `compensation_failed`, lingering approvals, `readyz` failing"],
});

// biome-ignore format: one statement a line
export const opsLogs = section("operations", "Events: Logs", {
  "ops.log.request-line": [2, "`SVC_LOG=json` writes one JSON line per request with `method`, `path`, `status`, `ms`, `principal`"],
  "ops.log.no-bodies": [2, "request lines hold no bodies and no keys"],
  "ops.log.engine-stderr": [2, "the engine's own log goes to stderr"],
  "ops.log.reloads": [2, "the engine's own log tells of each reload"],
  "ops.log.format": [8, "`log.format` is `json` or `pretty`"],
  "ops.log.level": [8, "`log.level` is `debug`, `info`, `warn` or `error`"],
  "ops.log.json-fields": [2, "JSON log lines have `level`, `time`, `msg` and further fields"],
  "ops.log.redacts-patterns": [2, "credentials are masked in whatever string is logged"],
  "ops.log.redacts-fields": [2, "fields are masked whole if their name looks secret: password, secret, token, authorization, api_key, cookie, credential, private_key, signature"],
});

// biome-ignore format: one statement a line
export const opsErrors = section("operations", "Errors", {
  "ops.error.simulate-capture-off": [7, "`POST /v1/simulate` with capture off is a 404 `capture is off`"],
  "ops.error.simulate-invalid-policy": [7, "`POST /v1/simulate` with an invalid policy is a 400"],
  "ops.error.registry": [3, "registry routes without a registry folder are a 404"],
  "ops.error.bundles": [6, "bundle routes without a signing key are a 404 `signed bundles are not enabled on this server`"],
  "ops.error.hold-no-scope": [8, "a hold without a scope is refused with `a legal hold needs a scope (a run, tenant, actor or tool)`"],
  "ops.error.hold-short-reason": [8, "a hold with a reason shorter than 5 characters is refused"],
  "ops.error.anchor-command": [6, "a failed anchor delivery makes the command exit 1"],
  "ops.error.side-channels-notification": [8, "a failed notification or trace is a logged warning and decisions are unchanged"],
  "ops.error.side-channels-anchor": [6, "a failed anchor sink is a logged warning and decisions are unchanged"],
  "ops.error.egress-names-rule": [8, "a destination refused by egress rules is a logged warning that names the rule"],
});

// biome-ignore format: one statement a line
export const opsLimits = section("operations", "Limits", {
  "ops.limit.capture-ttl": [7, "captured calls live 7 days by default"],
  "ops.limit.capture-string": [7, "a captured string of 20,000 characters stays whole and a longer one is cut"],
  "ops.limit.capture-entries": [7, "a captured list or object of 200 entries stays whole and a larger one is cut to 200"],
  "ops.limit.capture-nesting": [7, "captured values keep 12 levels"],
  "ops.limit.simulation-period": [7, "a simulation looks at 7d by default"],
  "ops.limit.hold-reason": [8, "a hold's reason of 5 characters passes and one of 4 does not"],
  "ops.limit.retention-days": [8, "`default_days` of 0, a negative or a fraction is refused"],
  "ops.limit.redirects": [8, "a fourth redirect is refused"],
});
