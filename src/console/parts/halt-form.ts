/** Form that halts new calls, on the Evidence page and in the dialog of every page. */
import { HALT_FIELDS, type StoredHalt } from "../../govern/approvals/approval.ts";
import { capitalizeFirst } from "../../kernel/text/phrases.ts";
import { type HtmlFragment, safeHtml } from "../html.ts";
import type { PageContext } from "../page-context.ts";
import { foldedForm, formElement, inputField, submitButton } from "./forms.ts";

/** Scope of a halt as the start of a sentence. */
export function scopeText({ scope }: StoredHalt): string {
  const parts = HALT_FIELDS.filter((field) => scope[field] !== null).map(
    (field) => `${field} ${scope[field]}`,
  );
  return parts.length === 0 ? "Every call." : `${parts.join(", ")}.`;
}

/** Blocked calls of a halt, such as `calls of billing-bot` or `calls to mail.*`. */
export function haltedCalls({ scope }: StoredHalt): string {
  const { actor, tool, tenant, environment } = scope;
  const parts = [
    actor === null ? "" : ` of ${actor}`,
    tool === null ? "" : ` to ${tool}`,
    tenant === null ? "" : ` for tenant ${tenant}`,
    environment === null ? "" : ` in ${environment}`,
  ].join("");
  return parts === "" ? "all new calls" : `calls${parts}`;
}

/** Whether the halt covers every call. */
export function haltsAll({ scope }: StoredHalt): boolean {
  return HALT_FIELDS.every((field) => scope[field] === null);
}

const SURE = "Block new calls now. Agents see why, and rollbacks still work.";

/** Form for the dialog. The dialog is the confirmation, so the form does not ask again. */
export function haltForm(ctx: PageContext): HtmlFragment {
  return formElement(
    ctx,
    { action: "/console/evidence/halt", class: "form halt-form" },
    safeHtml`<p class="soft">${SURE}</p><input type="hidden" name="confirm" value="yes">`,
    reasonField(),
    safeHtml`<fieldset><legend>Scope (leave empty to halt all calls)</legend>${scopeFields()}</fieldset>`,
    safeHtml`<div class="actions"><button type="submit" class="danger solid">Halt new calls</button></div>`,
  );
}

/** Form for the page, which asks for confirmation. */
export function haltPageForm(ctx: PageContext): HtmlFragment {
  return formElement(
    ctx,
    {
      action: "/console/evidence/halt",
      class: "form halt-form",
      confirm: SURE,
      verb: "Block new calls",
    },
    reasonField(),
    foldedForm("Limit the scope", scopeFields()),
    submitButton("Block all new calls", "danger"),
  );
}

const reasonField = (): HtmlFragment =>
  inputField({
    label: "Reason",
    name: "reason",
    required: true,
    maxlength: 4_000,
    placeholder: "shown with every blocked call",
  });

function scopeFields(): HtmlFragment {
  const fields = HALT_FIELDS.map((field) =>
    inputField({
      label: capitalizeFirst(field),
      name: field,
      placeholder: "*",
      maxlength: 256,
    }),
  );
  return safeHtml`<div class="row">${fields}</div><p class="hint">Globs; a call must match every field that is filled in.</p>`;
}
