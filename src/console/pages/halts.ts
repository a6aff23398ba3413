/** Halts card of the Evidence page: blocks all new calls, or those within a scope, and resumes them. */
import { HALT_FIELDS, type StoredHalt } from "../../govern/approvals/approval.ts";
import type { ContainmentDoc } from "../../govern/port/docs.ts";
import { haltCalls as haltOp, listHalts, liftHalts as resumeOp } from "../../operations/halts.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../html.ts";
import { type PageAnswer, type PageContext, postRoute } from "../page-context.ts";
import { cardBlock, tableBlock } from "../parts/blocks.ts";
import { containmentOfHalt, readContainments } from "../parts/containments.ts";
import { foldedForm, formElement, submitButton } from "../parts/forms.ts";
import { haltPageForm, scopeText } from "../parts/halt-form.ts";
import { formatCountOf, markLabel } from "../parts/marks.ts";
import { formatTime } from "../parts/time.ts";
import { containLink } from "./contain.ts";
import { incidentPath } from "./incidents/incident-list.ts";

export const haltRoutes = [
  postRoute("/evidence/halt", haltOp, halt),
  postRoute("/evidence/resume", resumeOp, resume),
];

export async function haltCard(ctx: PageContext): Promise<HtmlFragment> {
  const { halts } = await ctx.call(listHalts, {});
  const contained = await readContainments(ctx);
  const file = ctx.app.core.killSwitch();
  const halted = halts.length > 0 || file !== null;
  const admin = ctx.may(haltOp);
  return cardBlock(
    {
      title: "New calls",
      id: "halt",
      class: halted ? "alarm" : "",
      aside: halted ? markLabel("bad", "halted") : markLabel("good", "running"),
    },
    safeHtml`<div id="halts" data-live>${haltsTable(ctx, halts, contained)}${
      file === null
        ? null
        : safeHtml`<p>The kill-switch file exists and halts every call: ${file}. To resume, remove the file: <code>svc kill-switch off ${ctx.app.settings.kill_file ?? ""}</code>.</p>`
    }</div>`,
    admin
      ? safeHtml`<p class="soft">${halted ? "Rollbacks still work." : "Blocks new calls at once, on every process of this store. Calls in progress can finish, and rollbacks still work."}</p>${haltForm(ctx, halted)}<p>${containLink(ctx)}</p>`
      : safeHtml`<p class="soft">${halted ? "An admin can resume." : "An admin can block all new calls here, at once and on every process."} Rollbacks always work.</p>`,
  );
}

function haltsTable(
  ctx: PageContext,
  halts: readonly StoredHalt[],
  contained: readonly ContainmentDoc[],
): HtmlFragment {
  if (halts.length === 0) return emptyHtml;
  const admin = ctx.may(resumeOp);
  return tableBlock(
    "Active halts",
    ["Covers", "Reason", "By", "Since", ...(admin ? ["Action"] : [])],
    halts.map((one) => [
      scopeText(one),
      safeHtml`${one.reason}${containmentOfHalt(contained, one.id)}`,
      one.by,
      formatTime(one.created_ms),
      ...(admin
        ? [
            formElement(
              ctx,
              { action: "/console/evidence/resume", class: "inline" },
              safeHtml`<input type="hidden" name="id" value="${one.id}">`,
              submitButton("Resume"),
            ),
          ]
        : []),
    ]),
  );
}

function haltForm(ctx: PageContext, halted: boolean): HtmlFragment {
  const all = haltPageForm(ctx);
  const resumeAll = halted
    ? formElement(
        ctx,
        { action: "/console/evidence/resume", class: "inline" },
        submitButton("Resume everything", "good"),
      )
    : emptyHtml;
  return safeHtml`${resumeAll}${halted ? foldedForm("Block more", all) : all}`;
}

async function halt(ctx: PageContext): Promise<PageAnswer> {
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
      text: whole ? "All new calls are now blocked." : `Now blocked: ${scopeText(made)}`,
    },
  };
}

async function resume(ctx: PageContext): Promise<PageAnswer> {
  const id = ctx.form.optional("id");
  const { lifted } = await ctx.call(resumeOp, { id });
  const incident = ctx.form.optional("incident");
  return {
    // The form of an incident leads back to its other tasks.
    to: incident === undefined ? "/console/evidence#halt" : incidentPath(incident),
    notice: { kind: "ok", text: `${formatCountOf(lifted.length, "halt was", "halts were")} lifted.` },
  };
}
