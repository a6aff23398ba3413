/** Run page: steps with their dependencies, rollback plan, approvals, and the event trail. */

import { nextEventLoopTurn } from "../../../child-process/event-loop-slices.ts";
import type { RunState } from "../../../govern/runs/run.ts";
import { invalidError } from "../../../kernel/errors.ts";
import { type JsonValue, parseJson } from "../../../kernel/json/json.ts";
import type { LedgerRecord } from "../../../ledger/record.ts";
import { bundleRun } from "../../../operations/evidence/bundles.ts";
import { runReport, runReportAsPdf } from "../../../operations/evidence/reports.ts";
import { startRollback } from "../../../operations/rollback/rollback.ts";
import { resolveOutcome as resolveOp } from "../../../operations/runs/intents-and-outcomes.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import { getRoute, type PageAnswer, type PageContext, postRoute } from "../../page-context.ts";
import { bulletList, cardBlock, emptyState, factList, noticeBox, pageHead } from "../../parts/blocks.ts";
import { containmentsOfRun, readContainments } from "../../parts/containments.ts";
import { copyButton, hashText, runLink, runPath } from "../../parts/ids.ts";
import { approvalMark, formatCountOf, markLabel, runStateMark } from "../../parts/marks.ts";
import { linkIds, trailList } from "../../parts/records.ts";
import { formatTime } from "../../parts/time.ts";
import { containLink } from "../contain.ts";
import { replayCard } from "../policy/replay.ts";
import { type RunPageData, type RunView, readRunPage, TRAIL_PAGE } from "./run-data.ts";
import { chosenIn, dependentsPage } from "./run-dependents.ts";
import { lineageCard } from "./run-lineage.ts";
import { planCard } from "./run-plan.ts";
import { stepsCard } from "./run-steps.ts";

export const runRoutes = [
  getRoute("/runs/:id", runPage),
  getRoute("/runs/:id/dependents", dependentsPage),
  postRoute("/runs/:id/steps/:n/resolve", resolveOp, resolve),
  postRoute("/runs/:id/rollback", startRollback, rollback),
];

async function runPage(ctx: PageContext): Promise<PageAnswer> {
  const found = await readRunPage(ctx);
  await nextEventLoopTurn();
  const { run_id, run } = found;
  const id = safeHtml`<span class="run-title">${run_id}</span>${copyButton(run_id, "the run's id")}`;
  const why = run?.reason ?? null;
  const remark = run === null ? "Deleted by retention; the ledger keeps its trail." : undefined;
  const head = pageHead(why ?? id, why === null ? remark : id, documents(ctx, run_id, run?.actor));
  const cards = run === null ? safeHtml`${purged()}${trailCard(found)}` : await runCards(ctx, found, run);
  const body = safeHtml`${head}
${cards}`;
  const here = new URLSearchParams(ctx.query);
  return {
    page: {
      title: `Run ${run_id}`,
      nav: "runs",
      body,
      live: `${runPath(run_id)}${here.size > 0 ? `?${here}` : ""}`,
    },
  };
}

/** A run can have thousands of steps, so other requests get a turn between its cards. */
async function runCards(ctx: PageContext, found: RunPageData, run: RunView): Promise<HtmlFragment> {
  const top = summary(run, found.state, containmentsOfRun(await readContainments(ctx), run));
  await nextEventLoopTurn();
  const done = safeHtml`${stepsCard(ctx, run, found.plan)}${refusedCard(found)}`;
  await nextEventLoopTurn();
  const plan = await planCard(ctx, found);
  await nextEventLoopTurn();
  const side = safeHtml`${plan}${approvalsCard(found)}${lineageCard(run, found.lineage)}${replayCard(ctx, run)}`;
  await nextEventLoopTurn();
  const trail = trailCard(found);
  await nextEventLoopTurn();
  return safeHtml`${top}
<div class="run-columns"><div>${done}</div><div class="run-side">${side}</div><div>${trail}</div></div>`;
}

