/** Links to the reports of containments, for the pages that show what was contained: runs, halts, alerts, evidence. */
import { listContainments } from "../../app/operations/contain/job.ts";
import type { ContainReport } from "../../app/operations/contain/report.ts";
import { getContain } from "../../app/operations/contain.ts";
import type { ContainmentDoc } from "../../port/docs.ts";
import type { Ctx } from "../ctx.ts";
import { type Html, html, nothing } from "../html.ts";
import { card, table } from "./blocks.ts";
import { mark } from "./marks.ts";
import { when } from "./time.ts";

/** Newest first; none for callers who may not see reports. */
export async function readContainments(ctx: Ctx): Promise<ContainmentDoc[]> {
  return ctx.may(getContain) ? listContainments(ctx.app.core) : [];
}

const reportLink = ({ id }: ContainmentDoc, label: string): Html =>
  html`<a href="/console/contain/${encodeURIComponent(id)}">${label}</a>`;

/** The reports that name the run. */
export function containmentsOfRun(
  found: readonly ContainmentDoc[],
  { run_id, actor }: { run_id: string; actor: string },
): Html | null {
  const about = found.filter(({ report, actors, state }) => {
    if (state === "running") return actors.includes(actor);
    return (report as ContainReport | null)?.runs.some((run) => run.run_id === run_id) === true;
  });
  if (about.length === 0) return null;
  return html`${about.map((one) => html`${reportLink(one, "report")} <span class="soft">${when(one.started_ms)}</span> `)}`;
}

/** The report of the containment that a halt belongs to. */
export function containmentOfHalt(found: readonly ContainmentDoc[], halt_id: string): Html {
  const one = found.find((doc) => doc.halt_id === halt_id);
  return one === undefined ? nothing : html` ${reportLink(one, "Containment report")}`;
}

export function containmentsCard(found: readonly ContainmentDoc[]): Html {
  if (found.length === 0) return nothing;
  return card(
    { title: "Containments", id: "containments", live: true },
    table(
      "Containments",
      ["Whom", "Reason", "By", "Started", "Outcome", "Report"],
      found.map((one) => [
        one.actor,
        one.reason,
        one.by,
        when(one.started_ms),
        outcomeMark(one),
        reportLink(one, "Report"),
      ]),
    ),
  );
}

export function outcomeMark({ state, report }: Pick<ContainmentDoc, "state" | "report">): Html {
  if (state === "running") return mark("info", "under way");
  if (state === "failed") return mark("bad", "broke off");
  const complete = (report as ContainReport | null)?.complete === true;
  return complete ? mark("good", "contained") : mark("warn", "contained, something is left");
}
