/**
 * A notification as service-independent text: a fixed heading, a title, facts in order, one link. Channels only format
 * it, so all of them contain the same facts.
 */
import { sha256Hex } from "../kernel/hash.ts";
import { formatCountOf } from "../kernel/text/phrases.ts";
import type { RenderContext } from "./channel.ts";
import type {
  AlertRaised,
  AlertResolved,
  AlertSeverity,
  ApprovalDigest,
  ApprovalRequested,
  NotificationEvent,
  NotificationName,
  PlanProposed,
  RetentionPurged,
  TestMessage,
} from "./events.ts";
import { consoleLinks } from "./links.ts";
import { joinList } from "./safe-text.ts";

export interface MessageFact {
  readonly label: string;
  readonly value: string;
}

export interface NotificationMessage {
  /** Fixed text of ours. */
  readonly heading: string;
  readonly title: string;
  readonly facts: readonly MessageFact[];
  /** Text by a person or an agent, if any. Its label names the author. */
  readonly words: MessageFact | null;
  readonly severity: AlertSeverity;
  readonly link: { readonly text: string; readonly url: string } | null;
  /** For incident services: the incident's key and its change. */
  readonly incident: { readonly key: string; readonly change: "opens" | "closes" | "passes" };
}

type Described = Omit<NotificationMessage, "incident" | "link"> & {
  readonly url: string | null;
  readonly incident: NotificationMessage["incident"];
};

const DESCRIBE: {
  [name in NotificationName]: (
    event: Extract<NotificationEvent, { event: name }>,
    context: RenderContext,
  ) => Described;
} = {
  approval_requested: describeApproval,
  plan_proposed: describePlan,
  approval_digest: describeDigest,
  alert: describeAlert,
  alert_resolved: describeResolved,
  retention_purged: describePurge,
  test: describeTest,
};

export function describeEvent(event: NotificationEvent, context: RenderContext): NotificationMessage {
  const { url, facts, ...rest } = DESCRIBE[event.event](event as never, context);
  const link = url === null ? null : { text: "Open in the console", url };
  const environment =
    context.environment === null ? [] : [{ label: "Environment", value: context.environment }];
  return { ...rest, facts: [...facts, ...environment], link };
}

/** The message in one line, for a subject or a summary. */
export function messageHeadline({ heading, title }: NotificationMessage): string {
  return title.startsWith(heading) ? title : `${heading}: ${title}`;
}

function describeApproval(event: ApprovalRequested, context: RenderContext): Described {
  const { quorum, groups } = event.approvers;
  const from = groups.length > 0 ? ` from ${joinList(groups, 10)}` : "";
  const undo = event.kind === "compensation";
  return {
    heading: event.escalated ? "Approval escalated" : "Approval requested",
    title: `${event.actor} asks to ${undo ? "undo" : "call"} ${event.tool}`,
    facts: [
      { label: "Request", value: event.id },
      { label: "Tool", value: event.tool },
      { label: "Run", value: event.run_id },
      ...optional("Step", event.step),
      { label: "Actor", value: event.actor },
      ...optional("Tenant", event.tenant),
      { label: "Arguments", value: joinList(event.arg_names) },
      ...optional("Rule", event.rule),
      { label: "Needs", value: `${quorum} approval${quorum === 1 ? "" : "s"}${from}` },
      { label: "Expires", value: utcTime(event.expires_ms) },
    ],
    words: { label: "Reason", value: event.reason },
    severity: "warning",
    url: consoleLinks(context.console_url).approval(event.id),
    incident: { key: incidentKey(context, "approval", event.id), change: "opens" },
  };
}

function describePlan(event: PlanProposed, context: RenderContext): Described {
  const { calls, approvers } = event;
  const asking = calls.filter(({ decision }) => decision === "needs_approval").length;
  const from = approvers.groups.length > 0 ? ` from ${joinList(approvers.groups, 10)}` : "";
  return {
    heading: "Plan proposed",
    title: `${event.actor} proposes ${formatCountOf(calls.length, "call")}, ${asking} needing approval`,
    facts: [
      { label: "Plan", value: event.id },
      { label: "Run", value: event.run_id },
      { label: "Actor", value: event.actor },
      ...optional("Tenant", event.tenant),
      ...calls.slice(0, PLAN_CALLS).map(({ tool, arg_names, decision }, i) => ({
        label: `Call ${i}`,
        value: `${tool} (${joinList(arg_names)}): ${decision.replace("_", " ")}`,
      })),
      ...optional("More calls", calls.length > PLAN_CALLS ? calls.length - PLAN_CALLS : null),
      { label: "Can be undone", value: event.fully_reversible ? "all of it" : "not all of it" },
      { label: "Needs", value: `${formatCountOf(approvers.quorum, "approval")}${from}` },
      { label: "Expires", value: utcTime(event.expires_ms) },
    ],
    words: { label: "Reason", value: event.reason },
    severity: "warning",
    url: consoleLinks(context.console_url).plan(event.id),
    incident: { key: incidentKey(context, "plan", event.id), change: "opens" },
  };
}

