/** The run report as one HTML page. */
import { html } from "hono/html";
import { capitalizeFirst, formatCountOf } from "../../kernel/text/phrases.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { type PlanAction, planVerdict } from "../../rollback/plan/plan.ts";
import { toIsoTime } from "./external-text.ts";
import {
  codeMarkup,
  factsMarkup,
  foreignText,
  type HtmlMarkup,
  pageParts,
  statusTag,
  type TableColumn,
  tableParts,
} from "./html-page.ts";
import {
  MISSING_DATA_TEXT,
  outlookWords,
  type ReportStep,
  type RunReport,
  residueOf,
  statusCounts,
} from "./run.ts";
import { runTimeline } from "./timeline.ts";

export function runReportHtml(report: RunReport): string {
  return [...runReportParts(report)].join("");
}

/** The page in pieces, because a run may have very many steps. */
export function runReportParts(report: RunReport): Generator<string> {
  return pageParts(`Run ${report.run_id}`, body(report));
}

function* body(report: RunReport): Generator<HtmlMarkup> {
  yield html`<h1>Run report</h1>
<p class="sub">${codeMarkup(report.run_id)}</p>
${verdict(report)}
${summary(report)}
<h2>Timeline</h2>
${runTimeline(report.steps, report.trail)}
<h2>Steps</h2>
`;
  yield* stepsTable(report.steps);
  yield html`
<h2>Rollback outlook</h2>
`;
  yield* outlook(report);
  yield html`
<h2>Event trail</h2>
<p class="note">Every ledger record of the run, in order, each with its hash.</p>
`;
  yield* trailTable(report);
  yield html`
<h2>About this report</h2>
${factsMarkup([
  ["Made", foreignText(toIsoTime(report.generated_ms))],
  ["By", foreignText(`svc ${report.version}`)],
  ["Data region", foreignText(report.region, "not configured")],
  ["Ledger", html`${formatCountOf(report.ledger.records, "record")}`],
  ["Ledger head", html`<code class="hash">${report.ledger.head}</code>`],
])}
<p class="note">This report is not signed. The signed bundle of the run proves the same trail: see <code>svc bundle --run</code>.</p>`;
}

function verdict({ problem, without, steps }: RunReport): HtmlMarkup {
  const lines: HtmlMarkup[] = [];
  if (problem !== null) {
    lines.push(
      html`<p class="verdict bad">This run does not verify: ${foreignText(problem)}. Run <code>svc verify</code>.</p>`,
    );
  }
  const open = steps.filter(({ status }) => status === "intended" || status === "uncertain").length;
  if (open > 0)
    lines.push(
      html`<p class="verdict warn">${formatCountOf(open, "step has", "steps have")} an unknown outcome.</p>`,
    );
  const failed = steps.filter(({ status }) => status === "compensation_failed").length;
  if (failed > 0)
    lines.push(html`<p class="verdict bad">${formatCountOf(failed, "step")} could not be undone.</p>`);
  if (without !== null) lines.push(html`<p class="verdict idle">${MISSING_DATA_TEXT[without]}</p>`);
  return html`${lines}`;
}

function summary({ run, trail, steps }: RunReport): HtmlMarkup {
  const actors = [...new Set(trail.map(({ actor }) => actor))];
  const counts = statusCounts(steps);
  return factsMarkup([
    ["Who", foreignText(run?.actor ?? actors[0] ?? null)],
    ...(run?.acting === undefined
      ? []
      : [["Acting for them", foreignText(run.acting.join(", "))] as [string, HtmlMarkup]]),
    ["Tenant", foreignText(run?.tenant ?? trail[0]?.tenant ?? null)],
    ["Environment", foreignText(run?.environment ?? null)],
    ["Mode", foreignText(run?.mode ?? null)],
    ["Why", foreignText(run?.reason ?? null, "no reason given")],
    ["Opened", foreignText(run === null ? null : toIsoTime(run.created_ms))],
    [
      "Permissions",
      run === null
        ? foreignText(null)
        : html`${run.permissions.map((one) => html`${codeMarkup(one)} `)}${run.permissions.length === 0 ? "none" : ""}`,
    ],
    ["Scope seal", run === null ? foreignText(null) : html`<code class="hash">${run.seal}</code>`],
    [
      "Steps",
      counts.length === 0
        ? foreignText("none")
        : html`${counts.map(([status, count]) => html`${statusTag(status)} ${count} `)}`,
    ],
    [
      "Also acted",
      foreignText(actors.filter((name) => name !== run?.actor).join(", ") || null, "nobody else"),
    ],
  ]);
}

