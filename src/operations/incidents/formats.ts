/** An incident as JSON and as Markdown, for the review that follows it. Text of others is shown as code spans. */
import { codeSpan, toIsoTime } from "../../evidence/report/external-text.ts";
import type { IncidentReport } from "./report.ts";
import { incidentTaskTitle } from "./tasks.ts";
import type { TimelineEntry } from "./timeline.ts";

export const INCIDENT_FORMATS = ["json", "md"] as const;
export type IncidentFormat = (typeof INCIDENT_FORMATS)[number];

export const INCIDENT_TYPES: Readonly<Record<IncidentFormat, string>> = {
  json: "application/json; charset=utf-8",
  md: "text/markdown; charset=utf-8",
};

export function writeIncident(report: IncidentReport, format: IncidentFormat): string {
  return format === "json" ? `${JSON.stringify(report, null, 2)}\n` : toMarkdown(report);
}

/** The facts at the head of an incident, as pairs of a name and plain text. */
export function incidentFacts(report: IncidentReport): [name: string, value: string][] {
  const { id, actor, tenant, status, opened_ms, closed_ms, closed_by, close_reason, assigned_to } = report;
  const ended =
    closed_ms === null ? [] : [["Closed", `${toIsoTime(closed_ms)}, ${closedBy(closed_by)}`] as const];
  const pairs: (readonly [string, string])[] = [
    ["Id", id],
    ["Agent", actor],
    ["Tenant", tenant ?? "none"],
    ["Status", status],
    ["Opened", toIsoTime(opened_ms)],
    ...ended,
    ...(close_reason === null ? [] : [["Reason", close_reason] as const]),
    ["Assigned to", assigned_to ?? "nobody"],
    ["Runs", report.runs.join(", ") || "none"],
  ];
  return pairs.map(([name, value]) => [name, value]);
}

const closedBy = (by: string | null): string => (by === null ? "because nothing was left" : `by ${by}`);

/** One line of plain text: the approver, the rule and the card hash of a decision. */
export function timelineText({
  event,
  by,
  text,
  tool,
  step,
  run_id,
  rule,
  card_hash,
}: TimelineEntry): string {
  const what = [tool ?? "", step === null ? "" : `step ${step}`, run_id === null ? "" : `in ${run_id}`];
  const card = card_hash === null || text.includes(card_hash) ? "" : ` (card ${card_hash})`;
  const under = rule === null ? "" : ` under rule ${rule}`;
  const where = what.filter((part) => part !== "").join(" ");
  return `${event} by ${by}${where === "" ? "" : `: ${where}`}${under}${card}${text === "" ? "" : `: ${text}`}`;
}

function toMarkdown(report: IncidentReport): string {
  const { tasks, alerts, notes, timeline, more, causes } = report;
  const lines = (items: readonly string[], none: string) =>
    items.length === 0 ? none : items.map((item) => `- ${item}`).join("\n");
  const parts = [
    "# Incident",
    lines(
      incidentFacts(report).map(([name, value]) => `${name}: ${codeSpan(value)}`),
      "",
    ),
    "## Causes",
    lines(
      causes.map(({ at_ms, text }) => `${toIsoTime(at_ms)} ${codeSpan(text)}`),
      "None that you can see.",
    ),
    "## Remaining tasks",
    lines(
      tasks.map(
        ({ text, command, ...task }) =>
          `${incidentTaskTitle(task)}: ${codeSpan(text)} Run ${codeSpan(command)}`,
      ),
      "Nothing.",
    ),
    "## Alerts",
    lines(
      alerts.map(({ title, message, since_ms }) => `${toIsoTime(since_ms)} ${title}: ${codeSpan(message)}`),
      "None.",
    ),
    "## Notes",
    lines(
      notes.map(
        ({ kind, text, by, at_ms }) => `${toIsoTime(at_ms)} ${kind} by ${codeSpan(by)}: ${codeSpan(text)}`,
      ),
      "None.",
    ),
    "## Timeline",
    ...(more ? ["Older lines are left out. Export the runs for all of them."] : []),
    lines(
      timeline.map((entry) => `${toIsoTime(entry.at_ms)} ${codeSpan(timelineText(entry))}`),
      "No records.",
    ),
    `Made by ${codeSpan(report.made_by)} at ${toIsoTime(report.generated_ms)}.`,
  ];
  return `${parts.join("\n\n")}\n`;
}
