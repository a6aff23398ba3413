/** Links to containment reports, for the pages of runs, halts, alerts and evidence. */
import type { ContainmentDoc } from "../../govern/port/docs.ts";
import { getContain } from "../../operations/contain/contain.ts";
import { listContainments } from "../../operations/contain/job.ts";
import type { ContainReport } from "../../operations/contain/report.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../html.ts";
import type { PageContext } from "../page-context.ts";
import { cardBlock, tableBlock } from "./blocks.ts";
import { markLabel } from "./marks.ts";
import { formatTime } from "./time.ts";

/** Returns containments, newest first. Empty for users who cannot see the reports. */
export async function readContainments(ctx: PageContext): Promise<ContainmentDoc[]> {
  return ctx.may(getContain) ? listContainments(ctx.app.core) : [];
}

const reportLink = ({ id }: ContainmentDoc, label: string): HtmlFragment =>
  safeHtml`<a href="/console/contain/${encodeURIComponent(id)}">${label}</a>`;

/** Links to the containments that include the run. */
export function containmentsOfRun(
  found: readonly ContainmentDoc[],
  { run_id, actor }: { run_id: string; actor: string },
): HtmlFragment | null {
  const about = found.filter(({ report, actors, state }) => {
    if (state === "running") return actors.includes(actor);
    return (report as ContainReport | null)?.runs.some((run) => run.run_id === run_id) === true;
  });
  if (about.length === 0) return null;
  return safeHtml`${about.map((one) => safeHtml`${reportLink(one, "report")} <span class="soft">${formatTime(one.started_ms)}</span> `)}`;
}

/** Link to the containment that placed the halt. */
export function containmentOfHalt(found: readonly ContainmentDoc[], halt_id: string): HtmlFragment {
  const one = found.find((doc) => doc.halt_id === halt_id);
  return one === undefined ? emptyHtml : safeHtml` ${reportLink(one, "Containment report")}`;
}

export function containmentsCard(found: readonly ContainmentDoc[]): HtmlFragment {
  if (found.length === 0) return emptyHtml;
  return cardBlock(
    { title: "Containments", id: "containments", live: true },
    tableBlock(
      "Containments",
      ["Agent", "Reason", "By", "Started", "Outcome", "Report"],
      found.map((one) => [
        one.actor,
        one.reason,
        one.by,
        formatTime(one.started_ms),
        outcomeMark(one),
        reportLink(one, "Report"),
      ]),
    ),
  );
}

export function outcomeMark({ state, report }: Pick<ContainmentDoc, "state" | "report">): HtmlFragment {
  if (state === "running") return markLabel("info", "in progress");
  if (state === "failed") return markLabel("bad", "failed");
  const complete = (report as ContainReport | null)?.complete === true;
  return complete ? markLabel("good", "contained") : markLabel("warn", "contained, incomplete");
}
