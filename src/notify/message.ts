/**
 * A notification in words, before any service's format: a fixed heading, a title, facts in order, one
 * link. Channels only arrange it, so that all of them say the same and none forgets a fact.
 */
import { sha256Hex } from "../kernel/hash.ts";
import { plural } from "../kernel/words.ts";
import type { RenderContext } from "./channel.ts";
import type {
  AlertRaised,
  AlertResolved,
  ApprovalDigest,
  ApprovalRequested,
  NotificationEvent,
  NotificationName,
  PlanProposed,
  RetentionPurged,
  Severity,
  TestMessage,
} from "./events.ts";
import { consoleLinks } from "./links.ts";
import { listed } from "./text.ts";

export interface Fact {
  readonly label: string;
  readonly value: string;
}

export interface Message {
  /** Our own words only. */
  readonly heading: string;
  readonly title: string;
  readonly facts: readonly Fact[];
  /** A sentence or two in a person's or an agent's own words, where there are any; its label says whose. */
  readonly words: Fact | null;
  readonly severity: Severity;
  readonly link: { readonly text: string; readonly url: string } | null;
  /** For services that keep incidents: which one, and what happens to it. */
  readonly incident: { readonly key: string; readonly change: "opens" | "closes" | "passes" };
}

type Described = Omit<Message, "incident" | "link"> & {
  readonly url: string | null;
  readonly incident: Message["incident"];
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

export function describeEvent(event: NotificationEvent, context: RenderContext): Message {
  const { url, facts, ...rest } = DESCRIBE[event.event](event as never, context);
  const link = url === null ? null : { text: "Open in the console", url };
  const environment =
    context.environment === null ? [] : [{ label: "Environment", value: context.environment }];
  return { ...rest, facts: [...facts, ...environment], link };
}

/** The message in one line, for a subject or a summary. */
export function headline({ heading, title }: Message): string {
  return title.startsWith(heading) ? title : `${heading}: ${title}`;
}

function describeApproval(event: ApprovalRequested, context: RenderContext): Described {
  const { quorum, groups } = event.approvers;
  const from = groups.length > 0 ? ` from ${listed(groups, 10)}` : "";
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
      { label: "Arguments", value: listed(event.arg_names) },
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
  const from = approvers.groups.length > 0 ? ` from ${listed(approvers.groups, 10)}` : "";
  return {
    heading: "Plan proposed",
    title: `${event.actor} proposes ${plural(calls.length, "call")}, ${asking} needing approval`,
    facts: [
      { label: "Plan", value: event.id },
      { label: "Run", value: event.run_id },
      { label: "Actor", value: event.actor },
      ...optional("Tenant", event.tenant),
      ...calls.slice(0, PLAN_CALLS).map(({ tool, arg_names, decision }, i) => ({
        label: `Call ${i}`,
        value: `${tool} (${listed(arg_names)}): ${decision.replace("_", " ")}`,
      })),
      ...optional("More calls", calls.length > PLAN_CALLS ? calls.length - PLAN_CALLS : null),
      { label: "Can be undone", value: event.fully_reversible ? "all of it" : "not all of it" },
      { label: "Needs", value: `${plural(approvers.quorum, "approval")}${from}` },
      { label: "Expires", value: utcTime(event.expires_ms) },
    ],
    words: { label: "Reason", value: event.reason },
    severity: "warning",
    url: consoleLinks(context.console_url).plan(event.id),
    incident: { key: incidentKey(context, "plan", event.id), change: "opens" },
  };
}

/** A message is for reading, and the console lists the rest. */
const PLAN_CALLS = 10;

function describeDigest(event: ApprovalDigest, context: RenderContext): Described {
  const { waiting, escalated, groups } = event;
  const line = ({ tool, rule, waiting: n, id }: (typeof groups)[number]) =>
    `${tool}${rule === null ? "" : `, rule ${rule}`}: ${plural(n, "request")}, such as ${id}`;
  return {
    heading: "Many approvals requested",
    title: `${event.actor} asks for ${plural(waiting, "approval")}`,
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

function alertFacts(event: AlertRaised | AlertResolved): Fact[] {
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
    heading: event.reminder ? "Alert, still standing" : "Alert",
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
      { label: "Runs", value: listed(event.runs) },
      { label: "Archives", value: listed(event.archived, 5) },
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

function optional(label: string, value: string | number | null): Fact[] {
  return value === null ? [] : [{ label, value: String(value) }];
}

/** `2026-01-02 03:04:05 UTC`, which every reader can compare with a log. */
function utcTime(ms: number): string {
  const date = new Date(ms);
  if (Number.isNaN(date.getTime())) return "unknown";
  return `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

/**
 * The name of an incident, the same in every process. Two environments may share one account, so the
 * environment is part of it; what a service might choke on is replaced and the rest told apart by a hash.
 */
function incidentKey(context: RenderContext, kind: string, id: string): string {
  const key = ["svc", ...(context.environment === null ? [] : [context.environment]), kind, id].join(":");
  const safe = key.replace(/[^A-Za-z0-9._:-]/g, "_").slice(0, 180);
  return safe === key ? key : `${safe}:${sha256Hex(key).slice(0, 16)}`;
}
