/** Page of an incident: remaining tasks with their buttons, assignee, notes and timeline. */

import type { KeyView } from "../../../auth/key-manager.ts";
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import { eventWords } from "../../../operations/event-words.ts";
import { liftHalts } from "../../../operations/halts.ts";
import { noTasksText, OLDER_PERMANENT } from "../../../operations/incidents/formats.ts";
import {
  addIncidentNote,
  assignIncident,
  closeIncident,
  getIncident,
} from "../../../operations/incidents/incidents.ts";
import type { IncidentReport } from "../../../operations/incidents/report.ts";
import { type IncidentTask, incidentTaskTitle } from "../../../operations/incidents/tasks.ts";
import type { TimelineEntry } from "../../../operations/incidents/timeline.ts";
import { changeKey, listKeys } from "../../../operations/keys.ts";
import { DocumentContent } from "../../../operations/pipeline/operation.ts";
import { emptyHtml, type HtmlFragment, joinHtml, safeHtml, type TemplateValue } from "../../html.ts";
import { getRoute, type PageAnswer, type PageContext, postRoute } from "../../page-context.ts";
import {
  cardBlock,
  commandBlock,
  emptyState,
  factList,
  nextAction,
  pageHead,
  tableBlock,
} from "../../parts/blocks.ts";
import { foldedBlock, formElement, inputField, submitButton, textareaField } from "../../parts/forms.ts";
import { idText, runLink } from "../../parts/ids.ts";
import { formatCountOf } from "../../parts/marks.ts";
import { linkIds } from "../../parts/records.ts";
import { formatTime } from "../../parts/time.ts";
import { actorPath, incidentMark, incidentPath } from "./incident-list.ts";

export const incidentRoutes = [
  getRoute("/incidents/:id", incidentPage),
  getRoute("/incidents/:id/export", exportIncident),
  postRoute("/incidents/:id/notes", addIncidentNote, addNote),
  postRoute("/incidents/:id/assign", assignIncident, assign),
  postRoute("/incidents/:id/close", closeIncident, close),
];

const idOf = (ctx: PageContext): string => ctx.params["id"] ?? "";

async function readReport(ctx: PageContext): Promise<IncidentReport> {
  const answer = await ctx.call(getIncident, { incident_id: idOf(ctx), format: "json" });
  return JSON.parse(answer.body as string) as IncidentReport;
}

async function incidentPage(ctx: PageContext): Promise<PageAnswer> {
  const report = await readReport(ctx);
  const path = incidentPath(report.id);
  const links = safeHtml`<div class="links"><a class="button" href="${path}/export?format=md">Markdown</a><a class="button" href="${path}/export?format=pdf">PDF</a><a class="button" href="${actorPath(report.actor)}">See the agent</a></div>`;
  const body = safeHtml`${pageHead(safeHtml`Incident: ${report.actor}`, report.causes[0]?.text, links)}
<div id="incident" data-live>${factsCard(report)}${await tasksCard(ctx, report)}${permanentCard(report)}${alertsCard(report)}</div>
${peopleCard(ctx, report)}
<div id="timeline" data-live>${timelineCard(report)}</div>`;
  return { page: { title: `Incident: ${report.actor}`, nav: "alerts", body, live: path } };
}

function factsCard(report: IncidentReport): HtmlFragment {
  const { closed_ms, closed_by, close_reason, runs } = report;
  return cardBlock(
    { title: "State", aside: incidentMark(report) },
    factList([
      ["Id", idText(report.id)],
      report.tenant === null ? null : ["Tenant", report.tenant],
      ["Opened", formatTime(report.opened_ms)],
      ["Assigned to", report.assigned_to ?? "nobody"],
      closed_ms === null
        ? null
        : [
            "Closed",
            safeHtml`${formatTime(closed_ms)} ${closed_by === null ? "because no task was left" : `by ${closed_by}`}`,
          ],
      close_reason === null ? null : ["Reason", close_reason],
      ["Runs", runs.length === 0 ? "none" : runLinks(runs.toReversed())],
    ]),
  );
}

/** Runs named before the folded ones, so that the tasks stay in view. */
const RUNS_SHOWN = 6;

function runLinks(newest: readonly string[]): HtmlFragment {
  const links = (ids: readonly string[]) => safeHtml`${ids.map((run_id) => safeHtml`${runLink(run_id)} `)}`;
  const older = newest.slice(RUNS_SHOWN);
  const shown = links(newest.slice(0, RUNS_SHOWN));
  if (older.length === 0) return shown;
  return safeHtml`${shown}${foldedBlock({ summary: formatCountOf(older.length, "older run") }, links(older))}`;
}

