/** An incident as JSON and as Markdown, for the review that follows it. Text of others is shown as code spans. */
import { codeSpan, toIsoTime } from "../../evidence/report/external-text.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { formatCountOf } from "../../kernel/text/phrases.ts";
import { eventWords } from "../event-words.ts";
import { permanentStepText } from "./permanent-steps.ts";
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

/** The facts at the head of an incident, as pairs of a name and plain text. Names this many runs, the newest. */
export function incidentFacts(
  report: IncidentReport,
  max_runs: number = SERVICE_LIMITS.incident_runs,
): [name: string, value: string][] {
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
    ["Runs", runNames(report.runs, max_runs)],
  ];
  return pairs.map(([name, value]) => [name, value]);
}

function runNames(runs: readonly string[], max: number): string {
  const older = runs.length - max;
  const names = runs.slice(-max).join(", ");
  return older > 0 ? `${names}, and ${formatCountOf(older, "older run")}` : names || "none";
}

const closedBy = (by: string | null): string => (by === null ? "because no task was left" : `by ${by}`);

/** Text of an incident without a listed task. An operator may have closed it with work left. */
export function noTasksText({ status, closed_by }: Pick<IncidentReport, "status" | "closed_by">): string {
  if (status === "open") return "Nothing is left for you.";
  return closed_by === null ? "Nothing is left." : "It is closed, so its tasks are not listed.";
}

/** One line of plain text: what happened, who did it, and the rule and card hash of a decision. */
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
  const words = eventWords(event, text);
  const what = [tool ?? "", step === null ? "" : `step ${step}`, run_id === null ? "" : `in ${run_id}`];
  const card = card_hash === null || text.includes(card_hash) ? "" : ` (card ${card_hash})`;
  const under = rule === null ? "" : ` under rule ${rule}`;
  const where = what.filter((part) => part !== "").join(" ");
  const more = text === "" || text === words ? "" : `: ${text}`;
  return `${words} by ${by}${where === "" ? "" : `: ${where}`}${under}${card}${more}`;
}

export const OLDER_PERMANENT = "Older calls are left out.";

/** A note of several lines keeps them. */
function noteLines({ kind, text, by, at_ms }: IncidentReport["notes"][number]): string {
  const head = `${toIsoTime(at_ms)} ${kind} by ${codeSpan(by)}:`;
  const [first = "", ...rest] = text.split("\n");
  if (rest.length === 0) return `${head} ${codeSpan(first)}`;
  return [head, ...[first, ...rest].map((line) => `  - ${codeSpan(line)}`)].join("\n");
}

function toMarkdown(report: IncidentReport): string {
  const { tasks, alerts, notes, timeline, more, causes, cannot_undo } = report;
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
      noTasksText(report),
    ),
    "## Cannot be undone",
    ...(report.cannot_undo_more ? [OLDER_PERMANENT] : []),
    lines(
      cannot_undo.map(({ at_ms, ...step }) => `${toIsoTime(at_ms)} ${codeSpan(permanentStepText(step))}`),
      "None.",
    ),
    "## Alerts",
    lines(
      alerts.map(({ title, message, since_ms }) => `${toIsoTime(since_ms)} ${title}: ${codeSpan(message)}`),
      "None.",
    ),
    "## Notes",
    lines(notes.map(noteLines), "None."),
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
