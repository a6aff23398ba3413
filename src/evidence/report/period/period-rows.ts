/** The period report as titled tables of texts and numbers, for all its formats. */
import { formatDuration } from "../../../kernel/duration.ts";
import { formatCountOf } from "../../../kernel/text/phrases.ts";
import { toIsoTime } from "../external-text.ts";
import type { PeriodReport } from "./period.ts";
import { APPROVAL_COLUMNS, CALL_COLUMNS } from "./period-counts.ts";

/** `text` is a text of ours; `name` is external and must be displayed as such. */
export type ReportCell = { text: string } | { name: string } | { number: number };

export interface ReportSection {
  title: string;
  note?: string;
  /** Without columns, each row is a name and its value. */
  columns: readonly string[] | null;
  rows: ReportCell[][];
  none: string;
}

const SHOWN = 50;
const t = (text: string): ReportCell => ({ text });
const name = (value: string): ReportCell => ({ name: value });
const n = (number: number): ReportCell => ({ number });

export function formatPercent(share: number | null): string {
  return share === null ? "–" : `${Math.round(share * 1_000) / 10} %`;
}

/** The numbers at the top. */
export function keyFigures(report: PeriodReport): [label: string, value: string][] {
  const { calls, runs, outcomes, approvals, rollbacks, irreversible, attention } = report;
  return [
    ["calls", String(calls.total)],
    ["accepted", String(calls.accepted)],
    ["blocked", String(calls.blocked)],
    ["would_block", String(calls.would_block)],
    ["runs active", String(runs.active)],
    ["runs opened", String(runs.opened)],
    ["succeeded", String(outcomes.succeeded)],
    ["failed", String(outcomes.failed)],
    ["uncertain", String(outcomes.uncertain)],
    ["approvals requested", String(approvals.requested)],
    ["compensated", String(rollbacks.compensated)],
    ["irreversible ran", String(irreversible.ran)],
    ["halts", String(report.stops.halted)],
    ["containments", String(report.stops.contained)],
    ["need attention", `${attention.runs.length}${attention.more ? "+" : ""}`],
  ];
}

export function reportSections(report: PeriodReport): ReportSection[] {
  return [
    attention(report),
    stops(report),
    callSection("Calls by tool", "Tool", report.by_tool),
    {
      title: "Calls by actor",
      columns: ["Actor", ...APPROVAL_COLUMNS],
      rows: top(report.by_actor).map((row) => [
        name(row.name),
        ...APPROVAL_COLUMNS.map((column) => n(row[column])),
      ]),
      none: "No calls.",
      ...cut(report.by_actor),
    },
    callSection("Calls by reversibility", "Effect", report.by_effect),
    {
      title: "Why calls were blocked",
      columns: ["Reason", "Calls"],
      rows: top(report.blocked_reasons).map(({ reason, count }) => [name(reason), n(count)]),
      none: "No calls were blocked.",
    },
    {
      title: "Tools called without a manifest",
      columns: ["Tool", "accepted", "blocked"],
      rows: top(report.unmanifested).map((row) => [name(row.name), n(row.accepted), n(row.blocked)]),
      none: "None.",
      ...cut(report.unmanifested),
    },
    approvals(report),
    rollbacks(report),
    irreversible(report),
    budgets(report),
  ];
}

function top<T>(rows: readonly T[]): readonly T[] {
  return rows.slice(0, SHOWN);
}

function cut(rows: readonly unknown[]): { note?: string } {
  const rest = rows.length - SHOWN;
  return rest > 0
    ? { note: `The first ${SHOWN}; ${formatCountOf(rest, "more is", "more are")} in the json format.` }
    : {};
}

function callSection(title: string, what: string, rows: PeriodReport["by_tool"]): ReportSection {
  return {
    title,
    columns: [what, ...CALL_COLUMNS],
    rows: top(rows).map((row) => [name(row.name), ...CALL_COLUMNS.map((column) => n(row[column]))]),
    none: "No calls.",
    ...cut(rows),
  };
}

function attention({ attention }: PeriodReport): ReportSection {
  return {
    title: "Runs that need attention",
    columns: ["Run", "Actor", "Opened", "Unresolved steps"],
    rows: attention.runs.map((run) => [
      name(run.run_id),
      name(run.actor),
      t(toIsoTime(run.created_ms)),
      n(run.unresolved),
    ]),
    none: "None.",
    note: attention.more ? "Current state; not all are shown." : "Current state.",
  };
}

function stops({ stops }: PeriodReport): ReportSection {
  return {
    title: "Halts and containments",
    columns: ["Time", "What", "By", "Details", "Reason"],
    rows: top(stops.latest).map(({ ts_ms, event, actor, detail, reason }) => [
      t(toIsoTime(ts_ms)),
      t(event),
      name(actor),
      name(detail ?? ""),
      name(reason ?? ""),
    ]),
    none: "None.",
    ...cut(stops.latest),
  };
}

function approvals({ approvals }: PeriodReport): ReportSection {
  const { median_decision_ms } = approvals;
  return {
    title: "Approvals",
    columns: null,
    rows: [
      [t("requested"), n(approvals.requested)],
      [t("approved"), n(approvals.approved)],
      [t("denied"), n(approvals.denied)],
      [t("expired"), n(approvals.expired)],
      [t("escalated"), n(approvals.escalated)],
      [t("break-glass approvals"), n(approvals.break_glass)],
      [t("approved beforehand"), n(approvals.pre_approved)],
      [
        t("median time to decision"),
        t(median_decision_ms === null ? "–" : formatDuration(median_decision_ms)),
      ],
    ],
    none: "",
  };
}

function rollbacks({ rollbacks }: PeriodReport): ReportSection {
  return {
    title: "Rollback results",
    columns: null,
    rows: [
      [t("steps with a started undo"), n(rollbacks.begun)],
      [t("compensated"), n(rollbacks.compensated)],
      [t("failed, and not undone since"), n(rollbacks.failed)],
      [t("verified"), n(rollbacks.verified)],
      [t("verification_failed"), n(rollbacks.verification_failed)],
      [t("unverified"), n(rollbacks.unverified)],
      [t("verification rate"), t(formatPercent(rollbacks.verification_rate))],
    ],
    none: "",
  };
}

function irreversible({ irreversible: { ran, latest } }: PeriodReport): ReportSection {
  return {
    title: "Irreversible actions that ran",
    columns: ["Time", "Tool", "Run", "Step", "Actor", "Outcome"],
    rows: latest.map((one) => [
      t(toIsoTime(one.ts_ms)),
      name(one.tool),
      name(one.run_id),
      t(one.step === null ? "–" : String(one.step)),
      name(one.actor),
      t(one.outcome),
    ]),
    none: "None.",
    ...(ran > latest.length ? { note: `The latest ${latest.length} of ${ran}.` } : {}),
  };
}

function budgets({ budgets }: PeriodReport): ReportSection {
  return {
    title: "Budgets near their limit",
    note: "Current state.",
    columns: ["Budget", "Whose", "Used", "Of", "Share"],
    rows: top(budgets).map((use) => [
      name(use.id),
      use.value === "" ? t(use.per === "global" ? "all" : `no ${use.per}`) : name(use.value),
      n(use.used),
      n(use.max),
      t(formatPercent(use.share)),
    ]),
    none: "None.",
  };
}
