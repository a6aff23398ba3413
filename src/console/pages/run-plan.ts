/** What a rollback of the run would do and what it could not, the button that starts it, and how it goes. */
import { startRollback } from "../../app/operations/rollback.ts";
import type { Json } from "../../kernel/json.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { asText, diffOf, plainText } from "../../model/card/changes.ts";
import {
  type CompensateAction,
  hasConflict,
  hasFailed,
  isUnread,
  type PlanAction,
  planVerdict,
  type RollbackPlan,
} from "../../rollback/plan.ts";
import type { RollbackReport } from "../../rollback/report.ts";
import type { Ctx } from "../ctx.ts";
import { type Html, html, nothing, type Part } from "../html.ts";
import { bullets, card, command, factList, notice } from "../parts/blocks.ts";
import { diffBlock } from "../parts/diff.ts";
import { folded } from "../parts/fold.ts";
import { button, checkbox, disclosed, form, input } from "../parts/forms.ts";
import { copyButton } from "../parts/ids.ts";
import { mark, planMark, plural, proofMark, type Tone } from "../parts/marks.ts";
import { when } from "../parts/time.ts";
import type { JobView, RunPageData } from "./run-data.ts";

export function planCard(ctx: Ctx, { run_id, plan, job }: RunPageData): Html {
  if (plan === null) return nothing;
  return card(
    { title: "Rollback plan", id: "rollback", live: true, aside: outlookMark(plan) },
    job === null ? nothing : jobBlock(job),
    plan.actions.length === 0
      ? html`<p class="calm">Nothing stands: there is nothing to undo.</p>`
      : html`${honest(plan)}${actionList(ctx, run_id, plan)}${job?.state === "running" ? nothing : startForm(ctx, run_id, plan)}`,
  );
}

/** Undos that the page draws; all of them are in the run's report. */
const MOST_UNDOS = 300;

function actionList(ctx: Ctx, run_id: string, { actions }: RollbackPlan): Html {
  const groups = folded(actions.slice(0, MOST_UNDOS), sameUndo);
  const left = actions.length - MOST_UNDOS;
  return html`<ol class="plan">${groups.map((group) => actionGroup(ctx, run_id, group))}</ol>${
    left > 0
      ? html`<p class="soft">${plural(left, "more undo", "more undos")}: see the <a href="/console/runs/${encodeURIComponent(run_id)}/report">report</a>.</p>`
      : nothing
  }`;
}

function outlookMark(plan: RollbackPlan): Html {
  if (plan.actions.length === 0) return mark("quiet", "nothing stands");
  const { ok, words } = planVerdict(plan);
  return mark(ok ? "good" : "bad", words);
}

/** Says first what will not come back. */
function honest({ actions }: RollbackPlan): Html {
  const of = (...kinds: PlanAction["kind"][]) => actions.filter(({ kind }) => kinds.includes(kind));
  const gone = of("unrecoverable");
  const unknown = of("unresolved");
  const held = of("defer");
  const failed = actions.filter(hasFailed);
  const residue = actions.flatMap((action) =>
    action.kind === "compensate" ? action.residue.map((what) => ({ ...action, what })) : [],
  );
  const lines: Part[] = [];
  const changed = actions.filter(hasConflict);
  const unread = actions.filter(isUnread);
  if (changed.length > 0)
    lines.push(
      html`<b>Changed since:</b> ${steps(changed)}. What is there now is not what the call left, so it is left alone.`,
    );
  if (unread.length > 0)
    lines.push(
      html`<b>Not looked at:</b> ${steps(unread)}. What is there now could not be read here; the undo reads it first, and leaves alone what was changed since.`,
    );
  if (failed.length > 0)
    lines.push(html`<b>Was tried and failed:</b> ${steps(failed)}. It still stands, and is tried again.`);
  if (gone.length > 0) lines.push(html`<b>Cannot be undone:</b> ${steps(gone)}.`);
  if (unknown.length > 0)
    lines.push(
      html`<b>Outcome unknown:</b> ${steps(unknown)}. Resolve ${unknown.length === 1 ? "it" : "them"} first; the service does not guess.`,
    );
  if (held.length > 0)
    lines.push(html`<b>Has to wait:</b> ${steps(held)}, because what depends on it still stands.`);
  const told = lines.length === 0 ? nothing : notice("warn", bullets(lines));
  const stays =
    residue.length === 0
      ? nothing
      : html`<p class="soft">Even a complete rollback leaves:</p>${bullets(
          residue.map(({ what, step }) => html`${what} <span class="soft">(step ${step})</span>`),
          "residue",
        )}`;
  return html`${told}${stays}`;
}

