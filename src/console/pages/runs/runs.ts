/** Runs page: all runs, filtered by actor, tool, status, mode and time. */
import type { z } from "zod";
import { RUN_MODES, STEP_STATUSES } from "../../../govern/runs/run.ts";
import type { FoundRun } from "../../../operations/runs/run-search.ts";
import { searchRuns } from "../../../operations/runs/search.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import { getRoute, type PageAnswer, type PageContext } from "../../page-context.ts";
import { cardBlock, emptyState, nextAction, pageHead, pagerLinks, tableBlock } from "../../parts/blocks.ts";
import { inputField, selectField } from "../../parts/forms.ts";
import { nameText, runLink } from "../../parts/ids.ts";
import { formatCountOf, markLabel, runStateMark } from "../../parts/marks.ts";
import { formatAgo } from "../../parts/time.ts";
import { openApprovals } from "../approvals/approval-data.ts";

const FIELDS = ["q", "actor", "tool", "tenant", "mode", "status", "since", "attention", "cursor"] as const;
const SINCE = [
  ["", "any time"],
  ["1h", "last hour"],
  ["1d", "last day"],
  ["7d", "last week"],
  ["30d", "last 30 days"],
] as const;

export const runsRoutes = [getRoute("/runs", runs)];

async function runs(ctx: PageContext): Promise<PageAnswer> {
  const query: Record<string, string> = {};
  for (const name of FIELDS) if (ctx.query[name] !== undefined) query[name] = ctx.query[name];
  if (query["attention"] !== undefined) query["attention"] = "1";
  const found = await ctx.call(searchRuns, {
    ...query,
    attention: query["attention"] === "1",
  } as z.input<typeof searchRuns.input>);
  const filtered = Object.keys(query).length > 0;
  const now = ctx.app.core.env.now();
  const waiting = await waitingRuns(ctx);
  const body = safeHtml`${pageHead("Runs", "What agents did, one run at a time.", attentionToggle(query))}
${filters(query)}
${cardBlock(
  {
    title: query["attention"] === "1" ? "Needing attention" : filtered ? "Matching runs" : "Newest first",
    id: "runs",
    live: true,
  },
  found.runs.length === 0 ? noRuns(filtered) : runsTable(found.runs, now, waiting),
  pagerLinks("/console/runs", query, found.next_cursor),
)}`;
  return { page: { title: "Runs", nav: "runs", body, live: `/console/runs?${new URLSearchParams(query)}` } };
}

/** Ids of runs with an open approval request. */
export async function waitingRuns(ctx: PageContext): Promise<ReadonlySet<string>> {
  return new Set((await openApprovals(ctx)).map(({ run_id }) => run_id));
}

export function runsTable(
  runs: readonly FoundRun[],
  now: number,
  waiting: ReadonlySet<string>,
): HtmlFragment {
  return tableBlock(
    "Runs",
    ["Run", "Actor", "Mode", "Steps", "State", "Opened"],
    runs.map((run) => [
      safeHtml`${runLink(run.run_id)}${run.reason ? safeHtml`<span class="part run-reason">${run.reason}</span>` : null}`,
      safeHtml`${nameText(run.actor)}${run.tenant === null ? "" : safeHtml` <span class="soft">${run.tenant}</span>`}`,
      run.mode === "enforce" ? safeHtml`<span class="soft">enforce</span>` : markLabel("info", run.mode),
      String(run.steps),
      runState(run, waiting.has(run.run_id)),
      formatAgo(run.created_ms, now),
    ]),
    "runs",
  );
}

/** State of a run in the same words as on every surface, and the reason why it is open. */
function runState({ state, unresolved }: FoundRun, waits: boolean): HtmlFragment {
  const cause =
    state !== "open"
      ? ""
      : waits
        ? "waits for approval"
        : unresolved > 0
          ? `${formatCountOf(unresolved, "step")} in progress`
          : "";
  return safeHtml`${runStateMark(state)}${cause === "" ? emptyHtml : safeHtml` <span class="soft">${cause}</span>`}`;
}

function attentionToggle(query: Record<string, string>): HtmlFragment {
  const { attention, cursor: _, ...rest } = query;
  const on = attention === "1";
  const next = new URLSearchParams(on ? rest : { ...rest, attention: "1" });
  return safeHtml`<a class="button${on ? " on" : ""}" href="/console/runs?${next.toString()}">${on ? "Show all runs" : "Needing attention"}</a>`;
}

function filters(query: Record<string, string>): HtmlFragment {
  const value = (name: string) => query[name] ?? "";
  return safeHtml`<form method="get" action="/console/runs" class="filters" role="search">
${inputField({ label: "Search", name: "q", type: "search", value: value("q"), placeholder: "run, actor, tenant or reason", class: "wide" })}
${inputField({ label: "Actor", name: "actor", value: value("actor") })}
${inputField({ label: "Tool", name: "tool", value: value("tool") })}
${selectField({ label: "Step status", name: "status", value: value("status"), choices: [["", "any"], ...STEP_STATUSES.map((status) => [status, status.replaceAll("_", " ")] as const)] })}
${selectField({ label: "Mode", name: "mode", value: value("mode"), choices: [["", "any"], ...RUN_MODES.map((mode) => [mode, mode] as const)] })}
${selectField({ label: "Opened", name: "since", value: value("since"), choices: SINCE })}
${query["attention"] === "1" ? safeHtml`<input type="hidden" name="attention" value="1">` : null}<button type="submit" class="primary">Search</button></form>`;
}

function noRuns(filtered: boolean): HtmlFragment {
  return filtered
    ? emptyState(
        "No matching runs",
        safeHtml`<p>Remove a filter or search a longer period. Runs that retention deleted are only in the <a href="/console/evidence#ledger">ledger</a>.</p>`,
        nextAction("/console/runs", "Show all runs"),
      )
    : emptyState(
        "No runs yet",
        safeHtml`<p>An agent opens a run with <code>POST /v1/runs</code> and the permissions that it needs. Its calls then appear here.</p>`,
        nextAction("/console/impact", "Preview a call"),
      );
}
