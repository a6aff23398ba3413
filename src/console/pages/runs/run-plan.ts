/** Rollback card of a run's page: the plan, the form that starts the rollback, and its progress. */

import { nextEventLoopTurn } from "../../../child-process/event-loop-slices.ts";
import { asText, buildDiff, plainText } from "../../../govern/cards/changes.ts";
import { undoKindText } from "../../../govern/cards/undo-summary.ts";
import type { JsonValue } from "../../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import { startRollback } from "../../../operations/rollback/rollback.ts";
import { filesAsText } from "../../../rollback/plan/file-states.ts";
import {
  type CompensateAction,
  hasConflict,
  hasFailed,
  isUnread,
  type PlanAction,
  planVerdict,
  type RollbackPlan,
} from "../../../rollback/plan/plan.ts";
import { emptyHtml, type HtmlFragment, safeHtml, type TemplateValue } from "../../html.ts";
import type { PageContext } from "../../page-context.ts";
import { bulletList, cardBlock, commandBlock, noticeBox } from "../../parts/blocks.ts";
import { diffBlock } from "../../parts/diff.ts";
import { checkboxField, foldedForm, formElement, inputField, submitButton } from "../../parts/forms.ts";
import { groupEqualNeighbours } from "../../parts/group-equal.ts";
import { copyButton, runPath } from "../../parts/ids.ts";
import { formatCountOf, markLabel, planMark, proofMark } from "../../parts/marks.ts";
import { formatTime } from "../../parts/time.ts";
import { jobBlock, undoneSince } from "./rollback-job.ts";
import type { RunPageData } from "./run-data.ts";

export async function planCard(
  ctx: PageContext,
  { run_id, run, plan, job }: RunPageData,
): Promise<HtmlFragment> {
  if (plan === null) return emptyHtml;
  return cardBlock(
    { title: "Rollback plan", id: "rollback", live: true, aside: outlookMark(plan) },
    job === null
      ? emptyHtml
      : safeHtml`${jobBlock(job, plan.actions.filter(({ kind }) => kind === "compensate").length)}${undoneSince(job, run)}`,
    plan.actions.length === 0
      ? safeHtml`<p class="calm">There is nothing to undo${run?.children === undefined ? "" : " in this run itself"}.</p>${run?.children === undefined || job?.state === "running" ? emptyHtml : startForm(ctx, run_id, plan, run.children.length)}`
      : await planParts(ctx, run_id, plan, job?.state === "running" ? null : (run?.children?.length ?? 0)),
  );
}

/** `children` is null while a rollback is running. Other requests get a turn between the parts of a long plan. */
async function planParts(
  ctx: PageContext,
  run_id: string,
  plan: RollbackPlan,
  children: number | null,
): Promise<HtmlFragment> {
  const problems = honest(plan);
  await nextEventLoopTurn();
  const list = actionList(ctx, run_id, plan);
  await nextEventLoopTurn();
  const form = children === null ? emptyHtml : startForm(ctx, run_id, plan, children);
  return safeHtml`${problems}${list}${dependentsLink(run_id)}${form}`;
}

/** Leads to the calls of other runs that were built on this one, which cost a search. */
const dependentsLink = (run_id: string): HtmlFragment =>
  safeHtml`<p><a href="${runPath(run_id)}/dependents">What other runs built on this</a></p>`;

/** Maximum number of undos on the page. The run's report lists all of them. */
const MAX_UNDOS = 300;

function actionList(ctx: PageContext, run_id: string, { actions }: RollbackPlan): HtmlFragment {
  const groups = groupEqualNeighbours(actions.slice(0, MAX_UNDOS), sameUndo);
  const left = actions.length - MAX_UNDOS;
  return safeHtml`<ol class="plan">${groups.map((group) => actionGroup(ctx, run_id, group))}</ol>${
    left > 0
      ? safeHtml`<p class="soft">${formatCountOf(left, "more undo", "more undos")}: see the <a href="/console/runs/${encodeURIComponent(run_id)}/report">report</a>.</p>`
      : emptyHtml
  }`;
}

function outlookMark(plan: RollbackPlan): HtmlFragment {
  if (plan.actions.every(({ kind }) => kind === "skip")) return markLabel("quiet", "nothing to undo");
  const { ok, words } = planVerdict(plan);
  return markLabel(ok ? "good" : "bad", words);
}

