/** Legal holds card of the Settings page: lists, places and releases holds. */
import type { LegalHold } from "../../../govern/runs/hold.ts";
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import { listHolds, placeHold, releaseHold } from "../../../operations/retention/holds.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import { type PageAnswer, type PageContext, postRoute } from "../../page-context.ts";
import { cardBlock, emptyState, tableBlock } from "../../parts/blocks.ts";
import { foldedForm, formElement, inputField, submitButton } from "../../parts/forms.ts";
import { markLabel } from "../../parts/marks.ts";
import { formatTime } from "../../parts/time.ts";

export const holdRoutes = [
  postRoute("/settings/holds", placeHold, place),
  postRoute("/settings/holds/:id/release", releaseHold, release),
];

const FIELDS = ["run_id", "tenant", "actor", "tool"] as const;
const LABELS: Record<(typeof FIELDS)[number], string> = {
  run_id: "Run",
  tenant: "Tenant",
  actor: "Actor",
  tool: "Tool",
};

export async function holdsCard(ctx: PageContext): Promise<HtmlFragment> {
  if (!ctx.has(listHolds)) {
    return cardBlock(
      { title: "Legal holds", id: "holds" },
      emptyState(
        "Nothing is deleted on this server",
        safeHtml`<p>${ctx.whyOff(listHolds) ?? ""}: the policy has no <code>retention</code> section, so a hold would have no effect.</p>`,
      ),
    );
  }
  const { holds } = await ctx.call(listHolds, { all: true });
  const admin = ctx.may(placeHold);
  return cardBlock(
    { title: "Legal holds", id: "holds" },
    safeHtml`<p class="soft">Retention does not delete runs that a legal hold covers. Released holds stay on record.</p>`,
    holds.length === 0 ? safeHtml`<p class="calm">No legal holds.</p>` : holdsTable(ctx, holds, admin),
    admin ? placeForm(ctx) : safeHtml`<p class="soft">Only admins can place and release holds.</p>`,
  );
}

function holdsTable(ctx: PageContext, holds: readonly LegalHold[], admin: boolean): HtmlFragment {
  return tableBlock(
    "Legal holds",
    ["State", "Covers", "Reason", "By", "Placed", ...(admin ? ["Action"] : [])],
    holds.map((hold) => [
      hold.released_ms === null
        ? markLabel("warn", "active")
        : markLabel("quiet", `released by ${hold.released_by}`),
      FIELDS.filter((field) => hold.scope[field] !== null).map(
        (field) =>
          safeHtml`<span class="part"><span class="soft">${LABELS[field].toLowerCase()}</span> <code>${hold.scope[field]}</code></span>`,
      ),
      hold.reason,
      hold.by,
      formatTime(hold.created_ms),
      ...(admin ? [hold.released_ms === null ? releaseForm(ctx, hold) : emptyHtml] : []),
    ]),
  );
}

function releaseForm(ctx: PageContext, { id }: LegalHold): HtmlFragment {
  return formElement(
    ctx,
    {
      action: `/console/settings/holds/${id}/release`,
      class: "inline",
      confirm: "Release this hold. Retention can then delete the runs that it covers.",
      verb: "Release",
    },
    submitButton("Release"),
  );
}

function placeForm(ctx: PageContext): HtmlFragment {
  return foldedForm(
    "Place a hold",
    formElement(
      ctx,
      { action: "/console/settings/holds" },
      safeHtml`<div class="row">${FIELDS.map((field) => inputField({ label: LABELS[field], name: field, maxlength: 512 }))}</div><p class="hint">Fill in at least one field. A run must match all of them. The tool is an exact name.</p>`,
      inputField({
        label: "Reason",
        name: "reason",
        required: true,
        minlength: SERVICE_LIMITS.hold_reason_chars,
        maxlength: 4_000,
      }),
      submitButton("Place the hold", "primary"),
    ),
  );
}

async function place(ctx: PageContext): Promise<PageAnswer> {
  ctx.demand(placeHold);
  const scope = Object.fromEntries(
    FIELDS.flatMap((field) => {
      const value = ctx.form.optional(field);
      return value === undefined ? [] : [[field, value]];
    }),
  );
  await ctx.call(placeHold, { ...scope, reason: ctx.form.text("reason") });
  return { to: "/console/settings#holds", notice: { kind: "ok", text: "The hold is active." } };
}

async function release(ctx: PageContext): Promise<PageAnswer> {
  ctx.demandConfirmed(releaseHold);
  await ctx.call(releaseHold, { hold_id: ctx.params["id"]! });
  return {
    to: "/console/settings#holds",
    notice: { kind: "ok", text: "The hold is released; it stays on record." },
  };
}
