/** Retention: what is due, shown first and deleted only when a person says so twice. */
import type { AnswerTo } from "../../app/door/operation.ts";
import type { RoleGate } from "../../app/door/perform.ts";
import { getRetentionPlan, runRetention } from "../../app/operations/retention.ts";
import { invalid } from "../../kernel/errors.ts";
import type { ApplyReport } from "../../retention/apply.ts";
import type { Ctx, Form } from "../ctx.ts";
import { type Html, html, nothing } from "../html.ts";
import { bullets, card, empty, factList, notice } from "../parts/blocks.ts";
import { button, form, input } from "../parts/forms.ts";
import { runLink } from "../parts/ids.ts";
import { plural } from "../parts/marks.ts";

const MOST_LISTED = 100;

export function retentionCard(ctx: Ctx, result: Html | null): Html {
  const { retention } = ctx.app.core.rules().policy;
  if (retention === null || !ctx.has(getRetentionPlan)) {
    return card(
      { title: "Retention", id: "retention" },
      empty(
        "No retention settings",
        html`<p>Without a <code>retention</code> section in the policy nothing is ever deleted. Add <code>retention: {default_days: 365}</code> to let old runs go; the ledger stays in any case.</p>`,
      ),
    );
  }
  return card(
    { title: "Retention", id: "retention" },
    html`<p class="soft">Deletes the working data of runs that are old enough: steps, values, approvals, captures. The ledger is never deleted, and nothing happens by itself.</p>`,
    result,
    factList([
      ["Kept by default", plural(retention.default_days, "day")],
      ["Further rules", plural(retention.rules?.length ?? 0, "rule")],
      [
        "Archives",
        ctx.app.signing === null ? "need a signing key" : "signed bundles, in a folder that you name",
      ],
    ]),
    retentionForms(ctx),
  );
}

function retentionForms(ctx: Ctx): Html {
  const days = () =>
    input({
      label: "Instead of the policy's days",
      name: "days",
      type: "number",
      hint: "empty: as the policy says",
    });
  const dry = form(
    ctx,
    { action: "/console/settings/retention#retention" },
    html`<div class="row">${days()}</div>`,
    button("Dry run", "primary", html` name="do" value="dry"`),
  );
  if (!ctx.may(runRetention)) return html`${dry}<p class="soft">Applying it is for admins.</p>`;
  const real = form(
    ctx,
    {
      action: "/console/settings/retention#retention",
      confirm: "Delete the working data of every run that is due. It cannot be brought back.",
      verb: "Delete",
    },
    html`<div class="row">${days()}${input({ label: "Archive folder on the server", name: "archive_dir", placeholder: "/srv/archive", hint: "a signed bundle of each run first" })}</div>`,
    button("Apply", "danger", html` name="do" value="apply"`),
  );
  return html`<div class="columns">${dry}${real}</div>`;
}

/** Which of the two buttons was pressed. */
export const retentionNeeds = (form: Form): RoleGate =>
  form.text("do") === "dry" ? getRetentionPlan : runRetention;

/** A dry run, or the real one; answers what came of it. */
export async function workRetention(ctx: Ctx): Promise<Html> {
  const text = ctx.form.optional("days");
  if (text !== undefined && !/^[1-9]\d{0,4}$/.test(text)) throw invalid("days: a whole number of days");
  const days = text === undefined ? undefined : Number(text);
  if (ctx.form.text("do") === "dry") {
    const { runs } = await ctx.call(getRetentionPlan, { days });
    return dryResult(runs);
  }
  ctx.demandConfirmed(runRetention);
  const archive_dir = ctx.form.optional("archive_dir");
  return appliedResult(await ctx.call(runRetention, { days, archive_dir }));
}

function dryResult(runs: AnswerTo<typeof getRetentionPlan>["runs"]): Html {
  const due = runs.filter(({ decision }) => decision.startsWith("due"));
  const held = runs.filter(({ decision }) => decision.startsWith("HELD"));
  const lines = [...due, ...held]
    .slice(0, MOST_LISTED)
    .map(
      (one) =>
        html`${runLink(one.run_id)} <span class="soft">${one.age_days} days old, kept for ${one.keep_days}:</span> ${one.decision}`,
    );
  return notice(
    "info",
    html`<p class="said">Dry run: ${plural(due.length, "run is", "runs are")} due, ${held.length} held, ${runs.length - due.length - held.length} kept. Nothing was deleted.</p>`,
    bullets(lines),
    due.length + held.length > MOST_LISTED
      ? html`<p class="soft">The first ${MOST_LISTED} are shown.</p>`
      : nothing,
  );
}

function appliedResult({ deleted, kept, archived }: ApplyReport): Html {
  return notice(
    deleted.length > 0 ? "warn" : "info",
    html`<p class="said">Deleted ${plural(deleted.length, "run")}${archived.length === 0 ? "" : `, each archived first in ${plural(archived.length, "file")}`}.</p>`,
    bullets(deleted.slice(0, MOST_LISTED).map((run_id) => runLink(run_id))),
    kept.length === 0
      ? nothing
      : html`<p class="soft">Left alone:</p>${bullets(kept.slice(0, MOST_LISTED).map(({ run_id, reason }) => html`${runLink(run_id)} ${reason}`))}`,
  );
}