function documents(ctx: PageContext, run_id: string, actor: string | undefined): HtmlFragment {
  const base = runPath(run_id);
  const links: (readonly [boolean, string, string])[] = [
    [ctx.has(runReport), `${base}/report`, "Report"],
    [ctx.has(runReportAsPdf), `${base}/report.pdf`, "PDF"],
    [ctx.has(bundleRun), `${base}/bundle`, "Signed bundle"],
    [true, `${base}/trail`, "Trail (JSON lines)"],
  ];
  return safeHtml`<div class="links">${links.map(([on, to, label]) => (on ? safeHtml`<a class="button" href="${to}">${label}</a>` : emptyHtml))}${actor === undefined ? emptyHtml : containLink(ctx, actor)}</div>`;
}

function summary(run: RunView, state: RunState | null, contained: HtmlFragment | null): HtmlFragment {
  return safeHtml`<div id="run" data-live>${factList(
    [
      state === null ? null : ["State", runStateMark(state)],
      ["Actor", safeHtml`<a href="/console/actors/${encodeURIComponent(run.actor)}">${run.actor}</a>`],
      run.acting === undefined ? null : ["Acting for them", run.acting.join(", ")],
      ["Mode", run.mode === "enforce" ? "enforce" : markLabel("info", run.mode)],
      run.tenant === null ? null : ["Tenant", run.tenant],
      run.environment === null ? null : ["Environment", run.environment],
      ["Opened", formatTime(run.created_ms)],
      run.parent === undefined ? null : ["Parent run", runLink(run.parent)],
      run.children === undefined ? null : ["Child runs", childLinks(run.children)],
      [
        "Steps",
        safeHtml`${run.steps.length}${run.unresolved.length === 0 ? null : safeHtml` ${markLabel("warn", `${formatCountOf(run.unresolved.length, "outcome")} unknown`)}`}`,
      ],
      run.given === undefined ? null : ["Given", givenWords(run.given)],
      contained === null ? null : ["Containment", contained],
      ["Scope", scopeDetails(run)],
    ],
    "bar",
  )}</div>`;
}

function childLinks(children: readonly string[]): HtmlFragment {
  return safeHtml`<details class="more"><summary>${formatCountOf(children.length, "run")}</summary>${bulletList(children.map(runLink))}</details>`;
}

/** Texts of people, by their time and length. */
function givenWords(given: NonNullable<RunView["given"]>): HtmlFragment {
  const last = given[given.length - 1]!;
  return safeHtml`${formatCountOf(given.length, "text")}, the last ${formatTime(last.at_ms)} (${formatCountOf(last.chars, "character")})`;
}

function scopeDetails({ scope: { permissions, seal } }: RunView): HtmlFragment {
  return safeHtml`<details class="more"><summary>${formatCountOf(permissions.length, "permission")}</summary><span class="chips">${permissions.map((one) => safeHtml`<code class="chip">${one}</code> `)}</span><p>Scope seal ${hashText(seal, "the scope seal")}</p></details>`;
}

/** Blocked calls of the run. Equal ones are listed once with a count, a held call with the status of its request. */
function refusedCard({ trail, approvals }: RunPageData): HtmlFragment {
  const times = new Map<string, { record: LedgerRecord; count: number }>();
  for (const { record } of trail) {
    if (record.event !== "blocked") continue;
    const same = `${record.tool}\n${record.detail}`;
    times.set(same, { record, count: (times.get(same)?.count ?? 0) + 1 });
  }
  if (times.size === 0) return emptyHtml;
  const requestOf = ({ detail }: LedgerRecord) => approvals.find(({ id }) => detail?.includes(id));
  const markOf = (record: LedgerRecord) => {
    const request = requestOf(record);
    return request === undefined ? emptyHtml : safeHtml` ${approvalMark(request.status)}`;
  };
  const rows = [...times.values()].map(
    ({ record, count }) =>
      safeHtml`<li><span class="item"><span class="item-main"><code>${record.tool ?? ""}</code>${markOf(record)}${count > 1 ? safeHtml` ${markLabel("quiet", `${count} times`)}` : emptyHtml}</span><span class="item-side">${formatTime(record.ts_ms)}</span><span class="refusal">${linkIds(record.detail ?? "")}</span></span></li>`,
  );
  return cardBlock(
    { title: "Blocked calls", id: "refused", live: true },
    safeHtml`<ul class="items">${rows}</ul>`,
  );
}

function purged(): HtmlFragment {
  return noticeBox(
    "info",
    safeHtml`<p>Retention deleted this run's working data: steps, values and approvals. The trail below still proves what happened, but you can no longer undo it from here.</p>`,
  );
}

