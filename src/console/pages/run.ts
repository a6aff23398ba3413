/** A run's page: what it did, what depends on what, how it would be undone, and the trail that proves it. */
import { bundleRun } from "../../app/operations/bundles.ts";
import { resolve as resolveOp } from "../../app/operations/journal.ts";
import { runReport, runReportAsPdf } from "../../app/operations/reports.ts";
import { startRollback } from "../../app/operations/rollback.ts";
import { invalid } from "../../kernel/errors.ts";
import { type Json, parseJson } from "../../kernel/json.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { nextTurn } from "../../process/turns.ts";
import { type Answer, type Ctx, get, post } from "../ctx.ts";
import { type Html, html, nothing } from "../html.ts";
import { card, empty, factList, notice, pageHead, table } from "../parts/blocks.ts";
import { containmentsOfRun, readContainments } from "../parts/containments.ts";
import { copyButton, hashText, runPath } from "../parts/ids.ts";
import { approvalMark, mark, plural } from "../parts/marks.ts";
import { linked, trail } from "../parts/records.ts";
import { when } from "../parts/time.ts";
import { containLink } from "./contain.ts";
import { replayCard } from "./replay.ts";
import { type RunPageData, type RunView, readRunPage, TRAIL_PAGE } from "./run-data.ts";
import { planCard } from "./run-plan.ts";
import { stepsCard } from "./run-steps.ts";

export const runRoutes = [
  get("/runs/:id", runPage),
  post("/runs/:id/steps/:n/resolve", resolveOp, resolve),
  post("/runs/:id/rollback", startRollback, rollback),
];