const steps = (actions: readonly PlanAction[]): string =>
  actions.map(({ step, tool }) => `step ${step} (${tool})`).join(", ");

/** What differs in a way that a person has to look at stands by itself. */
const sameUndo = (a: PlanAction, b: PlanAction): boolean =>
  a.tool === b.tool && a.kind === b.kind && ![a, b].some((one) => hasConflict(one) || hasFailed(one));

function actionGroup(ctx: Ctx, run_id: string, group: readonly PlanAction[]): Html {
  const items = group.map((action) => actionItem(ctx, run_id, action));
  const [first] = group as [PlanAction];
  if (group.length === 1) return html`${items}`;
  return html`<li class="plan-step"><a class="step-number" href="#step-${first.step}">${first.step}</a><span class="plan-tool"><code>${first.tool}</code> ${mark("quiet", `${group.length} times`)}</span>${planMark(first.kind)}<details class="plan-call"><summary>Steps ${group.map(({ step }) => step).join(", ")}, one by one</summary><ol class="plan">${items}</ol></details></li>`;
}

function actionItem(ctx: Ctx, run_id: string, action: PlanAction): Html {
  const more: Part[] = [];
  if (action.kind === "compensate") {
    more.push(html`<code>${action.compensation_tool}</code>`);
    more.push(action.compensation_kind === "inverse" ? "restores the exact state" : "makes amends");
    more.push(action.verified ? mark("good", "read back") : mark("quiet", "not read back"));
    if (action.needs_approval) more.push(mark("warn", "needs approval"));
    if (action.proof !== undefined) more.push(proofMark(action.proof));
    if (action.closes_ms !== undefined) more.push(html`can be undone until ${when(action.closes_ms)}`);
    if (hasConflict(action)) more.push(mark("bad", "conflict"));
    if (hasFailed(action)) more.push(mark("bad", "failed before"), action.last_error);
  }
  if (action.kind === "unrecoverable" && action.closed)
    more.push(html`${mark("bad", "closed")} could be undone until ${when(action.closes_ms!)}`);
  if (action.kind === "defer") more.push(html`behind step ${action.blocked_by.join(", ")}`);
  return html`<li class="plan-step"><a class="step-number" href="#step-${action.step}">${action.step}</a><span class="plan-tool"><code>${action.tool}</code></span>${hasConflict(action) ? mark("warn", "is left alone") : planMark(action.kind)}<span class="plan-how">${more.map((part) => html`${part} `)}</span>${
    action.kind === "compensate"
      ? html`<details class="plan-call"><summary>The call</summary><pre tabindex="0" aria-label="Arguments of the undo">${JSON.stringify(action.args, null, 2)}</pre><p class="soft">idempotency key <code>${action.idempotency_key}</code>${copyButton(action.idempotency_key, "the idempotency key")}</p></details>${stateBlock(ctx, run_id, action)}`
      : null
  }</li>`;
}

function stateColumn(name: string, value: Json | undefined): Html {
  return html`<div><p class="soft">${name}</p><pre tabindex="0" aria-label="${name}">${
    value === undefined ? "(not read)" : asText(plainText(value))
  }</pre></div>`;
}

/** What was there before the call, what is there now, and what would be there; where they clash, what would be lost. */
function stateBlock(ctx: Ctx, run_id: string, action: CompensateAction): Html {
  if (action.was === undefined) return nothing;
  const sides = html`<div class="states">${stateColumn("was", action.was)}${stateColumn("is", action.is)}${stateColumn("would be", action.would_be)}</div>`;
  const three = html`<details class="plan-call"><summary>Was, is, would be</summary>${sides}</details>`;
  if (!hasConflict(action)) return three;
  if (action.is === undefined || action.would_be === undefined)
    return html`<div class="conflict">${sides}${overwriteForm(ctx, run_id, action)}</div>`;
  const lost = diffOf(plainText(action.is), plainText(action.would_be));
  const changes =
    lost === null
      ? sides
      : html`<p class="soft">Overwriting would change</p>${diffBlock("What overwriting would change", lost.lines)}${three}`;
  return html`<div class="conflict">${changes}${overwriteForm(ctx, run_id, action)}${beforeRunBlock(ctx, run_id, action)}</div>`;
}

