/** Progress and report of a run's rollback. */
import type { RollbackReport, TreeReport } from "../../../rollback/plan/report.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import { bulletList, factList, noticeBox } from "../../parts/blocks.ts";
import { runLink } from "../../parts/ids.ts";
import { formatCountOf, type MarkTone, markLabel } from "../../parts/marks.ts";
import { formatTime } from "../../parts/time.ts";
import type { JobView, RunPageData } from "./run-data.ts";

const STATES: Record<JobView["state"], [MarkTone, string]> = {
  running: ["info", "running"],
  done: ["good", "done"],
  failed: ["bad", "failed"],
};

/** `to_undo`: undos that the plan still has; the region is fetched again after each one. */
export function jobBlock(job: JobView, to_undo: number): HtmlFragment {
  const [tone, word] =
    job.state === "done" && job.report?.complete === false
      ? (["warn", "done, incomplete"] as const)
      : STATES[job.state];
  return safeHtml`<div class="job">${factList([
    ["State", markLabel(tone, word)],
    ["By", job.by],
    ["Started", formatTime(job.started_ms)],
    job.finished_ms === null ? null : ["Ended", formatTime(job.finished_ms)],
    job.current_step === null ? null : ["Undoing now", `step ${job.current_step}`],
  ])}${job.state === "running" ? safeHtml`<p class="working" role="status">Rolling back${job.current_step === null ? "" : `: step ${job.current_step}`}. ${formatCountOf(to_undo, "undo", "undos")} to go; each step appears here as it is done.</p>` : emptyHtml}${
    job.error === null ? null : noticeBox("bad", safeHtml`<p>${job.error}</p>`)
  }${job.report === null ? emptyHtml : reportBlock(job.report)}</div>`;
}

/** Steps that the report lists as not undone and that a later rollback or containment undid. */
export function undoneSince(job: JobView, run: RunPageData["run"]): HtmlFragment {
  const { report } = job;
  if (report === null || run === null) return emptyHtml;
  const left = [report.failed, report.deferred, report.awaiting_approval, report.unresolved].flatMap(
    (items) => (items ?? []).map((item: ReportItem) => (typeof item === "number" ? item : item.step)),
  );
  const done = run.steps.filter(({ step, status }) => status === "compensated" && left.includes(step));
  if (done.length === 0) return emptyHtml;
  return noticeBox(
    "ok",
    safeHtml`<p>Undone after this rollback: ${done.map(({ step }) => `step ${step}`).join(", ")}.</p>`,
  );
}

const REPORT_ROWS: readonly (readonly [keyof RollbackReport, string, MarkTone])[] = [
  ["compensated", "undone", "good"],
  ["skipped", "nothing to undo", "quiet"],
  ["failed", "undo failed", "bad"],
  ["unrecoverable", "cannot be undone", "bad"],
  ["unresolved", "outcome unknown", "warn"],
  ["unmanifested", "no manifest", "warn"],
  ["deferred", "had to wait", "warn"],
  ["awaiting_approval", "asked for approval", "warn"],
  ["unverified", "undone, not read back", "warn"],
];

function reportBlock(report: TreeReport): HtmlFragment {
  const rows = REPORT_ROWS.flatMap(([key, label, tone]) => {
    const list = report[key];
    if (!Array.isArray(list) || list.length === 0) return [];
    return [safeHtml`${markLabel(tone, label)} ${byReason(list)}`];
  });
  const below = (report.children ?? []).map(
    (child) =>
      safeHtml`${runLink(child.run_id)}${child.error === undefined ? reportBlock(child) : safeHtml`: ${child.error}`}`,
  );
  const others = (report.with ?? []).map(
    (other) =>
      safeHtml`${runLink(other.run_id)}${other.error === undefined ? reportBlock(other) : safeHtml`: ${other.error}`}`,
  );
  return safeHtml`${rows.length === 0 ? emptyHtml : bulletList(rows, "report")}${below.length === 0 ? emptyHtml : bulletList(below)}${others.length === 0 ? emptyHtml : bulletList(others)}`;
}

type ReportItem =
  | number
  | { step: number; error: string; line?: string }
  | { step: number; blocked_by: readonly number[] };

/** Lists the steps, grouped by reason. */
function byReason(items: readonly ReportItem[]): string {
  const about = new Map<string, number[]>();
  for (const item of items) {
    const reason = reasonOf(item);
    about.set(reason, [...(about.get(reason) ?? []), typeof item === "number" ? item : item.step]);
  }
  return [...about]
    .map(([reason, found]) => `${found.length === 1 ? "step" : "steps"} ${found.join(", ")}${reason}`)
    .join("; ");
}

function reasonOf(item: ReportItem): string {
  if (typeof item === "number") return "";
  const what = "line" in item && item.line !== undefined ? ` (${item.line})` : "";
  return "error" in item ? `${what}: ${item.error}` : ` behind ${item.blocked_by.join(", ")}`;
}