function stepsTable(steps: readonly ReportStep[]): Generator<HtmlMarkup> {
  const columns: TableColumn[] = [
    { name: "#", kind: "num" },
    { name: "Tool" },
    { name: "Status", kind: "tight" },
    { name: "Effect", kind: "tight" },
    { name: "Reason" },
    { name: "Risk", kind: "num" },
    { name: "Accepted, finished (UTC)", kind: "tight" },
  ];
  return tableParts(columns, each(steps, stepRow), "No call was accepted.");
}

function stepRow(step: ReportStep): HtmlMarkup[] {
  const version =
    step.manifest_version === null
      ? ""
      : html` <span class="note">v${foreignText(step.manifest_version)}</span>`;
  const error = step.error === null ? "" : html`<br><span class="bad">${foreignText(step.error)}</span>`;
  const unverified = step.unverified ? html`<br><span class="warn">undone, but not read back</span>` : "";
  const effect = step.effect_check === undefined ? "" : html`<br>${foreignText(step.effect_check)}`;
  return [
    html`${step.step}`,
    html`${step.line === undefined ? "" : html`${foreignText(step.line)}<br>`}${codeMarkup(step.tool)}${version}`,
    statusTag(step.status),
    foreignText(step.effect, "no manifest"),
    html`${foreignText(step.reason)}${error}${unverified}${effect}`,
    html`${step.risk_score ?? "–"}`,
    html`${toIsoTime(step.intended_ms)}${step.finished_ms === null ? "" : html`<br>${toIsoTime(step.finished_ms)}`}`,
  ];
}

function* outlook({ outlook }: RunReport): Generator<HtmlMarkup> {
  if (outlook === null) {
    yield html`<p class="note">Unknown: the data for an undo is no longer available.</p>`;
    return;
  }
  const { ok, words } = planVerdict(outlook);
  yield ok
    ? html`<p class="verdict ok">${capitalizeFirst(words)}: every active step can be undone or needs no undo.</p>`
    : html`<p class="verdict warn">${capitalizeFirst(words)}.</p>`;
  const columns: TableColumn[] = [
    { name: "#", kind: "num" },
    { name: "Tool" },
    { name: "Outlook" },
    { name: "Would remain" },
  ];
  yield* tableParts(columns, each(outlook.actions, actionRow), "No steps need to be undone.");
}

function actionRow(action: PlanAction): HtmlMarkup[] {
  const residue = residueOf(action).map((line, i) => html`${i > 0 ? html`<br>` : ""}${foreignText(line)}`);
  const call = action.line === undefined ? codeMarkup(action.tool) : foreignText(action.line);
  return [html`${action.step}`, call, foreignText(outlookWords(action)), html`${residue}`];
}

function trailTable({ trail }: RunReport): Generator<HtmlMarkup> {
  const columns: TableColumn[] = [
    { name: "Record", kind: "num" },
    { name: "Time (UTC)", kind: "tight" },
    { name: "Event", kind: "tight" },
    { name: "Actor" },
    { name: "Details and record hash" },
  ];
  return tableParts(columns, each(trail, recordRow), "The run has no records yet.");
}

function recordRow(record: LedgerRecord): HtmlMarkup[] {
  const tool = record.tool === undefined ? "" : html`${codeMarkup(record.tool)} `;
  const step = record.step === undefined ? "" : html`<span class="note">step ${record.step}</span> `;
  const detail = record.detail === undefined ? "" : html`<br>${foreignText(record.detail)}`;
  return [
    html`${record.seq}`,
    html`${toIsoTime(record.ts_ms)}`,
    statusTag(record.event),
    foreignText(record.actor),
    html`${tool}${step}${detail}<br><code class="hash">${record.hash}</code>`,
  ];
}

/** Renders rows one at a time, on demand. */
function* each<T>(items: readonly T[], row: (item: T) => HtmlMarkup[]): Generator<HtmlMarkup[]> {
  for (const item of items) yield row(item);
}
