/** `svc incidents`: what needs a person, on local data or on a server. The list exits 2 while an incident is open. */
import type { Command } from "commander";
import { invalidError } from "../../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import { formatCountOf } from "../../../kernel/text/phrases.ts";
import { noTasksText } from "../../../operations/incidents/formats.ts";
import {
  addIncidentNote,
  assignIncident,
  closeIncident,
  getIncident,
  listIncidents,
} from "../../../operations/incidents/incidents.ts";
import { permanentStepText } from "../../../operations/incidents/permanent-steps.ts";
import type { IncidentReport, IncidentView } from "../../../operations/incidents/report.ts";
import { incidentTaskTitle } from "../../../operations/incidents/tasks.ts";
import {
  type CommandContext,
  type CommandFlags,
  EXIT_NEEDS_ATTENTION,
  globalOptions,
  type RegisterCommand,
} from "../../context.ts";
import { alignColumns, type CommandIo, escapeControls } from "../../io.ts";
import { KEY_SETTING, openLocalKeys } from "../../local-keys.ts";
import { documentChunks, type OperationClient } from "../../operation-client.ts";
import { printJsonList } from "../../print-json-list.ts";
import { printOrWrite } from "../../print-or-write.ts";
import { terminalWidth, truncateLine } from "../../truncate.ts";

const withKeyOption = (command: Command): Command =>
  globalOptions(command).option("--keys <file>", "API key file");

export const registerIncidents: RegisterCommand = (program, context) => {
  const group = withKeyOption(program.command("incidents"))
    .description("List open incidents, show one, take notes, assign and close")
    .option("--all", "closed incidents too")
    .option("--json", "print JSON")
    .action((flags: CommandFlags) => listThem(context, flags));

  withKeyOption(group.command("show <id>").description("Show remaining tasks and the timeline"))
    .option("--format <format>", "text, json, md or pdf (default: text)")
    .option("--out <file>", "write to this file; a PDF needs one")
    .action((id: string, flags: CommandFlags) => showOne(context, id, flags));

  withKeyOption(group.command("note <id> <text>").description("Add a note; it cannot be changed"))
    .option("--as <name>", "who writes (default: cli)")
    .action((incident_id: string, text: string, flags: CommandFlags) =>
      withIncidents(context, flags, async (door) => {
        await door.perform(addIncidentNote, { incident_id, text });
        context.io.out(`noted in ${incident_id}`);
      }),
    );

  withKeyOption(group.command("assign <id> <person>").description("Assign an incident to a person"))
    .option("--as <name>", "who assigns (default: cli)")
    .action((incident_id: string, to: string, flags: CommandFlags) =>
      withIncidents(context, flags, async (door) => {
        const { text } = await door.perform(assignIncident, { incident_id, to });
        context.io.out(`${incident_id} is assigned to ${escapeControls(text)}`);
      }),
    );

  withKeyOption(group.command("close <id>").description("Close an incident; with open tasks, give a reason"))
    .option("--reason <text>", "why it is closed")
    .option("--as <name>", "who closes (default: cli)")
    .action((incident_id: string, flags: CommandFlags) =>
      withIncidents(context, flags, async (door) => {
        const reason = (flags["reason"] as string | undefined) ?? (await askedReason(context.io));
        await door.perform(closeIncident, { incident_id, reason });
        context.io.out(`closed ${incident_id}`);
      }),
    );
};

/** Whether a key is still disabled decides whether an incident ends, so local data needs the key file. */
function withIncidents(
  context: CommandContext,
  flags: CommandFlags,
  work: (door: OperationClient) => Promise<void>,
): Promise<void> {
  const withKeys = (door: OperationClient) => {
    openLocalKeys(door);
    return work(door);
  };
  return context.withDoor(flags, withKeys, KEY_SETTING);
}

/** An incident is open while tasks are left, so the person at the terminal is asked for the reason. */
async function askedReason({ ask }: CommandIo): Promise<string | undefined> {
  const reason = (await ask?.("Why do you close it? Tasks may be left: "))?.trim();
  return reason === "" ? undefined : reason;
}

async function listThem(context: CommandContext, flags: CommandFlags): Promise<void> {
  const { io } = context;
  const status = flags["all"] === true ? undefined : "open";
  await withIncidents(context, flags, async (door) => {
    let open = false;
    let none = true;
    async function* found() {
      for await (const incidents of incidentPages(door, status)) {
        none = false;
        open ||= incidents.some((one) => one.status === "open");
        yield incidents;
      }
    }
    if (flags["json"]) await printJsonList(io, "incidents", found());
    else {
      for await (const incidents of found()) printList(io, incidents);
      if (none) io.err(status === "open" ? "no open incidents" : "no incidents");
    }
    if (open) context.done(EXIT_NEEDS_ATTENTION);
  });
}