/** Lists problems first: conflicts, failed attempts, and steps that cannot be undone. */
function honest({ actions }: RollbackPlan): HtmlFragment {
  const of = (...kinds: PlanAction["kind"][]) => actions.filter(({ kind }) => kinds.includes(kind));
  const gone = of("unrecoverable");
  const unknown = of("unresolved");
  const held = of("defer");
  const failed = actions.filter(hasFailed);
  const residue = actions.flatMap((action) =>
    action.kind === "compensate" ? action.residue.map((what) => ({ ...action, what })) : [],
  );
  const lines: TemplateValue[] = [];
  const changed = actions.filter(hasConflict);
  const unread = actions.filter(isUnread);
  if (changed.length > 0)
    lines.push(
      safeHtml`<b>Changed since:</b> ${steps(changed)}. The current state differs from the state after the call, so a rollback leaves it alone.`,
    );
  if (unread.length > 0)
    lines.push(
      safeHtml`<b>Not checked:</b> ${steps(unread)}. The current state could not be read here. The undo reads it first and leaves alone anything that has changed since.`,
    );
  if (failed.length > 0)
    lines.push(safeHtml`<b>Failed before:</b> ${steps(failed)}. Not undone yet; a rollback tries again.`);
  if (gone.length > 0) lines.push(safeHtml`<b>Cannot be undone:</b> ${steps(gone)}.`);
  if (unknown.length > 0)
    lines.push(
      safeHtml`<b>Outcome unknown:</b> ${steps(unknown)}. Resolve ${unknown.length === 1 ? "it" : "them"} first; the service does not guess.`,
    );
  if (held.length > 0)
    lines.push(safeHtml`<b>Has to wait:</b> ${steps(held)}, because dependent steps are not undone yet.`);
  const notes = lines.length === 0 ? emptyHtml : noticeBox("warn", bulletList(lines));
  const stays =
    residue.length === 0
      ? emptyHtml
      : safeHtml`<p class="soft">Even a complete rollback leaves:</p>${bulletList(
          residue.map(({ what, step }) => safeHtml`${what} <span class="soft">(step ${step})</span>`),
          "residue",
        )}`;
  return safeHtml`${notes}${stays}`;
}

const steps = (actions: readonly PlanAction[]): string =>
  actions.map(({ step, tool, line }) => `step ${step} (${line ?? tool})`).join(", ");

/** Equal undos are grouped. An undo with a conflict or a failed attempt is listed on its own line. */
const sameUndo = (a: PlanAction, b: PlanAction): boolean =>
  a.tool === b.tool &&
  a.line === b.line &&
  a.kind === b.kind &&
  ![a, b].some((one) => hasConflict(one) || hasFailed(one));

function actionGroup(ctx: PageContext, run_id: string, group: readonly PlanAction[]): HtmlFragment {
  const items = group.map((action) => actionItem(ctx, run_id, action));
  const [first] = group as [PlanAction];
  if (group.length === 1) return safeHtml`${items}`;
  return safeHtml`<li class="plan-step"><a class="step-number" href="#step-${first.step}">${first.step}</a><span class="plan-tool">${first.line ?? safeHtml`<code>${first.tool}</code>`} ${markLabel("quiet", `${group.length} times`)}</span>${planMark(first.kind)}<details class="plan-call"><summary>Steps ${group.map(({ step }) => step).join(", ")}, one by one</summary><ol class="plan">${items}</ol></details></li>`;
}

function actionItem(ctx: PageContext, run_id: string, action: PlanAction): HtmlFragment {
  const more: TemplateValue[] = [];
  if (action.kind === "compensate") {
    more.push(safeHtml`<code>${action.compensation_tool}</code>`);
    more.push(undoKindText(action.compensation_kind));
    more.push(action.verified ? markLabel("good", "read back") : markLabel("quiet", "not read back"));
    if (action.needs_approval) more.push(markLabel("warn", "needs approval"));
    if (action.proof !== undefined) more.push(proofMark(action.proof));
    if (action.closes_ms !== undefined)
      more.push(safeHtml`can be undone until ${formatTime(action.closes_ms)}`);
    if (hasConflict(action)) more.push(markLabel("bad", "conflict"));
    if (hasFailed(action)) more.push(markLabel("bad", "failed before"), action.last_error);
  }
  if (action.kind === "unrecoverable" && action.closed)
    more.push(
      safeHtml`${markLabel("bad", "expired")} could be undone until ${formatTime(action.closes_ms!)}`,
    );
  if (action.kind === "defer") more.push(safeHtml`after step ${action.blocked_by.join(", ")}`);
  return safeHtml`<li class="plan-step"><a class="step-number" href="#step-${action.step}">${action.step}</a><span class="plan-tool">${action.line ?? safeHtml`<code>${action.tool}</code>`}</span>${hasConflict(action) ? markLabel("warn", "left alone") : planMark(action.kind)}<span class="plan-how">${more.map((part) => safeHtml`${part} `)}</span>${
    action.kind === "compensate"
      ? safeHtml`<details class="plan-call"><summary>The call</summary><pre tabindex="0" aria-label="Arguments of the undo">${JSON.stringify(action.args, null, 2)}</pre><p class="soft">idempotency key <code>${action.idempotency_key}</code>${copyButton(action.idempotency_key, "the idempotency key")}</p></details>${stateBlock(ctx, run_id, action)}`
      : null
  }</li>`;
}