async function runPage(ctx: Ctx): Promise<Answer> {
  const found = await readRunPage(ctx);
  await nextTurn();
  const { run_id, run } = found;
  const id = html`<span class="run-title">${run_id}</span>${copyButton(run_id, "the run's id")}`;
  const why = run?.reason ?? null;
  const told = run === null ? "Deleted by retention; the ledger keeps its trail." : undefined;
  const body = html`${pageHead(why ?? id, why === null ? told : id, documents(ctx, run_id, run?.actor))}
${
  run === null
    ? html`${purged()}${trailCard(found)}`
    : html`${summary(run, containmentsOfRun(await readContainments(ctx), run))}
<div class="run-columns"><div>${stepsCard(ctx, run, found.plan)}${refusedCard(found)}</div><div class="run-side">${planCard(ctx, found)}${approvalsCard(found)}${replayCard(ctx, run)}</div><div>${trailCard(found)}</div></div>`
}`;
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

function documents(ctx: Ctx, run_id: string, actor: string | undefined): Html {
  const base = runPath(run_id);
  const links: (readonly [boolean, string, string])[] = [
    [ctx.has(runReport), `${base}/report`, "Report"],
    [ctx.has(runReportAsPdf), `${base}/report.pdf`, "PDF"],
    [ctx.has(bundleRun), `${base}/bundle`, "Signed bundle"],
    [true, `${base}/trail`, "Trail (JSON lines)"],
  ];
  return html`<div class="links">${links.map(([on, to, label]) => (on ? html`<a class="button" href="${to}">${label}</a>` : nothing))}${actor === undefined ? nothing : containLink(ctx, actor)}</div>`;
}

function summary(run: RunView, contained: Html | null): Html {
  return html`<div id="run" data-live>${factList(
    [
      ["Actor", run.actor],
      ["Mode", run.mode === "enforce" ? "enforce" : mark("info", run.mode)],
      run.tenant === null ? null : ["Tenant", run.tenant],
      run.environment === null ? null : ["Environment", run.environment],
      ["Opened", when(run.created_ms)],
      [
        "Steps",
        html`${run.steps.length}${run.unresolved.length === 0 ? null : html` ${mark("warn", `${plural(run.unresolved.length, "outcome")} unknown`)}`}`,
      ],
      contained === null ? null : ["Containment", contained],
      ["Scope", scopeDetails(run)],
    ],
    "bar",
  )}</div>`;
}

function scopeDetails({ scope: { permissions, seal } }: RunView): Html {
  return html`<details class="more"><summary>${plural(permissions.length, "permission")}</summary><span class="chips">${permissions.map((one) => html`<code class="chip">${one}</code> `)}</span><p>Scope seal ${hashText(seal, "the scope seal")}</p></details>`;
}

/** Calls that were not let through, equal ones told once. */
function refusedCard({ trail }: RunPageData): Html {
  const times = new Map<string, { record: LedgerRecord; count: number }>();
  for (const { record } of trail) {
    if (record.event !== "blocked") continue;
    const same = `${record.tool}\n${record.detail}`;
    times.set(same, { record, count: (times.get(same)?.count ?? 0) + 1 });
  }
  if (times.size === 0) return nothing;
  const rows = [...times.values()].map(
    ({ record, count }) =>
      html`<li><span class="item"><span class="item-main"><code>${record.tool ?? ""}</code>${count > 1 ? html` ${mark("quiet", `${count} times`)}` : nothing}</span><span class="item-side">${when(record.ts_ms)}</span><span class="refusal">${linked(record.detail ?? "")}</span></span></li>`,
  );
  return card(
    { title: "What it was not let do", id: "refused", live: true },
    html`<ul class="items">${rows}</ul>`,
  );
}

function purged(): Html {
  return notice(
    "info",
    html`<p>Retention deleted this run's working data: steps, values and approvals. What happened can still be proved by the trail below; it can no longer be undone from here.</p>`,
  );
}

function approvalsCard({ approvals }: RunPageData): Html {
  if (approvals.length === 0) return nothing;
  return card(
    { title: "Approvals", id: "approvals", live: true },
    table(
      "Approval requests of this run",
      ["Status", "Tool", "Decided by", "Note"],
      approvals.map((one) => [
        approvalMark(one.status),
        html`<a href="/console/approvals/${one.id}"><code>${one.tool}</code></a>${one.kind === "compensation" ? html` <span class="soft">undo of step ${one.step ?? ""}</span>` : null}`,
        one.decided_by ?? html`<span class="soft">nobody yet</span>`,
        one.note ?? "",
      ]),
    ),
  );
}

/** What proves it, closed until it is asked for. */
function trailCard(found: RunPageData): Html {
  const { run_id, trail_from, trail_more } = found;
  const at = (start: number) => `${runPath(run_id)}?trail=${start}#trail`;
  const open = found.run === null || trail_from > 0;
  return card(
    {
      title: "Event trail",
      id: "trail",
      live: true,
      aside: html`<span class="soft">each hash recomputed as shown</span>`,
    },
    found.trail.length === 0
      ? empty("Nothing on the ledger yet", html`<p>Opening a run writes nothing; its first call does.</p>`)
      : html`<details class="more"${open ? html` open` : nothing}><summary>${plural(found.trail.length, "record")}${trail_more || trail_from > 0 ? " on this page" : ""}, with their hashes</summary>${trail(found.trail, { runs: false })}</details>`,
    trail_from > 0 || trail_more
      ? html`<nav class="pager" aria-label="Trail">${trail_from > 0 ? html`<a class="button" href="${at(Math.max(0, trail_from - TRAIL_PAGE))}">Earlier</a>` : null}${trail_more ? html`<a class="button" href="${at(trail_from + TRAIL_PAGE)}">Later</a>` : null}</nav>`
      : nothing,
  );
}

/** JSON out of a field; undefined where it was left empty. */
function jsonField(ctx: Ctx, name: string): Json | undefined {
  const text = ctx.form.document(name).trim();
  if (text === "") return undefined;
  try {
    return parseJson(text);
  } catch {
    throw invalid(
      `${name}: is not JSON; write a text in quotes, such as "abc", or an object, such as {"id": 7}`,
    );
  }
}

async function resolve(ctx: Ctx): Promise<Answer> {
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
    notice: { kind: "ok", text: `Step ${answer.step} is ${answer.status} now, on your word.` },
  };
}

async function rollback(ctx: Ctx): Promise<Answer> {
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
  });
  // How it goes stands there, and changes; a message of its own would outlive it.
  return { to: `${runPath(id)}#rollback` };
}