/** Where the run changed the resource several times: the state before all of it, and the form that restores that. */
function beforeRunBlock(ctx: Ctx, run_id: string, action: CompensateAction): Html {
  const { before_run, is } = action;
  if (before_run === undefined || is === undefined) return nothing;
  const { steps: covered, would_be } = before_run;
  const drawn = diffOf(plainText(is), plainText(would_be));
  const change =
    drawn === null
      ? nothing
      : diffBlock("What restoring the state before this run would change", drawn.lines);
  return html`<div class="before-run"><p class="soft">This run changed it in steps ${covered.join(", ")}. Restoring what was there before this run would change</p>${change}<details class="plan-call"><summary>Was before this run, is now, would be</summary><div class="states">${stateColumn("was before this run", would_be)}${stateColumn("is now", is)}${stateColumn("would be", would_be)}</div></details>${restoreForm(ctx, run_id, action, covered)}</div>`;
}

function restoreForm(
  ctx: Ctx,
  run_id: string,
  { step, current_hash }: CompensateAction,
  covered: readonly number[],
): Html {
  if (current_hash === undefined || ctx.app.jobTools === null || !ctx.may(startRollback)) return nothing;
  return form(
    ctx,
    {
      action: `/console/runs/${encodeURIComponent(run_id)}/rollback`,
      class: "form overwrite-form",
      confirm: `Roll back and restore what was there before this run, for steps ${covered.join(", ")}. What was written since is lost.`,
      verb: "Restore",
    },
    html`<input type="hidden" name="overwrite" value="${String(step)}"><input type="hidden" name="current_hash" value="${current_hash}"><input type="hidden" name="to" value="before_run">`,
    input({ label: "Why it is restored", name: "reason", required: true }),
    button("Restore what was there before this run", "danger"),
  );
}

function overwriteForm(ctx: Ctx, run_id: string, { step, current_hash }: CompensateAction): Html {
  if (current_hash === undefined || ctx.app.jobTools === null || !ctx.may(startRollback)) return nothing;
  return form(
    ctx,
    {
      action: `/console/runs/${encodeURIComponent(run_id)}/rollback`,
      class: "form overwrite-form",
      confirm: `Roll back and overwrite what is there now for step ${step}. What was written since is lost.`,
      verb: "Overwrite",
    },
    html`<input type="hidden" name="overwrite" value="${String(step)}"><input type="hidden" name="current_hash" value="${current_hash}">`,
    input({ label: "Why it is overwritten", name: "reason", required: true }),
    button("Overwrite and roll back", "danger"),
  );
}

/** What a rollback undoes as things stand; what was changed since is left alone. */
function undoneBy({ actions }: RollbackPlan): CompensateAction[] {
  return actions.filter(
    (action): action is CompensateAction => action.kind === "compensate" && !hasConflict(action),
  );
}

function startForm(ctx: Ctx, run_id: string, plan: RollbackPlan): Html {
  const isUndoable = plan.actions.some(({ kind }) => kind === "compensate");
  if (!isUndoable || !ctx.may(startRollback)) return nothing;
  if (ctx.app.jobTools === null) {
    return html`<p class="soft">This server has no compensator (<code>SVC_COMPENSATOR_CMD</code>), so it cannot undo by itself. From a shell:</p>${command(`svc rollback ${run_id} --compensator-cmd ./compensate`)}`;
  }
  const undone = undoneBy(plan);
  const asking = undone.filter(({ needs_approval }) => needs_approval).length;
  return form(
    ctx,
    {
      action: `/console/runs/${encodeURIComponent(run_id)}/rollback`,
      class: "form rollback-form",
      confirm:
        undone.length === 0
          ? "Look at this run once more, and undo what is then as its calls left it."
          : `Undo ${plural(undone.length, "step")} of this run now, newest first.`,
      verb: "Roll back",
      about: whatHappens(plan),
    },
    disclosed(
      "More",
      html`<div>${input({ label: "Tries for each step", name: "retries", type: "number", value: String(LIMITS.rollback_retries.default), hint: "1 to 10" })}</div>`,
    ),
    asking === 0
      ? nothing
      : checkbox(
          "approve_compensations",
          `Approve ${plural(asking, "undo that needs", "undos that need")} an approval`,
        ),
    button("Roll back", "danger"),
  );
}

