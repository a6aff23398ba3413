/** Page with the calls that other runs built on a run: the evidence for each, and the form that undoes the chosen ones. */
import { invalidError } from "../../../kernel/errors.ts";
import type { ResponseOf } from "../../../operations/pipeline/operation.ts";
import { getRollbackPlan, startRollback } from "../../../operations/rollback/rollback.ts";
import type { ChosenStep } from "../../../rollback/cascade/roll-back-with.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import type { PageAnswer, PageContext } from "../../page-context.ts";
import { bulletList, cardBlock, commandBlock, emptyState, noticeBox, pageHead } from "../../parts/blocks.ts";
import { formElement, submitButton } from "../../parts/forms.ts";
import { runLink, runPath } from "../../parts/ids.ts";
import { formatCountOf, planMark } from "../../parts/marks.ts";
import { VALUE_KIND_WORDS } from "./run-lineage.ts";

type PlanView = ResponseOf<typeof getRollbackPlan>;
type DependentView = NonNullable<PlanView["dependents"]>[number];
type ReasonView = DependentView["because"][number];

export async function dependentsPage(ctx: PageContext): Promise<PageAnswer> {
  const run_id = ctx.params["id"]!;
  const plan = await ctx.call(getRollbackPlan, { run_id, dependents: true });
  const { dependents = [] } = plan;
  const lead = safeHtml`Calls of other runs that depend on steps that a rollback of ${runLink(run_id)} undoes.`;
  const body = safeHtml`${pageHead("What other runs built on this", lead)}${
    dependents.length === 0
      ? cardBlock({ title: "Nothing" }, emptyState("No call of another run depends on it."))
      : dependentsCard(ctx, run_id, plan)
  }`;
  return { page: { title: `Built on ${run_id}`, nav: "runs", body } };
}

function dependentsCard(ctx: PageContext, run_id: string, plan: PlanView): HtmlFragment {
  const { dependents = [], dependents_cut } = plan;
  const more = dependents_cut
    ? noticeBox(
        "warn",
        safeHtml`<p>There are more than one rollback can cover. Roll back, then open this page again.</p>`,
      )
    : emptyHtml;
  const title = `${formatCountOf(dependents.length, "call")}, newest first`;
  const may = ctx.may(startRollback) && ctx.app.jobTools !== null;
  const items = dependents.map((one) => dependentItem(one, may && one.kind === "compensate"));
  const list = safeHtml`<ul class="items">${items}</ul>`;
  if (!may) return cardBlock({ title, id: "dependents" }, more, list, commandHint(ctx, run_id, dependents));
  const own = plan.actions.filter(({ kind }) => kind === "compensate").length;
  return cardBlock(
    { title, id: "dependents" },
    more,
    formElement(
      ctx,
      {
        action: `${runPath(run_id)}/rollback`,
        class: "form rollback-form",
        confirm: `Undo the ${formatCountOf(own, "step")} of this run and the selected calls, newest first.`,
        verb: "Roll back",
      },
      list,
      submitButton("Roll back with the selected calls", "danger"),
    ),
  );
}

function dependentItem(one: DependentView, may: boolean): HtmlFragment {
  const { run_id, step, tool, kind, because } = one;
  const name = safeHtml`step ${step} <code>${tool}</code> of ${runLink(run_id)} ${planMark(kind)}`;
  const box = may
    ? safeHtml`<label class="check"><input type="checkbox" name="with" value="${run_id}/${step}"> <span>${name}</span></label>`
    : name;
  return safeHtml`<li>${box}${bulletList(because.map(reasonWords))}</li>`;
}

function reasonWords({ run_id, step, kind, path }: ReasonView): HtmlFragment {
  const from = safeHtml`step ${step} of ${runLink(run_id)}`;
  if (kind === "resource") return safeHtml`acts on a resource that ${from} changed`;
  if (kind === "dependency") return safeHtml`needs ${from}`;
  if (kind === "stored") return safeHtml`reads from a store that ${from} wrote to`;
  return safeHtml`<code>${path ?? ""}</code> holds ${VALUE_KIND_WORDS[kind]} from ${from}`;
}

function commandHint(ctx: PageContext, run_id: string, dependents: readonly DependentView[]): HtmlFragment {
  const first = dependents.find(({ kind }) => kind === "compensate");
  if (first === undefined || !ctx.may(startRollback)) return emptyHtml;
  return safeHtml`<p class="soft">This server cannot undo calls. Undo those that you choose from a shell:</p>${commandBlock(`svc rollback ${run_id} --with ${first.run_id}/${first.step}`)}`;
}

/** The chosen calls of a submitted form. */
export function chosenIn(ctx: PageContext): { with?: ChosenStep[] } {
  const chosen = ctx.form.all("with").map((text): ChosenStep => {
    const [, run_id, step] = /^(.+)\/(\d{1,15})$/.exec(text) ?? [];
    if (run_id === undefined || step === undefined)
      throw invalidError("with: must be a step, such as run-7/3");
    return { run_id, step: Number(step) };
  });
  return chosen.length === 0 ? {} : { with: chosen };
}
