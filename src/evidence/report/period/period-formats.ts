/** The period report as HTML, Markdown and JSON. */
import { html } from "hono/html";
import { codeSpan, toIsoTime } from "../external-text.ts";
import {
  codeMarkup,
  factsMarkup,
  foreignText,
  type HtmlMarkup,
  pageParts,
  tableParts,
} from "../html-page.ts";
import { daysChart } from "./days-chart.ts";
import type { PeriodReport } from "./period.ts";
import { DAY_COLUMNS } from "./period-counts.ts";
import { keyFigures, type ReportCell, type ReportSection, reportSections } from "./period-rows.ts";

export const PERIOD_FORMATS = ["md", "html", "json"] as const;
export type PeriodFormat = (typeof PERIOD_FORMATS)[number];

export const PERIOD_TYPES: Readonly<Record<PeriodFormat, string>> = {
  md: "text/markdown; charset=utf-8",
  html: "text/html; charset=utf-8",
  json: "application/json; charset=utf-8",
};

const WRITERS: Readonly<Record<PeriodFormat, (report: PeriodReport) => string>> = {
  md: toMarkdown,
  html: toHtml,
  json: (report) => `${JSON.stringify(report, null, 2)}\n`,
};

export function writePeriodReport(report: PeriodReport, format: PeriodFormat): string {
  return WRITERS[format](report);
}

function about({ ledger, environment, region, made_by }: PeriodReport): [string, ReportCell][] {
  return [
    ["Records in the period", { number: ledger.in_period }],
    ["Records in the ledger", { number: ledger.records }],
    ["Ledger head", { name: ledger.head }],
    ["Environment", environment === null ? { text: "none" } : { name: environment }],
    ["Data region", region === null ? { text: "not configured" } : { name: region }],
    ["Made by", { text: made_by }],
  ];
}

function toHtml(report: PeriodReport): string {
  const title = `Report ${toIsoTime(report.since_ms).slice(0, 10)} to ${toIsoTime(report.until_ms).slice(0, 10)}`;
  return [...pageParts(title, htmlParts(report))].join("");
}

function* htmlParts(report: PeriodReport): Generator<HtmlMarkup> {
  const card = ([label, value]: [string, string]) =>
    html`<div class="card"><b>${value}</b><span>${label}</span></div>`;
  yield html`<h1>Period report</h1>
<p class="sub">${toIsoTime(report.since_ms)} to ${toIsoTime(report.until_ms)}</p>
<div class="cards">${keyFigures(report).map(card)}</div>
<h2>Calls per day</h2>
${daysChart(report.per_day)}
`;
  for (const section of reportSections(report)) yield* htmlSection(section);
  yield html`<h2>About this report</h2>
${factsMarkup(about(report).map(([name, value]) => [name, htmlCell(value)] as const))}`;
}

export function* htmlSection({ title, note, columns, rows, none }: ReportSection): Generator<HtmlMarkup> {
  yield html`<h2>${title}</h2>
`;
  if (columns === null) {
    yield factsMarkup(rows.map(([name, value]) => [words(name!), htmlCell(value!)] as const));
    return;
  }
  const isNumber = (i: number) => rows.length > 0 && rows.every((row) => "number" in row[i]!);
  const heads = columns.map((name, i) => ({ name, ...(isNumber(i) ? { kind: "num" as const } : {}) }));
  yield* tableParts(
    heads,
    rows.map((row) => row.map(htmlCell)),
    none,
  );
  if (note !== undefined && rows.length > 0)
    yield html`<p class="note">${note}</p>
`;
}

function words(cell: ReportCell): string {
  return "text" in cell ? cell.text : "";
}

function htmlCell(cell: ReportCell): HtmlMarkup {
  if ("name" in cell) return codeMarkup(cell.name);
  return "text" in cell ? foreignText(cell.text) : html`${cell.number}`;
}

function toMarkdown(report: PeriodReport): string {
  const parts = [
    "# Period report",
    `${toIsoTime(report.since_ms)} to ${toIsoTime(report.until_ms)}`,
    keyFigures(report)
      .map(([label, value]) => `- ${label}: ${value}`)
      .join("\n"),
    ...reportSections(report).flatMap(markdownSection),
    "## Calls per day",
    markdownTable(
      ["Day", ...DAY_COLUMNS],
      report.per_day.map(({ day, accepted, blocked }) => [
        { text: day },
        { number: accepted },
        { number: blocked },
      ]),
    ),
    "## About this report",
    about(report)
      .map(([name, value]) => `- ${name}: ${markdownCell(value)}`)
      .join("\n"),
  ];
  return `${parts.join("\n\n")}\n`;
}

export function markdownSection({ title, note, columns, rows, none }: ReportSection): string[] {
  if (columns === null)
    return [
      `## ${title}`,
      rows.map(([name, value]) => `- ${words(name!)}: ${markdownCell(value!)}`).join("\n"),
    ];
  if (rows.length === 0) return [`## ${title}`, none];
  return [`## ${title}`, markdownTable(columns, rows), ...(note === undefined ? [] : [note])];
}

function markdownTable(columns: readonly string[], rows: readonly (readonly ReportCell[])[]): string {
  const isNumber = (i: number) => rows.every((row) => "number" in row[i]!);
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [
    line(columns),
    line(columns.map((_, i) => (isNumber(i) ? "-:" : "-"))),
    ...rows.map((row) => line(row.map(markdownCell))),
  ].join("\n");
}

function markdownCell(cell: ReportCell): string {
  if ("name" in cell) return codeSpan(cell.name);
  return "text" in cell ? cell.text : String(cell.number);
}