async function tasksCard(ctx: PageContext, report: IncidentReport): Promise<HtmlFragment> {
  const { tasks, status, closed_by, actor } = report;
  if (tasks.length === 0) {
    const more =
      status === "open"
        ? safeHtml`<p>Tasks outside your tenant are left.</p>`
        : closed_by === null
          ? emptyHtml
          : nextAction(actorPath(actor), "See the agent");
    return cardBlock({ title: "Remaining tasks", id: "tasks" }, emptyState(noTasksText(report), more));
  }
  const keys = await keysOf(ctx, tasks);
  const rows = tasks.map((task) => [
    safeHtml`<b>${incidentTaskTitle(task)}</b><br>${task.text}`,
    ctx.is(task.role)
      ? commandBlock(task.command)
      : safeHtml`<span class="soft">For the ${task.role} role.</span>`,
    taskButton(ctx, task, keys),
  ]);
  return cardBlock(
    { title: "Remaining tasks", id: "tasks" },
    tableBlock("Tasks", ["Task", "Command", "Here"], rows),
  );
}

/** The keys that the tasks ask to enable, for a caller who can do it. */
async function keysOf(ctx: PageContext, tasks: readonly IncidentTask[]): Promise<readonly KeyView[]> {
  const ids = new Set(tasks.filter(({ kind }) => kind === "enable").map(({ id }) => id));
  if (ids.size === 0 || !ctx.may(changeKey) || !ctx.has(listKeys)) return [];
  const { keys } = await ctx.call(listKeys, {});
  return keys.filter(({ fingerprint }) => ids.has(fingerprint));
}

/** Calls that took effect for good. No command undoes them, so they are not tasks. */
function permanentCard({ cannot_undo, cannot_undo_more }: IncidentReport): HtmlFragment {
  if (cannot_undo.length === 0) return emptyHtml;
  const rows = cannot_undo.map(({ run_id, step, tool, at_ms, why }) => [
    formatTime(at_ms),
    safeHtml`<code>${tool}</code>`,
    safeHtml`${runLink(run_id)} <a href="/console/runs/${encodeURIComponent(run_id)}#step-${step}">step ${step}</a>`,
    why,
  ]);
  return cardBlock(
    {
      title: "Cannot be undone",
      id: "permanent",
      aside: cannot_undo_more ? OLDER_PERMANENT : "newest first",
    },
    tableBlock("Calls that cannot be undone", ["When", "Tool", "Where", "Why"], rows),
  );
}

/** One line per group of alerts, with its count. */
function alertsCard({ alerts }: IncidentReport): HtmlFragment {
  if (alerts.length === 0) return emptyHtml;
  const rows = alerts.map(({ title, message, count, since_ms }) => [
    title,
    message,
    String(count),
    formatTime(since_ms),
  ]);
  return cardBlock(
    { title: "Alerts", id: "alerts", aside: safeHtml`<a href="/console/alerts">All</a>` },
    tableBlock("Alerts", ["Alert", "Message", "Count", "Since"], rows),
  );
}

const TASK_BUTTONS: Record<IncidentTask["kind"], string> = {
  resolve: "Resolve it",
  undo: "Open the step",
  approve: "Decide it",
  conflict: "See the plan",
  lift: "See the halt",
  enable: "See the key",
  probe: "See the alert",
  review: "See the run",
};

/**
 * A halt is lifted and a key enabled right here. The other tasks need a look first, so their button opens the page that
 * does it.
 */
function taskButton(
  ctx: PageContext,
  { kind, role, id, page }: IncidentTask,
  keys: readonly KeyView[],
): HtmlFragment {
  const here = safeHtml`<input type="hidden" name="incident" value="${idOf(ctx)}">`;
  if (kind === "lift" && id !== null && ctx.may(liftHalts))
    return formElement(
      ctx,
      {
        action: "/console/evidence/resume",
        class: "inline",
        confirm: "Lift this halt. The agent can make calls again.",
        verb: "Lift",
      },
      safeHtml`<input type="hidden" name="id" value="${id}">${here}`,
      submitButton("Lift", "good"),
    );
  const key = kind === "enable" ? keys.find(({ fingerprint }) => fingerprint === id) : undefined;
  if (key !== undefined)
    return formElement(
      ctx,
      {
        action: `/console/settings/keys/${key.index}`,
        class: "inline",
        confirm: `Enable the key of ${key.name}. The agent can use it again.`,
        verb: "Enable",
      },
      safeHtml`<input type="hidden" name="do" value="enable"><input type="hidden" name="fingerprint" value="${key.fingerprint}">${here}`,
      submitButton("Enable", "good"),
    );
  // The page of keys shows them to admins alone.
  if (kind === "enable" && !ctx.is(role)) return emptyHtml;
  return safeHtml`<a class="button" href="${page}">${ctx.is(role) ? TASK_BUTTONS[kind] : "See it"}</a>`;
}

