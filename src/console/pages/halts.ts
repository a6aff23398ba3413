/** Blocking all new calls, or those within a scope, and letting them go on. */
import { halt as haltOp, listHalts, resume as resumeOp } from "../../app/operations/halts.ts";
import { HALT_FIELDS, type Halt } from "../../model/approval.ts";
import type { ContainmentDoc } from "../../port/docs.ts";
import { type Answer, type Ctx, post } from "../ctx.ts";
import { type Html, html, nothing } from "../html.ts";
import { card, table } from "../parts/blocks.ts";
import { containmentOfHalt, readContainments } from "../parts/containments.ts";
import { button, disclosed, form } from "../parts/forms.ts";
import { haltPageForm, scopeText } from "../parts/halt-form.ts";
import { mark, plural } from "../parts/marks.ts";
import { when } from "../parts/time.ts";
import { containLink } from "./contain.ts";

export const haltRoutes = [post("/evidence/halt", haltOp, halt), post("/evidence/resume", resumeOp, resume)];

export async function haltCard(ctx: Ctx): Promise<Html> {
  const { halts } = await ctx.call(listHalts, {});
  const contained = await readContainments(ctx);
  const file = ctx.app.core.killSwitch();
  const halted = halts.length > 0 || file !== null;
  const admin = ctx.may(haltOp);
  return card(
    {
      title: "New calls",
      id: "halt",
      class: halted ? "alarm" : "",
      aside: halted ? mark("bad", "halted") : mark("good", "running"),
    },
    html`<div id="halts" data-live>${haltsTable(ctx, halts, contained)}${
      file === null
        ? null
        : html`<p>The kill-switch file exists, and halts every call: ${file}. Remove the file to go on: <code>svc kill-switch off ${ctx.app.settings.kill_file ?? ""}</code>.</p>`
    }</div>`,
    admin
      ? html`<p class="soft">${halted ? "Rollbacks keep working meanwhile." : "Blocks new calls at once and on every process of this store; what is under way may end, and rollbacks keep working."}</p>${haltForm(ctx, halted)}<p>${containLink(ctx)}</p>`
      : html`<p class="soft">${halted ? "An admin can resume." : "An admin can block all new calls here, at once and on every process."} Rollbacks keep working either way.</p>`,
  );
}

function haltsTable(ctx: Ctx, halts: readonly Halt[], contained: readonly ContainmentDoc[]): Html {
  if (halts.length === 0) return nothing;
  const admin = ctx.may(resumeOp);
  return table(
    "Halts in force",
    ["Covers", "Reason", "By", "Since", "Action"],
    halts.map((one) => [
      scopeText(one),
      html`${one.reason}${containmentOfHalt(contained, one.id)}`,
      one.by,
      when(one.created_ms),
      admin
        ? form(
            ctx,
            { action: "/console/evidence/resume", class: "inline" },
            html`<input type="hidden" name="id" value="${one.id}">`,
            button("Resume"),
          )
        : "",
    ]),
  );
}

function haltForm(ctx: Ctx, halted: boolean): Html {
  const all = haltPageForm(ctx);
  const resumeAll = halted
    ? form(ctx, { action: "/console/evidence/resume", class: "inline" }, button("Resume everything", "good"))
    : nothing;
  return html`${resumeAll}${halted ? disclosed("Block more", all) : all}`;
}

async function halt(ctx: Ctx): Promise<Answer> {
  ctx.demandConfirmed(haltOp);
  const scope = Object.fromEntries(
    HALT_FIELDS.flatMap((field) => {
      const value = ctx.form.optional(field);
      return value === undefined ? [] : [[field, value]];
    }),
  );
  const made = await ctx.call(haltOp, { reason: ctx.form.text("reason"), ...scope });
  const whole = Object.keys(scope).length === 0;
  return {
    to: "/console/evidence#halt",
    notice: {
      kind: "warn",
      text: whole ? "All new calls are blocked from now on." : `Blocked from now on: ${scopeText(made)}`,
    },
  };
}

async function resume(ctx: Ctx): Promise<Answer> {
  const id = ctx.form.optional("id");
  const { lifted } = await ctx.call(resumeOp, { id });
  return {
    to: "/console/evidence#halt",
    notice: { kind: "ok", text: `${plural(lifted.length, "halt was", "halts were")} lifted.` },
  };
}