/** Limit on listed calls. The console lists the rest. */
const PLAN_CALLS = 10;

function describeDigest(event: ApprovalDigest, context: RenderContext): Described {
  const { waiting, escalated, groups } = event;
  const line = ({ tool, rule, waiting: n, id }: (typeof groups)[number]) =>
    `${tool}${rule === null ? "" : `, rule ${rule}`}: ${formatCountOf(n, "request")}, such as ${id}`;
  return {
    heading: "Many approvals requested",
    title: `${event.actor} asks for ${formatCountOf(waiting, "approval")}`,
    facts: [
      { label: "Actor", value: event.actor },
      { label: "Waiting", value: String(waiting) },
      ...optional("Escalated", escalated === 0 ? null : escalated),
      ...groups.map((group) => ({ label: "Group", value: line(group) })),
      { label: "First expires", value: utcTime(event.expires_ms) },
    ],
    words: null,
    severity: "warning",
    url: consoleLinks(context.console_url).approvals(),
    incident: { key: incidentKey(context, "digest", context.delivery_id), change: "opens" },
  };
}

function alertFacts(event: AlertRaised | AlertResolved): MessageFact[] {
  return [
    { label: "Kind", value: event.kind },
    { label: "Severity", value: event.severity },
    ...optional("Run", event.run_id),
    ...optional("Step", event.step),
    ...optional("Tool", event.tool),
    { label: "Since", value: utcTime(event.since_ms) },
  ];
}

function describeAlert(event: AlertRaised, context: RenderContext): Described {
  return {
    heading: event.reminder ? "Alert, still active" : "Alert",
    title: event.title,
    facts: alertFacts(event),
    words: { label: "Details", value: event.message },
    severity: event.severity,
    url: consoleLinks(context.console_url).alerts(),
    incident: { key: incidentKey(context, "alert", event.id), change: "opens" },
  };
}

function describeResolved(event: AlertResolved, context: RenderContext): Described {
  return {
    heading: "Resolved",
    title: `Resolved: ${event.title}`,
    facts: [...alertFacts(event), { label: "Resolved", value: utcTime(event.resolved_ms) }],
    words: { label: "Details", value: event.message },
    severity: "info",
    url: consoleLinks(context.console_url).alerts(),
    incident: { key: incidentKey(context, "alert", event.id), change: "closes" },
  };
}

function describePurge(event: RetentionPurged, context: RenderContext): Described {
  const n = event.runs.length;
  return {
    heading: "Retention",
    title: `Retention deleted the working data of ${n} run${n === 1 ? "" : "s"}`,
    facts: [
      { label: "Runs", value: joinList(event.runs) },
      { label: "Archives", value: joinList(event.archived, 5) },
      { label: "By", value: event.by },
    ],
    words: null,
    severity: "info",
    url: consoleLinks(context.console_url).settings(),
    incident: { key: incidentKey(context, "retention", context.delivery_id), change: "passes" },
  };
}

function describeTest(event: TestMessage, context: RenderContext): Described {
  return {
    heading: "Test",
    title: "Test notification from svc",
    facts: [
      { label: "Channel", value: context.channel },
      { label: "By", value: event.by },
    ],
    words: null,
    severity: "info",
    url: consoleLinks(context.console_url).settings(),
    incident: { key: incidentKey(context, "test", context.delivery_id), change: "passes" },
  };
}

function optional(label: string, value: string | number | null): MessageFact[] {
  return value === null ? [] : [{ label, value: String(value) }];
}

/** Formats a time as `2026-01-02 03:04:05 UTC`, for comparison with logs. */
function utcTime(ms: number): string {
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return "unknown";
  return `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/**
 * Incident key, the same in every process. It includes the environment, because two environments may share an account.
 * Characters that a service might reject are replaced, and a hash keeps such keys distinct.
 */
function incidentKey(context: RenderContext, kind: string, id: string): string {
  const key = ["svc", ...(context.environment === null ? [] : [context.environment]), kind, id].join(":");
  const safe = key.replace(/[^A-Za-z0-9._:-]/g, "_").slice(0, 180);
  return safe === key ? key : `${safe}:${sha256Hex(key).slice(0, 16)}`;
}