function approvalsCard({ approvals }: RunPageData): HtmlFragment {
  if (approvals.length === 0) return emptyHtml;
  return cardBlock(
    { title: "Approvals", id: "approvals", live: true },
    safeHtml`<ul class="items">${approvals.map(
      (one) =>
        safeHtml`<li><span class="item"><span class="item-main">${approvalMark(one.status)} <a href="/console/approvals/${one.id}"><code>${one.tool}</code></a>${one.kind === "compensation" ? safeHtml` <span class="soft">undo of step ${one.step ?? ""}</span>` : null}</span><span class="refusal">${one.decided_by === null ? "Nobody decided yet." : `By ${one.decided_by}`}${one.note ? `: ${one.note}` : ""}</span></span></li>`,
    )}</ul>`,
  );
}

/** Event trail, folded by default. */
function trailCard(found: RunPageData): HtmlFragment {
  const { run_id, trail_from, trail_more } = found;
  const at = (start: number) => `${runPath(run_id)}?trail=${start}#trail`;
  const open = found.run === null || trail_from > 0;
  return cardBlock(
    {
      title: "Event trail",
      id: "trail",
      live: true,
      aside: safeHtml`<span class="soft">hashes recomputed for this page</span>`,
    },
    found.trail.length === 0
      ? emptyState("No records yet", safeHtml`<p>The first call of this run writes the first record.</p>`)
      : safeHtml`<details class="more"${open ? safeHtml` open` : emptyHtml}><summary>${formatCountOf(found.trail.length, "record")}${trail_more || trail_from > 0 ? " on this page" : ""}, with their hashes</summary>${trailList(found.trail, { runs: false })}</details>`,
    trail_from > 0 || trail_more
      ? safeHtml`<nav class="pager" aria-label="Trail">${trail_from > 0 ? safeHtml`<a class="button" href="${at(Math.max(0, trail_from - TRAIL_PAGE))}">Earlier</a>` : null}${trail_more ? safeHtml`<a class="button" href="${at(trail_from + TRAIL_PAGE)}">Later</a>` : null}</nav>`
      : emptyHtml,
  );
}

/** Parses the JSON of a field. Returns undefined if the field is empty. */
function jsonField(ctx: PageContext, name: string): JsonValue | undefined {
  const text = ctx.form.document(name).trim();
  if (text === "") return undefined;
  try {
    return parseJson(text);
  } catch {
    throw invalidError(
      `${name}: is not JSON; write a text in quotes, such as "abc", or an object, such as {"id": 7}`,
    );
  }
}

async function resolve(ctx: PageContext): Promise<PageAnswer> {
  ctx.demand(resolveOp);
  const { id, n } = ctx.params as { id: string; n: string };
  const result = jsonField(ctx, "result");
  const answer = await ctx.call(resolveOp, {
    run_id: id,
    step: Number(n),
    status: ctx.form.text("status") as "succeeded" | "failed",
    note: ctx.form.text("note"),
    ...(result === undefined ? {} : { result }),
  });
  return {
    to: `${runPath(id)}#step-${n}`,
    notice: { kind: "ok", text: `Step ${answer.step} is now ${answer.status}, as you reported.` },
  };
}

async function rollback(ctx: PageContext): Promise<PageAnswer> {
  const id = ctx.params["id"]!;
  ctx.demandConfirmed(startRollback);
  const retries = ctx.form.optional("retries");
  const overwrite = ctx.form.optional("overwrite");
  const over =
    overwrite === undefined
      ? {}
      : {
          overwrite: Number(overwrite),
          reason: ctx.form.optional("reason"),
          current_hash: ctx.form.optional("current_hash"),
          ...(ctx.form.optional("to") === "before_run" ? { to: "before_run" as const } : {}),
        };
  await ctx.call(startRollback, {
    run_id: id,
    confirm: true,
    ...over,
    ...(retries === undefined ? {} : { retries: Number(retries) }),
    approve_compensations: ctx.form.checked("approve_compensations"),
    ...(ctx.form.checked("children") ? { children: true } : {}),
    ...chosenIn(ctx),
  });
  // Show no message here: the card reports progress and keeps it current.
  return { to: `${runPath(id)}#rollback` };
}
