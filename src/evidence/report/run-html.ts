/** The run report as one HTML page. */
import { html } from "hono/html";
import { plural, sentence } from "../../kernel/words.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { type PlanAction, planVerdict } from "../../rollback/plan.ts";
import { type Column, code, facts, foreignText, type Markup, pageParts, tableParts, tag } from "./page.ts";
import { outlookWords, type ReportStep, type RunReport, residueOf, statusCounts, WITHOUT } from "./run.ts";
import { time } from "./text.ts";
import { timeline } from "./timeline.ts";

export function runReportHtml(report: RunReport): string {
  return [...runReportParts(report)].join("");
}

/** The page piece by piece: a run may have very many steps. */
export function runReportParts(report: RunReport): Generator<string> {
  return pageParts(`Run ${report.run_id}`, body(report));
}

function* body(report: RunReport): Generator<Markup> {
  yield html`<h1>Run report</h1>
<p class="sub">${code(report.run_id)}</p>
${verdict(report)}
${summary(report)}
<h2>Timeline</h2>
${timeline(report.steps, report.trail)}
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
${facts([
  ["Made", foreignText(time(report.generated_ms))],
  ["By", foreignText(`svc ${report.version}`)],
  ["Data region", foreignText(report.region, "not configured")],
  ["Ledger", html`${plural(report.ledger.records, "record")}`],
  ["Ledger head", html`<code class="hash">${report.ledger.head}</code>`],
])}
<p class="note">This report is not signed. The signed bundle of the run proves the same trail: see <code>svc bundle --run</code>.</p>`;
}

function verdict({ problem, without, steps }: RunReport): Markup {
  const lines: Markup[] = [];
  if (problem !== null) {
    lines.push(
      html`<p class="verdict bad">This run does not verify: ${foreignText(problem)}. Run <code>svc verify</code>.</p>`,
    );
  }
  const open = steps.filter(({ status }) => status === "intended" || status === "uncertain").length;
  if (open > 0)
    lines.push(
      html`<p class="verdict warn">${plural(open, "step has", "steps have")} an unknown outcome.</p>`,
    );
  const failed = steps.filter(({ status }) => status === "compensation_failed").length;
  if (failed > 0) lines.push(html`<p class="verdict bad">${plural(failed, "step")} could not be undone.</p>`);
  if (without !== null) lines.push(html`<p class="verdict idle">${WITHOUT[without]}</p>`);
  return html`${lines}`;
}

function summary({ run, trail, steps }: RunReport): Markup {
  const actors = [...new Set(trail.map(({ actor }) => actor))];
  const counts = statusCounts(steps);
  return facts([
    ["Who", foreignText(run?.actor ?? actors[0] ?? null)],
    ["Tenant", foreignText(run?.tenant ?? trail[0]?.tenant ?? null)],
    ["Environment", foreignText(run?.environment ?? null)],
    ["Mode", foreignText(run?.mode ?? null)],
    ["Why", foreignText(run?.reason ?? null, "no reason given")],
    ["Opened", foreignText(run === null ? null : time(run.created_ms))],
    [
      "Permissions",
      run === null
        ? foreignText(null)
        : html`${run.permissions.map((one) => html`${code(one)} `)}${run.permissions.length === 0 ? "none" : ""}`,
    ],
    ["Scope seal", run === null ? foreignText(null) : html`<code class="hash">${run.seal}</code>`],
    [
      "Steps",
      counts.length === 0
        ? foreignText("none")
        : html`${counts.map(([status, count]) => html`${tag(status)} ${count} `)}`,
    ],
    [
      "Also acted",
      foreignText(actors.filter((name) => name !== run?.actor).join(", ") || null, "nobody else"),
    ],
  ]);
}

function stepsTable(steps: readonly ReportStep[]): Generator<Markup> {
  const columns: Column[] = [
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

function stepRow(step: ReportStep): Markup[] {
  const version =
    step.manifest_version === null
      ? ""
      : html` <span class="note">v${foreignText(step.manifest_version)}</span>`;
  const error = step.error === null ? "" : html`<br><span class="bad">${foreignText(step.error)}</span>`;
  const unverified = step.unverified ? html`<br><span class="warn">undone, but not read back</span>` : "";
  return [
    html`${step.step}`,
    html`${code(step.tool)}${version}`,
    tag(step.status),
    foreignText(step.effect, "no manifest"),
    html`${foreignText(step.reason)}${error}${unverified}`,
    html`${step.risk_score ?? "–"}`,
    html`${time(step.intended_ms)}${step.finished_ms === null ? "" : html`<br>${time(step.finished_ms)}`}`,
  ];
}

function* outlook({ outlook }: RunReport): Generator<Markup> {
  if (outlook === null) {
    yield html`<p class="note">Unknown: what an undo would need is not there any more.</p>`;
    return;
  }
  const { ok, words } = planVerdict(outlook);
  yield ok
    ? html`<p class="verdict ok">${sentence(words)}: every standing step can be undone or needs no undo.</p>`
    : html`<p class="verdict warn">${sentence(words)}.</p>`;
  const columns: Column[] = [
    { name: "#", kind: "num" },
    { name: "Tool" },
    { name: "Outlook" },
    { name: "Would stay behind" },
  ];
  yield* tableParts(
    columns,
    each(outlook.actions, actionRow),
    "Nothing stands that would have to be undone.",
  );
}

function actionRow(action: PlanAction): Markup[] {
  const residue = residueOf(action).map((line, i) => html`${i > 0 ? html`<br>` : ""}${foreignText(line)}`);
  return [html`${action.step}`, code(action.tool), foreignText(outlookWords(action)), html`${residue}`];
}

function trailTable({ trail }: RunReport): Generator<Markup> {
  const columns: Column[] = [
    { name: "Record", kind: "num" },
    { name: "Time (UTC)", kind: "tight" },
    { name: "Event", kind: "tight" },
    { name: "Actor" },
    { name: "What, and the record's hash" },
  ];
  return tableParts(columns, each(trail, recordRow), "The run has no records yet.");
}

function recordRow(record: LedgerRecord): Markup[] {
  const tool = record.tool === undefined ? "" : html`${code(record.tool)} `;
  const step = record.step === undefined ? "" : html`<span class="note">step ${record.step}</span> `;
  const detail = record.detail === undefined ? "" : html`<br>${foreignText(record.detail)}`;
  return [
    html`${record.seq}`,
    html`${time(record.ts_ms)}`,
    tag(record.event),
    foreignText(record.actor),
    html`${tool}${step}${detail}<br><code class="hash">${record.hash}</code>`,
  ];
}

/** Rows one at a time, when they are asked for. */
function* each<T>(items: readonly T[], row: (item: T) => Markup[]): Generator<Markup[]> {
  for (const item of items) yield row(item);
}
