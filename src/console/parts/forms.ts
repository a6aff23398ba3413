/** Form elements. All posting forms are built here, so each carries the CSRF field of its session. */
import { emptyHtml, type HtmlFragment, safeHtml, type TemplateValue, VerbatimText } from "../html.ts";
import type { PageContext } from "../page-context.ts";

interface FormOptions {
  action: string;
  class?: string;
  id?: string;
  /** One sentence about the consequence. The user confirms it with a checkbox or in a dialog. */
  confirm?: string;
  /** Longer text about the consequence, shown above the checkbox or in the dialog. */
  about?: HtmlFragment;
  /** Label of the dialog's confirm button. */
  verb?: string;
  /** The script evaluates the form while the user types. */
  tried?: boolean;
  /** The script makes a passkey, or signs with one, before it sends the form. */
  passkey?: "create" | "sign";
  /** For `sign`: where the script asks what to sign. */
  challenge?: string;
  /** The script subscribes to push messages with this key before it sends the form. */
  push?: string;
}

export function formElement(
  ctx: Pick<PageContext, "csrf">,
  options: FormOptions,
  ...body: TemplateValue[]
): HtmlFragment {
  const { action, id, confirm, verb, about, tried, passkey, challenge, push } = options;
  return safeHtml`<form method="post" action="${action}" class="${options.class ?? "form"}"${
    id === undefined ? null : safeHtml` id="${id}"`
  }${confirm === undefined ? null : safeHtml` data-confirm="${confirm}" data-verb="${verb ?? "Yes"}"`}${flag("data-try", tried)}${attr("data-passkey", passkey)}${attr("data-challenge", challenge)}${attr("data-push", push)}>
<input type="hidden" name="csrf" value="${ctx.csrf}">${
    confirm === undefined
      ? null
      : safeHtml`${about === undefined ? null : safeHtml`<div class="confirm-about">${about}</div>`}<label class="check confirm"><input type="checkbox" name="confirm" value="yes" required> <span>${confirm}</span></label>`
  }${body}</form>`;
}

interface FieldOptions {
  label: string;
  name: string;
  value?: string;
  hint?: string;
  required?: boolean;
  placeholder?: string;
  /** Hides the label visually and keeps it for screen readers. */
  quiet?: boolean;
  maxlength?: number;
  minlength?: number;
  type?: "text" | "search" | "password" | "number" | "datetime-local" | "date";
  /** Id of the form that the field belongs to, if it is outside that form. */
  form?: string;
  list?: string;
  class?: string;
}

const attr = (name: string, value: string | number | undefined): HtmlFragment =>
  value === undefined
    ? emptyHtml
    : safeHtml` ${name}="${typeof value === "string" ? new VerbatimText(value) : value}"`;
const flag = (name: string, on: boolean | undefined): HtmlFragment => (on ? safeHtml` ${name}` : emptyHtml);

function labelled({ label, hint, quiet, class: kind }: FieldOptions, control: HtmlFragment): HtmlFragment {
  const words = safeHtml`<span class="${quiet ? "unseen" : "label"}">${label}</span>`;
  return safeHtml`<label class="field ${kind ?? ""}">${words}${control}${hint === undefined ? null : safeHtml`<span class="hint">${hint}</span>`}</label>`;
}

export function inputField(options: FieldOptions): HtmlFragment {
  const { name, value, required, placeholder, maxlength, minlength, type = "text", form, list } = options;
  return labelled(
    options,
    safeHtml`<input type="${type}" name="${name}"${attr("value", value)}${attr("placeholder", placeholder)}${attr("maxlength", maxlength)}${attr("minlength", minlength)}${attr("form", form)}${attr("list", list)}${flag("required", required)}${
      type === "password" ? safeHtml` autocomplete="off" spellcheck="false"` : safeHtml` autocomplete="off"`
    }>`,
  );
}

export function textareaField(options: FieldOptions & { rows?: number; mono?: boolean }): HtmlFragment {
  const { name, value, required, placeholder, rows = 3, mono, maxlength } = options;
  return labelled(
    options,
    safeHtml`<textarea name="${name}" rows="${rows}"${mono ? safeHtml` class="mono" spellcheck="false"` : emptyHtml}${attr("placeholder", placeholder)}${attr("maxlength", maxlength)}${flag("required", required)}>
${new VerbatimText(value ?? "")}</textarea>`,
  );
}

export function selectField(
  options: FieldOptions & { choices: readonly (readonly [value: string, label: string])[] },
): HtmlFragment {
  const { name, value, choices, required } = options;
  const list = choices.map(
    ([choice, label]) =>
      safeHtml`<option value="${new VerbatimText(choice)}"${flag("selected", choice === value)}>${label}</option>`,
  );
  return labelled(options, safeHtml`<select name="${name}"${flag("required", required)}>${list}</select>`);
}

export function checkboxField(name: string, label: TemplateValue, on = false, form?: string): HtmlFragment {
  return safeHtml`<label class="check"><input type="checkbox" name="${name}" value="yes"${flag("checked", on)}${attr("form", form)}> <span>${label}</span></label>`;
}

/** Note field with approve and deny buttons. A phone keeps the buttons in reach while the reader scrolls. */
export function decisionFields(approve: string, deny: string): HtmlFragment {
  const noted = inputField({
    label: "Note",
    name: "note",
    quiet: true,
    placeholder: "Note (kept on the ledger)",
    maxlength: 4_000,
  });
  const yes = submitButton(approve, "good", safeHtml` name="decision" value="approve"`);
  const no = submitButton(deny, "danger", safeHtml` name="decision" value="deny"`);
  return safeHtml`${noted}<div class="verbs">${yes}${no}</div>`;
}

/**
 * Checkbox that confirms an irreversible call; its field is `irreversible`. `after` selects the part of the page whose
 * long values the user must open first. Without scripts these values are open and the checkbox is enabled.
 */
export function irreversibleCheckbox(label: string, after?: string): HtmlFragment {
  const wait = safeHtml`<p class="expand-first" hidden><span role="status"></span> <button type="button" class="plain" data-expand>Show everything</button></p>`;
  return safeHtml`<div class="second"${attr("data-after", after)}>${after === undefined ? null : wait}${checkboxField("irreversible", label)}</div>`;
}

export function submitButton(
  label: string,
  kind: "primary" | "good" | "danger" | "plain" = "plain",
  extra: HtmlFragment = emptyHtml,
): HtmlFragment {
  return safeHtml`<button type="submit" class="${kind}"${extra}>${label}</button>`;
}

/** Folds a form until the user opens it. */
export function foldedForm(summary: string, ...body: TemplateValue[]): HtmlFragment {
  return foldedBlock({ summary }, ...body);
}

export function foldedBlock(
  { summary, open }: { summary: string; open?: boolean },
  ...body: TemplateValue[]
): HtmlFragment {
  return safeHtml`<details class="disclosed"${flag("open", open)}><summary>${summary}</summary>${body}</details>`;
}