async function* incidentPages(
  door: OperationClient,
  status: "open" | undefined,
): AsyncGenerator<IncidentView[]> {
  let cursor: string | undefined;
  do {
    const found = await door.perform(listIncidents, { status, limit: SERVICE_LIMITS.page_max, cursor });
    if (found.incidents.length > 0) yield [...found.incidents];
    cursor = found.next_cursor ?? undefined;
  } while (cursor !== undefined);
}

function printList(io: CommandIo, incidents: readonly IncidentView[]): void {
  const rows = incidents.map(({ id, actor, tenant, status, opened_ms, left, assigned_to, causes }) => [
    id,
    status,
    new Date(opened_ms).toISOString(),
    escapeControls(tenant === null ? actor : `${actor} (${tenant})`),
    status === "open" ? `${formatCountOf(left, "task")} left` : "",
    escapeControls(assigned_to ?? "nobody"),
    escapeControls(causes[0]?.text ?? ""),
  ]);
  for (const line of alignColumns(rows)) io.out(truncateLine(line, terminalWidth(io)));
}

const FORMATS = ["text", "json", "md", "pdf"] as const;

async function showOne(context: CommandContext, incident_id: string, flags: CommandFlags): Promise<void> {
  const given = (flags["format"] ?? "text") as string;
  const format = FORMATS.find((one) => one === given);
  if (format === undefined) throw invalidError(`--format: must be ${FORMATS.join(", ")}`);
  const out = flags["out"] as string | undefined;
  if (format === "pdf" && out === undefined)
    throw invalidError("--out: a PDF is written to a file; name one that ends in .pdf");
  await withIncidents(context, flags, async (door) => {
    const asked = format === "text" ? "json" : format;
    const answer = await door.perform(getIncident, { incident_id, format: asked });
    if (format !== "text") return printOrWrite(context.io, answer, out);
    let json = "";
    for await (const part of documentChunks(answer)) json += part;
    const report = JSON.parse(json) as IncidentReport;
    for (const line of describeIncident(report)) context.io.out(line);
  });
}

function describeIncident(report: IncidentReport): string[] {
  const { id, actor, tenant, status, opened_ms, closed_by, close_reason, tasks, alerts, timeline } = report;
  const { cannot_undo, cannot_undo_more } = report;
  const at = (ms: number) => new Date(ms).toISOString();
  const ended = closed_by === null ? "nothing was left" : `by ${escapeControls(closed_by)}`;
  const why = close_reason === null ? "" : `: ${escapeControls(close_reason)}`;
  return [
    `incident ${id}: ${escapeControls(actor)}${tenant === null ? "" : `, tenant ${escapeControls(tenant)}`}, ${status}`,
    `  opened ${at(opened_ms)}, assigned to ${escapeControls(report.assigned_to ?? "nobody")}`,
    ...(status === "closed" ? [`  closed ${at(report.closed_ms!)} (${ended})${why}`] : []),
    ...report.causes.map(({ at_ms, text }) => `  ${at(at_ms)}  ${escapeControls(text)}`),
    tasks.length > 0 ? `${formatCountOf(tasks.length, "task")} left:` : noTasksText(report),
    ...tasks.flatMap(({ text, command, ...task }) => [
      `  ${incidentTaskTitle(task)}: ${escapeControls(text)}`,
      `    ${escapeControls(command)}`,
    ]),
    ...(cannot_undo.length === 0 ? [] : [`cannot be undone${cannot_undo_more ? ", the newest" : ""}:`]),
    ...cannot_undo.map(({ at_ms, ...step }) => `  ${at(at_ms)}  ${escapeControls(permanentStepText(step))}`),
    ...(alerts.length === 0 ? [] : ["alerts:"]),
    ...alerts.map(
      ({ title, message, since_ms }) => `  ${at(since_ms)}  ${title}: ${escapeControls(message)}`,
    ),
    ...(timeline.length === 0 ? [] : ["timeline:"]),
    ...alignColumns(
      timeline.map(({ at_ms, event, by, tool, run_id, step, text }) => [
        `  ${at(at_ms)}`,
        event,
        escapeControls(by),
        escapeControls(
          [tool, run_id, step === null ? null : `#${step}`].filter((part) => part !== null).join(" "),
        ),
        escapeControls(text),
      ]),
    ),
  ];
}
