/** The Runs page: every run, found by who, what, when and whether it needs attention. */
import type { z } from "zod";
import type { FoundRun } from "../../app/operations/search/run-search.ts";
import { searchRuns } from "../../app/operations/search.ts";
import { MODES, STEP_STATUSES } from "../../model/run.ts";
import { type Answer, type Ctx, get } from "../ctx.ts";
import { type Html, html } from "../html.ts";
import { card, empty, pageHead, pager, table } from "../parts/blocks.ts";
import { input, select } from "../parts/forms.ts";
import { nameText, runLink } from "../parts/ids.ts";
import { mark, plural } from "../parts/marks.ts";
import { ago } from "../parts/time.ts";
import { openApprovals } from "./approval-data.ts";

const FIELDS = ["q", "actor", "tool", "tenant", "mode", "status", "since", "attention", "cursor"] as const;
const SINCE = [
  ["", "any time"],
  ["1h", "last hour"],
  ["1d", "last day"],
  ["7d", "last week"],
  ["30d", "last 30 days"],
] as const;

export const runsRoutes = [get("/runs", runs)];

async function runs(ctx: Ctx): Promise<Answer> {
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
  const body = html`${pageHead("Runs", "What agents did, one run at a time.", attentionToggle(query))}
${filters(query)}
${card(
  {
    title: query["attention"] === "1" ? "Needing attention" : filtered ? "Found" : "Newest first",
    id: "runs",
    live: true,
  },
  found.runs.length === 0 ? noRuns(filtered) : runsTable(found.runs, now, waiting),
  pager("/console/runs", query, found.next_cursor),
)}`;
  return { page: { title: "Runs", nav: "runs", body, live: `/console/runs?${new URLSearchParams(query)}` } };
}

/** The runs with a request that is not decided yet. */
export async function waitingRuns(ctx: Ctx): Promise<ReadonlySet<string>> {
  return new Set((await openApprovals(ctx)).map(({ run_id }) => run_id));
}

export function runsTable(runs: readonly FoundRun[], now: number, waiting: ReadonlySet<string>): Html {
  return table(
    "Runs",
    ["Run", "Actor", "Mode", "Steps", "State", "Opened"],
    runs.map((run) => [
      html`${runLink(run.run_id)}${run.reason ? html`<span class="part run-reason">${run.reason}</span>` : null}`,
      html`${nameText(run.actor)}${run.tenant === null ? "" : html` <span class="soft">${run.tenant}</span>`}`,
      run.mode === "enforce" ? html`<span class="soft">enforce</span>` : mark("info", run.mode),
      String(run.steps),
      runState(run, waiting.has(run.run_id)),
      ago(run.created_ms, now),
    ]),
    "runs",
  );
}

function runState(run: FoundRun, waits: boolean): Html {
  if (run.attention) return mark("warn", "needs attention");
  if (waits) return mark("info", "waits for approval");
  if (run.unresolved > 0) return mark("info", `${plural(run.unresolved, "step")} open`);
  return html`<span class="soft">${run.state}</span>`;
}

function attentionToggle(query: Record<string, string>): Html {
  const { attention, cursor: _, ...rest } = query;
  const on = attention === "1";
  const next = new URLSearchParams(on ? rest : { ...rest, attention: "1" });
  return html`<a class="button${on ? " on" : ""}" href="/console/runs?${next.toString()}">${on ? "Show all runs" : "Needing attention"}</a>`;
}

function filters(query: Record<string, string>): Html {
  const value = (name: string) => query[name] ?? "";
  return html`<form method="get" action="/console/runs" class="filters" role="search">
${input({ label: "Search", name: "q", type: "search", value: value("q"), placeholder: "run, actor, tenant or reason", class: "wide" })}
${input({ label: "Actor", name: "actor", value: value("actor") })}
${input({ label: "Tool", name: "tool", value: value("tool") })}
${select({ label: "Step status", name: "status", value: value("status"), choices: [["", "any"], ...STEP_STATUSES.map((status) => [status, status.replaceAll("_", " ")] as const)] })}
${select({ label: "Mode", name: "mode", value: value("mode"), choices: [["", "any"], ...MODES.map((mode) => [mode, mode] as const)] })}
${select({ label: "Opened", name: "since", value: value("since"), choices: SINCE })}
${query["attention"] === "1" ? html`<input type="hidden" name="attention" value="1">` : null}<button type="submit" class="primary">Search</button></form>`;
}

function noRuns(filtered: boolean): Html {
  return filtered
    ? empty(
        "No run fits",
        html`<p>Take a filter away, or look further back. A run that retention deleted is found on the <a href="/console/evidence#ledger">ledger</a> only.</p>`,
      )
    : empty(
        "No agent has opened a run yet",
        html`<p>An agent opens one with <code>POST /v1/runs</code> and the permissions that it will need; every call it makes then stands here.</p>`,
      );
}