/** States of files are shown as their text. */
const stateText = (value: JsonValue): JsonValue => filesAsText(value) ?? plainText(value);

function stateColumn(name: string, value: JsonValue | undefined): HtmlFragment {
  return safeHtml`<div><p class="soft">${name}</p><pre tabindex="0" aria-label="${name}">${
    value === undefined ? "(not read)" : asText(stateText(value))
  }</pre></div>`;
}

/** State before the call, now, and after the undo. For a conflict, shows the changes that overwriting would lose. */
function stateBlock(ctx: PageContext, run_id: string, action: CompensateAction): HtmlFragment {
  if (action.was === undefined) return emptyHtml;
  const sides = safeHtml`<div class="states">${stateColumn("before", action.was)}${stateColumn("now", action.is)}${stateColumn("after the undo", action.would_be)}</div>`;
  const three = safeHtml`<details class="plan-call"><summary>Before, now and after the undo</summary>${sides}</details>`;
  if (!hasConflict(action)) return three;
  if (action.is === undefined || action.would_be === undefined)
    return safeHtml`<div class="conflict">${sides}${overwriteForm(ctx, run_id, action)}</div>`;
  const lost = buildDiff(stateText(action.is), stateText(action.would_be));
  const changes =
    lost === null
      ? sides
      : safeHtml`<p class="soft">Overwriting would change</p>${diffBlock("What overwriting would change", lost.lines)}${three}`;
  return safeHtml`<div class="conflict">${changes}${overwriteForm(ctx, run_id, action)}${beforeRunBlock(ctx, run_id, action)}</div>`;
}

/** For a resource that the run changed several times: the state before the run, and the form that restores it. */
function beforeRunBlock(ctx: PageContext, run_id: string, action: CompensateAction): HtmlFragment {
  const { before_run, is } = action;
  if (before_run === undefined || is === undefined) return emptyHtml;
  const { steps: covered, would_be } = before_run;
  const drawn = buildDiff(stateText(is), stateText(would_be));
  const change =
    drawn === null
      ? emptyHtml
      : diffBlock("What restoring the state before this run would change", drawn.lines);
  return safeHtml`<div class="before-run"><p class="soft">This run changed the resource in steps ${covered.join(", ")}. Restoring the state before this run would change</p>${change}<details class="plan-call"><summary>Before this run, now and after the restore</summary><div class="states">${stateColumn("before this run", would_be)}${stateColumn("now", is)}${stateColumn("after the restore", would_be)}</div></details>${restoreForm(ctx, run_id, action, covered)}</div>`;
}

function restoreForm(
  ctx: PageContext,
  run_id: string,
  { step, current_hash }: CompensateAction,
  covered: readonly number[],
): HtmlFragment {
  if (current_hash === undefined || ctx.app.jobTools === null || !ctx.may(startRollback)) return emptyHtml;
  return formElement(
    ctx,
    {
      action: `/console/runs/${encodeURIComponent(run_id)}/rollback`,
      class: "form overwrite-form",
      confirm: `Roll back and restore the state before this run, for steps ${covered.join(", ")}. Changes since then are lost.`,
      verb: "Restore",
    },
    safeHtml`<input type="hidden" name="overwrite" value="${String(step)}"><input type="hidden" name="current_hash" value="${current_hash}"><input type="hidden" name="to" value="before_run">`,
    inputField({ label: "Reason for the restore", name: "reason", required: true }),
    submitButton("Restore the state before this run", "danger"),
  );
}

