/** The oversight report as HTML, Markdown and JSON. */
import { html } from "hono/html";
import { formatDuration } from "../../kernel/duration.ts";
import { toIsoTime } from "./external-text.ts";
import { type HtmlMarkup, pageParts } from "./html-page.ts";
import type { DecisionFigures, OversightReport } from "./oversight.ts";
import { htmlSection, markdownSection, type PeriodFormat } from "./period/period-formats.ts";
import { formatPercent, type ReportCell, type ReportSection } from "./period/period-rows.ts";

const t = (text: string): ReportCell => ({ text });
const name = (value: string): ReportCell => ({ name: value });
const n = (number: number): ReportCell => ({ number });
const wait = (ms: number | null): string => (ms === null ? "–" : formatDuration(ms));

const NOT_A_VERDICT =
  "Each figure supports the duty next to it. It does not show that a duty is met or that a law is complied with.";

const COUNTED =
  "A card counts as opened if the decision was sent with its hash. The console and the command line always send the hash; other programs may. A hash does not show that the card was read. A decision in a group counts as one without opening the card. A vote on a plan counts for each of its calls that needs approval.";

const WRITERS: Readonly<Record<PeriodFormat, (report: OversightReport) => string>> = {
  md: (report) =>
    `${["# Human oversight", period(report), bullets(report), ...oversightSections(report).flatMap(markdownSection), NOT_A_VERDICT].join("\n\n")}\n`,
  html: (report) => [...pageParts("Human oversight", htmlParts(report))].join(""),
  json: (report) => `${JSON.stringify(report, null, 2)}\n`,
};

export function writeOversight(report: OversightReport, format: PeriodFormat): string {
  return WRITERS[format](report);
}

const period = ({ since_ms, until_ms }: OversightReport) =>
  `${toIsoTime(since_ms)} to ${toIsoTime(until_ms)}`;

export function oversightHeadline(report: OversightReport): [label: string, value: string][] {
  const { requests, approve_rate, time_to_decide, decisions, break_glass, grants } = report;
  return [
    ["requests", String(requests.opened)],
    ["approved", String(requests.approved)],
    ["denied", String(requests.denied)],
    ["expired", String(requests.expired)],
    ["approve rate", formatPercent(approve_rate)],
    ["median time to decide", wait(time_to_decide.median_ms)],
    ["90th percentile", wait(time_to_decide.p90_ms)],
    ["decisions under five seconds", String(decisions.under_5s)],
    [
      "decided without opening the card (sent without its hash), including group decisions",
      String(decisions.without_card),
    ],
    ["decided in a group", String(decisions.in_group)],
    ["break-glass", String(break_glass.count)],
    ["allowed by grants", String(grants.uses)],
  ];
}

const bullets = (report: OversightReport) =>
  oversightHeadline(report)
    .map(([label, value]) => `- ${label}: ${value}`)
    .join("\n");

function* htmlParts(report: OversightReport): Generator<HtmlMarkup> {
  const card = ([label, value]: [string, string]) =>
    html`<div class="card"><b>${value}</b><span>${label}</span></div>`;
  yield html`<h1>Human oversight</h1>
<p class="sub">${period(report)}</p>
<div class="cards">${oversightHeadline(report).map(card)}</div>
`;
  for (const section of oversightSections(report)) yield* htmlSection(section);
  yield html`<p class="note">${NOT_A_VERDICT}</p>`;
}

const FIGURES = [
  "approved",
  "denied",
  "approve rate",
  "median",
  "90th percentile",
  "under 5 s",
  "card not opened",
  "in a group",
];

function figures(one: DecisionFigures): ReportCell[] {
  return [
    n(one.approved),
    n(one.denied),
    t(formatPercent(one.approve_rate)),
    t(wait(one.median_ms)),
    t(wait(one.p90_ms)),
    n(one.under_5s),
    n(one.without_card),
    n(one.in_group),
  ];
}

export function oversightSections(report: OversightReport): ReportSection[] {
  const { by_approver, by_rule, break_glass, grants, rules, supports } = report;
  const candidates = (list: readonly { rule: string; requests: number }[]) =>
    list.map(({ rule, requests }) => [name(rule), n(requests)]);
  return [
    {
      title: "By approver",
      note: COUNTED,
      columns: ["Approver", ...FIGURES],
      rows: by_approver.map((one) => [name(one.name), ...figures(one)]),
      none: "No decisions.",
    },
    {
      title: "By rule",
      columns: ["Rule", "requests", "expired", ...FIGURES],
      rows: by_rule.map((one) => [name(one.name), n(one.requests), n(one.expired), ...figures(one)]),
      none: "No rule required approval.",
    },
    {
      title: "Break-glass",
      columns: ["Time", "By", "Tool", "Run"],
      rows: break_glass.latest.map(({ ts_ms, by, tool, run_id }) => [
        t(toIsoTime(ts_ms)),
        name(by),
        name(tool),
        name(run_id),
      ]),
      none: "No break-glass approvals.",
    },
    {
      title: "Grants",
      note: `${grants.given} given and ${grants.revoked} revoked in the period.`,
      columns: ["Grant", "Calls allowed by it"],
      rows: grants.by_grant.map(({ id, uses }) => [name(id), n(uses)]),
      none: "No calls were allowed by a grant.",
    },
    {
      title: "Rules never used",
      note: "Rules that only allow leave no trace and are not listed.",
      columns: ["Rule"],
      rows: rules.never_used.map((rule) => [name(rule)]),
      none: "None.",
    },
    {
      title: "Rules always approved: candidates for a grant",
      columns: ["Rule", "Requests"],
      rows: candidates(rules.always_approved),
      none: "None.",
    },
    {
      title: "Rules always denied: candidates for a deny",
      columns: ["Rule", "Requests"],
      rows: candidates(rules.always_denied),
      none: "None.",
    },
    {
      title: "What these figures support",
      columns: ["Figure", "Duty"],
      rows: supports.map(({ figure, duty }) => [t(figure), t(duty)]),
      none: "",
    },
  ];
}
