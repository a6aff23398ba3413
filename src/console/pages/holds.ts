/** Legal holds: what must not be deleted, by whose word, and its release. */
import { listHolds, placeHold, releaseHold } from "../../app/operations/holds.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { Hold } from "../../model/hold.ts";
import { type Answer, type Ctx, post } from "../ctx.ts";
import { type Html, html, nothing } from "../html.ts";
import { card, empty, table } from "../parts/blocks.ts";
import { button, disclosed, form, input } from "../parts/forms.ts";
import { mark } from "../parts/marks.ts";
import { when } from "../parts/time.ts";

export const holdRoutes = [
  post("/settings/holds", placeHold, place),
  post("/settings/holds/:id/release", releaseHold, release),
];

const FIELDS = ["run_id", "tenant", "actor", "tool"] as const;
const LABELS: Record<(typeof FIELDS)[number], string> = {
  run_id: "Run",
  tenant: "Tenant",
  actor: "Actor",
  tool: "Tool",
};

export async function holdsCard(ctx: Ctx): Promise<Html> {
  if (!ctx.has(listHolds)) {
    return card(
      { title: "Legal holds", id: "holds" },
      empty(
        "Nothing is ever deleted here",
        html`<p>${ctx.whyOff(listHolds) ?? ""}: the policy has no <code>retention</code> section, so there is nothing to hold back from.</p>`,
      ),
    );
  }
  const { holds } = await ctx.call(listHolds, { all: true });
  const admin = ctx.may(placeHold);
  return card(
    { title: "Legal holds", id: "holds" },
    html`<p class="soft">While a hold covers a run, retention leaves it alone. Released holds stay on record.</p>`,
    holds.length === 0 ? html`<p class="calm">No hold was ever placed.</p>` : holdsTable(ctx, holds, admin),
    admin ? placeForm(ctx) : html`<p class="soft">Placing and releasing holds is for admins.</p>`,
  );
}

function holdsTable(ctx: Ctx, holds: readonly Hold[], admin: boolean): Html {
  return table(
    "Legal holds",
    ["State", "Covers", "Reason", "By", "Placed", ...(admin ? ["Action"] : [])],
    holds.map((hold) => [
      hold.released_ms === null ? mark("warn", "active") : mark("quiet", `released by ${hold.released_by}`),
      FIELDS.filter((field) => hold.scope[field] !== null).map(
        (field) =>
          html`<span class="part"><span class="soft">${LABELS[field].toLowerCase()}</span> <code>${hold.scope[field]}</code></span>`,
      ),
      hold.reason,
      hold.by,
      when(hold.created_ms),
      ...(admin ? [hold.released_ms === null ? releaseForm(ctx, hold) : nothing] : []),
    ]),
  );
}

function releaseForm(ctx: Ctx, { id }: Hold): Html {
  return form(
    ctx,
    {
      action: `/console/settings/holds/${id}/release`,
      class: "inline",
      confirm: "Release this hold: the runs it covers become due again.",
      verb: "Release",
    },
    button("Release"),
  );
}

function placeForm(ctx: Ctx): Html {
  return disclosed(
    "Place a hold",
    form(
      ctx,
      { action: "/console/settings/holds" },
      html`<div class="row">${FIELDS.map((field) => input({ label: LABELS[field], name: field, maxlength: 512 }))}</div><p class="hint">At least one; a run must fit all that are filled in. The tool is an exact name.</p>`,
      input({
        label: "Reason",
        name: "reason",
        required: true,
        minlength: LIMITS.hold_reason_chars,
        maxlength: 4_000,
      }),
      button("Place the hold", "primary"),
    ),
  );
}

async function place(ctx: Ctx): Promise<Answer> {
  ctx.demand(placeHold);
  const scope = Object.fromEntries(
    FIELDS.flatMap((field) => {
      const value = ctx.form.optional(field);
      return value === undefined ? [] : [[field, value]];
    }),
  );
  await ctx.call(placeHold, { ...scope, reason: ctx.form.text("reason") });
  return { to: "/console/settings#holds", notice: { kind: "ok", text: "The hold is in force." } };
}

async function release(ctx: Ctx): Promise<Answer> {
  ctx.demandConfirmed(releaseHold);
  await ctx.call(releaseHold, { hold_id: ctx.params["id"]! });
  return {
    to: "/console/settings#holds",
    notice: { kind: "ok", text: "The hold is released; it stays on record." },
  };
}