/** What a press of the button does, what it leaves waiting, and what it cannot do. */
function whatHappens(plan: RollbackPlan): Html {
  const { actions } = plan;
  const undone = undoneBy(plan);
  const waits = undone.filter(({ needs_approval }) => needs_approval);
  const now = undone.filter(({ needs_approval }) => !needs_approval);
  const of = (kind: PlanAction["kind"]) => actions.filter((action) => action.kind === kind);
  const rows: readonly (readonly [string, readonly PlanAction[]])[] = [
    ["Undone now, newest first", now],
    ["Waits for an approval, unless you give it here", waits],
    ["Waits for what builds on it", of("defer")],
    ["Left alone, because it was changed since", actions.filter(hasConflict)],
    ["Stays unknown until somebody says how it ended", of("unresolved")],
    ["Cannot be undone", [...of("unrecoverable"), ...of("unmanifested")]],
  ];
  const stays = undone.flatMap(({ residue }) => residue);
  return bullets([
    ...rows.flatMap(([label, list]) => (list.length === 0 ? [] : [html`<b>${label}:</b> ${steps(list)}.`])),
    ...(stays.length === 0 ? [] : [html`<b>Stays even so:</b> ${[...new Set(stays)].join("; ")}.`]),
  ]);
}

const STATES: Record<JobView["state"], [Tone, string]> = {
  running: ["info", "running"],
  done: ["good", "done"],
  failed: ["bad", "failed"],
};

function jobBlock(job: JobView): Html {
  const [tone, word] =
    job.state === "done" && job.report?.complete === false
      ? (["warn", "done, not complete"] as const)
      : STATES[job.state];
  return html`<div class="job">${factList([
    ["State", mark(tone, word)],
    ["By", job.by],
    ["Started", when(job.started_ms)],
    job.finished_ms === null ? null : ["Ended", when(job.finished_ms)],
    job.current_step === null ? null : ["Undoing now", `step ${job.current_step}`],
  ])}${job.state === "running" ? html`<p class="working" role="status">Rolling back${job.current_step === null ? "" : `: step ${job.current_step}`}. Each step appears here as it is done.</p>` : nothing}${
    job.error === null ? null : notice("bad", html`<p>${job.error}</p>`)
  }${job.report === null ? nothing : reportBlock(job.report)}</div>`;
}

const REPORT_ROWS: readonly (readonly [keyof RollbackReport, string, Tone])[] = [
  ["compensated", "undone", "good"],
  ["skipped", "nothing to undo", "quiet"],
  ["failed", "undo failed", "bad"],
  ["unrecoverable", "cannot be undone", "bad"],
  ["unresolved", "outcome unknown", "warn"],
  ["unmanifested", "no manifest", "warn"],
  ["deferred", "had to wait", "warn"],
  ["awaiting_approval", "awaits approval", "warn"],
  ["unverified", "undone, not read back", "warn"],
];

function reportBlock(report: RollbackReport): Html {
  const rows = REPORT_ROWS.flatMap(([key, label, tone]) => {
    const list = report[key];
    if (!Array.isArray(list) || list.length === 0) return [];
    return [html`${mark(tone, label)} ${byReason(list)}`];
  });
  return rows.length === 0 ? nothing : bullets(rows, "report");
}

type ReportItem = number | { step: number; error: string } | { step: number; blocked_by: readonly number[] };

/** Each reason once, behind the steps that it is about. */
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
  return "error" in item ? `: ${item.error}` : ` behind ${item.blocked_by.join(", ")}`;
}
