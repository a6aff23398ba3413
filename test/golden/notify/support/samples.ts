/** One of each notification, one configuration of each channel, and the context in which the golden files are made. */
import type { RenderContext } from "../../../../src/notify/channel.ts";
import type { ChannelConfig, ChannelType } from "../../../../src/notify/channels/table.ts";
import { approvalDigest, approvalRequested, planProposed, type NotificationEvent, type NotificationName } from "../../../../src/notify/events.ts";
import type { PlanDoc } from "../../../../src/govern/plans/plan.ts";
import type { ApprovalView } from "../../../../src/govern/approvals/approval.ts";

const AT = Date.UTC(2026, 0, 2, 3, 4, 5);

export const APPROVAL: ApprovalView = {
  id: "apr_0b7e2f9c-1111-4222-8333-444455556666",
  run_id: "run_01hx-refunds",
  tool: "payments.refund",
  actor: "billing-bot",
  tenant: "acme",
  args_hash: "sha256:00",
  arg_names: ["amount", "currency", "order_id"],
  reason: "duplicate charge on one order",
  rule: "big-refunds",
  status: "pending",
  requested_ms: AT,
  expires_ms: AT + 4 * 3_600_000,
  approvers: { groups: ["finance"], quorum: 2 },
  votes: [],
  decided_by: null,
  decided_ms: null,
  note: null,
  kind: "call",
  step: null,
  escalated_ms: null,
  break_glass: false,
};

const ALERT = {
  id: "compensation_failed:run_01hx-refunds:3",
  kind: "compensation_failed",
  severity: "critical",
  title: "An undo failed",
  message: "payments.refund_cancel did not succeed after 3 attempts",
  since_ms: AT - 60_000,
  run_id: "run_01hx-refunds",
  step: 3,
  tool: "payments.refund",
} as const;

export const EVENTS: { [name in NotificationName]: Extract<NotificationEvent, { event: name }> } = {
  approval_requested: approvalRequested(APPROVAL),
  approval_digest: approvalDigest(
    "billing-bot",
    [
      APPROVAL,
      { ...APPROVAL, id: "apr_0b7e2f9c-1111-4222-8333-444455556667" },
      { ...APPROVAL, id: "apr_0b7e2f9c-1111-4222-8333-444455556668", tool: "mail.send", rule: null },
    ],
    600_000,
  ),
  plan_proposed: planProposed({
    id: "pln_0b7e2f9c-1111-4222-8333-444455556666",
    run_id: APPROVAL.run_id,
    actor: APPROVAL.actor,
    tenant: APPROVAL.tenant,
    reason: "refund the order, then tell the customer",
    calls: [
      { tool: "payments.refund", arg_names: ["amount", "order_id"], decision: "needs_approval", approval_id: APPROVAL.id },
      { tool: "mail.send", arg_names: ["to"], decision: "allow", approval_id: null },
    ],
    fully_reversible: false,
    requested_ms: AT,
    expires_ms: AT + 4 * 3_600_000,
    internal: { requests: [APPROVAL, APPROVAL] },
  } as unknown as PlanDoc),
  alert: { event: "alert", ...ALERT, reminder: false },
  alert_resolved: { event: "alert_resolved", ...ALERT, resolved_ms: AT },
  retention_purged: {
    event: "retention_purged",
    runs: ["run_01hx-refunds", "run_01hy-mails"],
    archived: ["/var/lib/svc/archive/run_01hx-refunds.json"],
    by: "ann",
  },
  test: { event: "test", by: "ann" },
};

export const CONFIGS: { [type in ChannelType]: Extract<ChannelConfig, { type: type }> } = {
  slack: { type: "slack", name: "ops", url: "https://hooks.slack.example/services/T0/B0/secret" },
  teams: { type: "teams", name: "teams", url: "https://prod.powerautomate.example/workflows/secret?sig=s" },
  pagerduty: { type: "pagerduty", name: "pager", routing_key: "R0UT1NG", url: "https://events.pagerduty.com/v2/enqueue" },
  opsgenie: { type: "opsgenie", name: "genie", api_key: "G3N13", url: "https://api.opsgenie.com/v2/alerts" },
  smtp: {
    type: "smtp",
    name: "mail",
    host: "mail.example.com",
    port: 587,
    user: "svc",
    password: "p4ss",
    from: "svc <svc@example.com>",
    to: ["ops@example.com", "On call <oncall@example.com>"],
  },
  webhook: { type: "webhook", name: "hook", url: "https://hooks.example.com/svc", secret: "s3cret" },
};

export const CONTEXT: RenderContext = {
  channel: "ops",
  console_url: "https://svc.example.com",
  environment: "prod",
  now_ms: AT,
  delivery_id: "6f9619ff-8b86-4d01-b42d-00cf4fc964ff",
  chat_actions: true,
};
