/** Retention card of the Settings page: a dry run, and deletion after an explicit confirmation. */
import { invalidError } from "../../../kernel/errors.ts";
import type { RoleGate } from "../../../operations/pipeline/dispatch.ts";
import type { ResponseOf } from "../../../operations/pipeline/operation.ts";
import { getRetentionPlan, runRetention } from "../../../operations/retention/retention.ts";
import type { ApplyReport } from "../../../retention/apply.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import type { PageContext, SubmittedForm } from "../../page-context.ts";
import { bulletList, cardBlock, emptyState, factList, noticeBox } from "../../parts/blocks.ts";
import { formElement, inputField, submitButton } from "../../parts/forms.ts";
import { runLink } from "../../parts/ids.ts";
import { formatCountOf } from "../../parts/marks.ts";

const MAX_LISTED = 100;

export function retentionCard(ctx: PageContext, result: HtmlFragment | null): HtmlFragment {
  const { retention } = ctx.app.core.rules().policy;
  if (retention === null || !ctx.has(getRetentionPlan)) {
    return cardBlock(
      { title: "Retention", id: "retention" },
      emptyState(
        "No retention settings",
        safeHtml`<p>Without a <code>retention</code> section in the policy, nothing is deleted. Add <code>retention: {default_days: 365}</code> to delete old runs. The ledger is always kept.</p>`,
      ),
    );
  }
  return cardBlock(
    { title: "Retention", id: "retention" },
    safeHtml`<p class="soft">Deletes the working data of old runs: steps, values, approvals and captures. The ledger is never deleted, and nothing is deleted automatically.</p>`,
    result,
    factList([
      ["Kept by default", formatCountOf(retention.default_days, "day")],
      ["Further rules", formatCountOf(retention.rules?.length ?? 0, "rule")],
      [
        "Archives",
        ctx.app.signing === null ? "need a signing key" : "signed bundles, in a directory that you choose",
      ],
    ]),
    retentionForms(ctx),
  );
}

function retentionForms(ctx: PageContext): HtmlFragment {
  const days = (label: string) =>
    inputField({
      label,
      name: "days",
      type: "number",
      hint: "empty: from the policy",
    });
  const dry = formElement(
    ctx,
    { action: "/console/settings/retention#retention" },
    safeHtml`<div class="row">${days("Days to keep, in the dry run")}</div>`,
    submitButton("Dry run", "primary", safeHtml` name="do" value="dry"`),
  );
  if (!ctx.may(runRetention)) return safeHtml`${dry}<p class="soft">Only admins can apply it.</p>`;
  const real = formElement(
    ctx,
    {
      action: "/console/settings/retention#retention",
      confirm: "Delete the working data of every run that is due. You cannot undo this.",
      verb: "Delete",
    },
    safeHtml`<div class="row">${days("Days to keep")}${inputField({ label: "Archive directory on the server", name: "archive_dir", placeholder: "/srv/archive", hint: "gets a signed bundle of each run first" })}</div>`,
    submitButton("Apply", "danger", safeHtml` name="do" value="apply"`),
  );
  return safeHtml`<div class="columns">${dry}${real}</div>`;
}

/** Operation for the pressed button. */
export const retentionNeeds = (form: SubmittedForm): RoleGate =>
  form.text("do") === "dry" ? getRetentionPlan : runRetention;

/** Runs the dry run or the deletion and returns the result. */
export async function workRetention(ctx: PageContext): Promise<HtmlFragment> {
  const text = ctx.form.optional("days");
  if (text !== undefined && !/^[1-9]\d{0,4}$/.test(text))
    throw invalidError("days: must be a whole number of days");
  const days = text === undefined ? undefined : Number(text);
  if (ctx.form.text("do") === "dry") {
    const { runs } = await ctx.call(getRetentionPlan, { days });
    return dryResult(runs);
  }
  ctx.demandConfirmed(runRetention);
  const archive_dir = ctx.form.optional("archive_dir");
  return appliedResult(await ctx.call(runRetention, { days, archive_dir }));
}

function dryResult(runs: ResponseOf<typeof getRetentionPlan>["runs"]): HtmlFragment {
  const due = runs.filter(({ decision }) => decision.startsWith("due"));
  const held = runs.filter(({ decision }) => decision.startsWith("HELD"));
  const lines = [...due, ...held]
    .slice(0, MAX_LISTED)
    .map(
      (one) =>
        safeHtml`${runLink(one.run_id)} <span class="soft">${one.age_days} days old, kept for ${one.keep_days}:</span> ${one.decision}`,
    );
  return noticeBox(
    "info",
    safeHtml`<p class="said">Dry run: ${formatCountOf(due.length, "run is", "runs are")} due, ${held.length} held, ${runs.length - due.length - held.length} kept. Nothing was deleted.</p>`,
    bulletList(lines),
    due.length + held.length > MAX_LISTED
      ? safeHtml`<p class="soft">The first ${MAX_LISTED} are shown.</p>`
      : emptyHtml,
  );
}

function appliedResult({ deleted, kept, archived }: ApplyReport): HtmlFragment {
  return noticeBox(
    deleted.length > 0 ? "warn" : "info",
    safeHtml`<p class="said">Deleted ${formatCountOf(deleted.length, "run")}${archived.length === 0 ? "" : `, each archived first in ${formatCountOf(archived.length, "file")}`}.</p>`,
    bulletList(deleted.slice(0, MAX_LISTED).map((run_id) => runLink(run_id))),
    kept.length === 0
      ? emptyHtml
      : safeHtml`<p class="soft">Kept:</p>${bulletList(kept.slice(0, MAX_LISTED).map(({ run_id, reason }) => safeHtml`${runLink(run_id)} ${reason}`))}`,
  );
}
