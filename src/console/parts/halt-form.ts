/** The form that halts new calls, as it stands on the Evidence page and in the dialog that every page opens. */
import { sentence } from "../../kernel/words.ts";
import { HALT_FIELDS, type Halt } from "../../model/approval.ts";
import type { Ctx } from "../ctx.ts";
import { type Html, html } from "../html.ts";
import { button, disclosed, form, input } from "./forms.ts";

/** What a halt covers, as a sentence's beginning. */
export function scopeText({ scope }: Halt): string {
  const parts = HALT_FIELDS.filter((field) => scope[field] !== null).map(
    (field) => `${field} ${scope[field]}`,
  );
  return parts.length === 0 ? "Every call." : `${parts.join(", ")}.`;
}

/** What a halt blocks, in words: `calls of billing-bot`, `calls to mail.*`. */
export function haltedCalls({ scope }: Halt): string {
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
export function haltsAll({ scope }: Halt): boolean {
  return HALT_FIELDS.every((field) => scope[field] === null);
}

const SURE = "Block new calls now. Agents are told why; rollbacks keep working.";

/** One dialog: its own button is the second look, so no other one asks back. */
export function haltForm(ctx: Ctx): Html {
  return form(
    ctx,
    { action: "/console/evidence/halt", class: "form halt-form" },
    html`<p class="soft">${SURE}</p><input type="hidden" name="confirm" value="yes">`,
    reasonField(),
    html`<fieldset><legend>Only a part (all calls where nothing is filled in)</legend>${scopeFields()}</fieldset>`,
    html`<div class="actions"><button type="submit" class="danger solid">Halt new calls</button></div>`,
  );
}

/** The same on its page, where a slip of the hand is asked back. */
export function haltPageForm(ctx: Ctx): Html {
  return form(
    ctx,
    {
      action: "/console/evidence/halt",
      class: "form halt-form",
      confirm: SURE,
      verb: "Block new calls",
    },
    reasonField(),
    disclosed("Only a part", scopeFields()),
    button("Block all new calls", "danger"),
  );
}

const reasonField = (): Html =>
  input({
    label: "Reason",
    name: "reason",
    required: true,
    maxlength: 4_000,
    placeholder: "what is going on; every blocked call carries it",
  });

function scopeFields(): Html {
  const fields = HALT_FIELDS.map((field) =>
    input({
      label: sentence(field),
      name: field,
      placeholder: "*",
      maxlength: 256,
    }),
  );
  return html`<div class="row">${fields}</div><p class="hint">Globs; a call must match every field that is filled in.</p>`;
}