function overwriteForm(
  ctx: PageContext,
  run_id: string,
  { step, current_hash }: CompensateAction,
): HtmlFragment {
  if (current_hash === undefined || ctx.app.jobTools === null || !ctx.may(startRollback)) return emptyHtml;
  return formElement(
    ctx,
    {
      action: `/console/runs/${encodeURIComponent(run_id)}/rollback`,
      class: "form overwrite-form",
      confirm: `Roll back and overwrite the current state for step ${step}. Changes since the call are lost.`,
      verb: "Overwrite",
    },
    safeHtml`<input type="hidden" name="overwrite" value="${String(step)}"><input type="hidden" name="current_hash" value="${current_hash}">`,
    inputField({ label: "Reason for the overwrite", name: "reason", required: true }),
    submitButton("Overwrite and roll back", "danger"),
  );
}

/** Steps that a rollback undoes now. Resources that have changed since are left alone. */
function undoneBy({ actions }: RollbackPlan): CompensateAction[] {
  return actions.filter(
    (action): action is CompensateAction => action.kind === "compensate" && !hasConflict(action),
  );
}

/** `children`: number of runs that this run opened. */
function startForm(ctx: PageContext, run_id: string, plan: RollbackPlan, children: number): HtmlFragment {
  const isUndoable = plan.actions.some(({ kind }) => kind === "compensate");
  if ((!isUndoable && children === 0) || !ctx.may(startRollback)) return emptyHtml;
  if (ctx.app.jobTools === null) {
    return safeHtml`<p class="soft">This server has no compensator (<code>SVC_COMPENSATOR_CMD</code>), so it cannot roll back on its own. Start the rollback from a shell:</p>${commandBlock(`svc rollback ${run_id} --compensator-cmd ./compensate`)}`;
  }
  const undone = undoneBy(plan);
  const asking = undone.filter(({ needs_approval }) => needs_approval).length;
  return formElement(
    ctx,
    {
      action: `/console/runs/${encodeURIComponent(run_id)}/rollback`,
      class: "form rollback-form",
      confirm:
        undone.length === 0 && children > 0
          ? "Undo the steps of this run and, if you leave them selected, of all runs below it."
          : undone.length === 0
            ? "Check this run again, and undo the steps whose state has not changed since."
            : `Undo ${formatCountOf(undone.length, "step")} of this run now, newest first.`,
      verb: "Roll back",
      about: whatHappens(plan),
    },
    foldedForm(
      "More",
      safeHtml`<div>${inputField({ label: "Attempts per step", name: "retries", type: "number", value: String(SERVICE_LIMITS.rollback_retries.default), hint: "1 to 10" })}</div>`,
    ),
    asking === 0
      ? emptyHtml
      : checkboxField(
          "approve_compensations",
          `Approve ${formatCountOf(asking, "undo that needs", "undos that need")} approval`,
        ),
    children === 0
      ? emptyHtml
      : checkboxField(
          "children",
          `Undo the ${formatCountOf(children, "child run")} and all runs below too`,
          true,
        ),
    submitButton("Roll back", "danger"),
  );
}

/** Consequences of starting the rollback: undone steps, waiting steps, and steps that cannot be undone. */
function whatHappens(plan: RollbackPlan): HtmlFragment {
  const { actions } = plan;
  const undone = undoneBy(plan);
  const waits = undone.filter(({ needs_approval }) => needs_approval);
  const now = undone.filter(({ needs_approval }) => !needs_approval);
  const of = (kind: PlanAction["kind"]) => actions.filter((action) => action.kind === kind);
  const rows: readonly (readonly [string, readonly PlanAction[]])[] = [
    ["Undone now, newest first", now],
    ["Waits for approval, unless you approve it here", waits],
    ["Waits for dependent steps", of("defer")],
    ["Left alone, because the state has changed since", actions.filter(hasConflict)],
    ["Stays unknown until someone resolves it", of("unresolved")],
    ["Cannot be undone", [...of("unrecoverable"), ...of("unmanifested")]],
  ];
  const stays = undone.flatMap(({ residue }) => residue);
  return bulletList([
    ...rows.flatMap(([label, list]) =>
      list.length === 0 ? [] : [safeHtml`<b>${label}:</b> ${steps(list)}.`],
    ),
    ...(stays.length === 0
      ? []
      : [safeHtml`<b>Side effects that remain:</b> ${[...new Set(stays)].join("; ")}.`]),
  ]);
}
