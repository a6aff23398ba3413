/** Your latest decisions on the Approvals page, each with the effect that it had: the call, the offer, or neither. */
import type { ApprovalView } from "../../../govern/approvals/approval.ts";
import type { StepDoc } from "../../../govern/runs/run.ts";
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import { listApprovals } from "../../../operations/approvals/approvals.ts";
import { findApproval, latestSteps } from "../../../operations/documents.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import type { PageContext } from "../../page-context.ts";
import { cardBlock } from "../../parts/blocks.ts";
import { runLink, runPath } from "../../parts/ids.ts";
import { approvalMark, markLabel, stepMark } from "../../parts/marks.ts";
import { formatAgo } from "../../parts/time.ts";

const RECENT_MS = 60 * 60 * 1_000;
const MAX_SHOWN = 3;
/** The call that an approval allowed is among the newest steps of its run. */
const STEPS_READ = 100;

/** Always in the page, so that a decision made in another window appears in it. */
export async function latestDecisions(ctx: PageContext): Promise<HtmlFragment> {
  const decided = await decidedLately(ctx);
  const lines: HtmlFragment[] = [];
  for (const approval of decided) lines.push(await decisionLine(ctx, approval));
  return safeHtml`<div id="decided-lately" data-live>${
    lines.length === 0
      ? emptyHtml
      : cardBlock({ title: "Your latest decisions" }, safeHtml`<ul class="items">${lines}</ul>`)
  }</div>`;
}

async function decidedLately(ctx: PageContext): Promise<ApprovalView[]> {
  const since = ctx.app.core.env.now() - RECENT_MS;
  const lists = await Promise.all(
    (["approved", "consumed", "denied"] as const).map((status) =>
      ctx.call(listApprovals, { status, limit: SERVICE_LIMITS.page_max }),
    ),
  );
  const latest = lists
    .flatMap(({ approvals }) => approvals)
    .filter(({ decided_by, decided_ms }) => decided_by === ctx.principal.name && (decided_ms ?? 0) > since)
    .sort((a, b) => b.decided_ms! - a.decided_ms!)
    .slice(0, 2 * MAX_SHOWN);
  const offers = await Promise.all(latest.map(async (one) => offerOf(ctx, one)));
  return latest.filter(({ id }) => !offers.includes(id)).slice(0, MAX_SHOWN);
}

/** Id of the approval that a denial offered. The denial's line tells what became of it. */
async function offerOf(ctx: PageContext, { id, status }: ApprovalView): Promise<string | undefined> {
  return status === "denied" ? (await findApproval(ctx.app, id))?.internal.offer : undefined;
}

async function decisionLine(ctx: PageContext, approval: ApprovalView): Promise<HtmlFragment> {
  const { id, tool, run_id, decided_ms, status } = approval;
  return safeHtml`<li><span class="item"><span class="item-main">${approvalMark(status === "consumed" ? "approved" : status)} <a href="/console/approvals/${id}"><code>${tool}</code></a> in ${runLink(run_id)}</span><span class="item-side">${formatAgo(decided_ms!, ctx.app.core.env.now())}</span><span class="effect">${await effectOf(ctx, approval)}</span></span></li>`;
}

async function effectOf(ctx: PageContext, approval: ApprovalView): Promise<HtmlFragment> {
  if (approval.kind === "compensation") return safeHtml`A rollback of the run uses this decision.`;
  if (approval.status !== "denied") return callOf(ctx, approval, "The agent has not made the call yet.");
  const offered = await offerOf(ctx, approval);
  const offer = offered === undefined ? undefined : await findApproval(ctx.app, offered);
  return offer === undefined
    ? safeHtml`The call is not made. The agent can read your note.`
    : callOf(ctx, offer, "The agent has not used your offer yet.");
}

/** The step that used the approval, with its status. */
async function callOf(ctx: PageContext, approval: ApprovalView, unused: string): Promise<HtmlFragment> {
  const { run_id, tool, args_hash, requested_ms } = approval;
  const steps = await latestSteps(ctx.app, run_id, STEPS_READ);
  const isCall = (step: StepDoc): boolean =>
    step.tool === tool && step.args_hash === args_hash && step.intended_ms >= requested_ms;
  const step = steps.find(isCall);
  const isUsed = approval.status === "consumed";
  if (step === undefined)
    return isUsed ? safeHtml`${markLabel("good", "used")} The agent used it.` : safeHtml`${unused}`;
  // If the policy allows the offered arguments, the approval stays unused.
  return safeHtml`The agent made the call: <a href="${runPath(run_id)}#step-${step.step}">step ${step.step}</a> ${stepMark(step.status)}${isUsed ? "" : ", which needed no approval"}`;
}