function peopleCard(ctx: PageContext, report: IncidentReport): HtmlFragment {
  const notes = report.notes.map(({ kind, text, by, at_ms }) => [formatTime(at_ms), by, kind, text]);
  const list = notes.length === 0 ? emptyHtml : tableBlock("Notes", ["When", "Who", "What", "Text"], notes);
  const forms = report.status === "open" && ctx.may(addIncidentNote) ? peopleForms(ctx, report) : emptyHtml;
  return cardBlock({ title: "People", id: "people" }, list, forms);
}

function peopleForms(ctx: PageContext, { id, left, assigned_to }: IncidentReport): HtmlFragment {
  const path = incidentPath(id);
  const max = SERVICE_LIMITS.note_chars;
  const why = inputField({
    label: left === 0 ? "Reason" : "Reason (tasks are left)",
    name: "reason",
    maxlength: max,
    required: left > 0,
  });
  return safeHtml`${formElement(
    ctx,
    { action: `${path}/notes`, class: "form" },
    textareaField({
      label: "Note",
      name: "text",
      required: true,
      maxlength: max,
      hint: "It cannot be changed.",
    }),
    submitButton("Add the note", "primary"),
  )}${formElement(
    ctx,
    { action: `${path}/assign`, class: "form" },
    inputField({
      label: "Assign to",
      name: "to",
      value: assigned_to ?? ctx.principal.name,
      required: true,
      maxlength: 256,
    }),
    submitButton("Assign"),
  )}${formElement(ctx, { action: `${path}/close`, class: "form" }, why, submitButton("Close the incident", "danger"))}`;
}

function timelineCard({ timeline, more }: IncidentReport): HtmlFragment {
  if (timeline.length === 0) return cardBlock({ title: "Timeline" }, emptyState("No records visible to you"));
  const entries = timeline.toReversed();
  const older = entries.slice(ENTRIES_SHOWN);
  return cardBlock(
    { title: "Timeline", aside: more ? "older entries are not shown" : "newest first" },
    timelineTable("Timeline", entries.slice(0, ENTRIES_SHOWN)),
    older.length === 0
      ? emptyHtml
      : foldedBlock(
          { summary: older.length === 1 ? "1 older entry" : `${older.length} older entries` },
          timelineTable("Older entries", older),
        ),
  );
}

/** Entries before the folded ones: on a phone, about four screens. */
const ENTRIES_SHOWN = 20;

function timelineTable(caption: string, entries: readonly TimelineEntry[]): HtmlFragment {
  const rows = entries.map((entry) => [
    formatTime(entry.at_ms),
    eventWords(entry.event, entry.text),
    entry.by,
    whatHappened(entry),
  ]);
  return tableBlock(caption, ["When", "What", "Who", "About"], rows);
}

/** Part of a record's detail that the entry shows as the card. */
const CARD_DETAIL = /; card sha256:[0-9a-f]{64}/;

function whatHappened({ event, tool, run_id, step, rule, card_hash, text }: TimelineEntry): TemplateValue {
  const more = text === eventWords(event, text) ? "" : text.replace(CARD_DETAIL, "");
  const facts = [
    tool === null ? null : safeHtml`<code>${tool}</code>`,
    step === null ? null : safeHtml`step ${step}`,
    run_id === null ? null : runLink(run_id),
    rule === null ? null : safeHtml`<span class="soft">rule ${rule}</span>`,
    card_hash === null
      ? null
      : safeHtml`<span class="soft" title="${card_hash}">card ${card_hash.slice(0, 19)}…</span>`,
  ].filter((fact) => fact !== null);
  const line = facts.length > 0 && more !== "" ? safeHtml`<br>` : null;
  return safeHtml`${joinHtml(facts, " ")}${line}${linkIds(more)}`;
}

async function exportIncident(ctx: PageContext): Promise<PageAnswer> {
  const format = ctx.query["format"] === "pdf" ? "pdf" : "md";
  const { type, body } = await ctx.call(getIncident, { incident_id: idOf(ctx), format });
  return { content: new DocumentContent(type, body, `${idOf(ctx)}.${format}`) };
}

const back = (ctx: PageContext, text: string): PageAnswer => ({
  to: `${incidentPath(idOf(ctx))}#people`,
  notice: { kind: "ok", text },
});

async function addNote(ctx: PageContext): Promise<PageAnswer> {
  await ctx.call(addIncidentNote, { incident_id: idOf(ctx), text: ctx.form.text("text") });
  return back(ctx, "The note was added.");
}

async function assign(ctx: PageContext): Promise<PageAnswer> {
  const { text } = await ctx.call(assignIncident, { incident_id: idOf(ctx), to: ctx.form.text("to") });
  return back(ctx, `Assigned to ${text}.`);
}

async function close(ctx: PageContext): Promise<PageAnswer> {
  await ctx.call(closeIncident, { incident_id: idOf(ctx), reason: ctx.form.optional("reason") });
  return back(ctx, "The incident is closed.");
}
