/** Forms. Every form that posts is made here, and so carries the field that binds it to the session. */
import type { Ctx } from "../ctx.ts";
import { type Html, html, nothing, type Part, Verbatim } from "../html.ts";

interface FormOptions {
  action: string;
  class?: string;
  id?: string;
  /** What is about to happen, in a sentence. The person ticks it, or agrees in a dialog. */
  confirm?: string;
  /** The same at length, told above the box, or in the dialog. */
  about?: Html;
  /** How the dialog's button is labelled. */
  verb?: string;
  /** What is typed is tried at once, where there are scripts. */
  tried?: boolean;
}

export function form(ctx: Pick<Ctx, "csrf">, options: FormOptions, ...body: Part[]): Html {
  const { action, id, confirm, verb, about, tried } = options;
  return html`<form method="post" action="${action}" class="${options.class ?? "form"}"${
    id === undefined ? null : html` id="${id}"`
  }${confirm === undefined ? null : html` data-confirm="${confirm}" data-verb="${verb ?? "Yes"}"`}${flag("data-try", tried)}>
<input type="hidden" name="csrf" value="${ctx.csrf}">${
    confirm === undefined
      ? null
      : html`${about === undefined ? null : html`<div class="confirm-about">${about}</div>`}<label class="check confirm"><input type="checkbox" name="confirm" value="yes" required> <span>${confirm}</span></label>`
  }${body}</form>`;
}

interface FieldOptions {
  label: string;
  name: string;
  value?: string;
  hint?: string;
  required?: boolean;
  placeholder?: string;
  /** The label is only for those who do not see the form. */
  quiet?: boolean;
  maxlength?: number;
  minlength?: number;
  type?: "text" | "search" | "password" | "number" | "datetime-local" | "date";
  /** Belongs to the form with this id, which stands elsewhere. */
  form?: string;
  list?: string;
  class?: string;
}

const attr = (name: string, value: string | number | undefined): Html =>
  value === undefined ? nothing : html` ${name}="${typeof value === "string" ? new Verbatim(value) : value}"`;
const flag = (name: string, on: boolean | undefined): Html => (on ? html` ${name}` : nothing);

function labelled({ label, hint, quiet, class: kind }: FieldOptions, control: Html): Html {
  const words = html`<span class="${quiet ? "unseen" : "label"}">${label}</span>`;
  return html`<label class="field ${kind ?? ""}">${words}${control}${hint === undefined ? null : html`<span class="hint">${hint}</span>`}</label>`;
}

export function input(options: FieldOptions): Html {
  const { name, value, required, placeholder, maxlength, minlength, type = "text", form, list } = options;
  return labelled(
    options,
    html`<input type="${type}" name="${name}"${attr("value", value)}${attr("placeholder", placeholder)}${attr("maxlength", maxlength)}${attr("minlength", minlength)}${attr("form", form)}${attr("list", list)}${flag("required", required)}${
      type === "password" ? html` autocomplete="off" spellcheck="false"` : html` autocomplete="off"`
    }>`,
  );
}

export function textarea(options: FieldOptions & { rows?: number; mono?: boolean }): Html {
  const { name, value, required, placeholder, rows = 3, mono, maxlength } = options;
  return labelled(
    options,
    html`<textarea name="${name}" rows="${rows}"${mono ? html` class="mono" spellcheck="false"` : nothing}${attr("placeholder", placeholder)}${attr("maxlength", maxlength)}${flag("required", required)}>
${new Verbatim(value ?? "")}</textarea>`,
  );
}

export function select(
  options: FieldOptions & { choices: readonly (readonly [value: string, label: string])[] },
): Html {
  const { name, value, choices, required } = options;
  const list = choices.map(
    ([choice, label]) =>
      html`<option value="${new Verbatim(choice)}"${flag("selected", choice === value)}>${label}</option>`,
  );
  return labelled(options, html`<select name="${name}"${flag("required", required)}>${list}</select>`);
}

export function checkbox(name: string, label: Part, on = false, form?: string): Html {
  return html`<label class="check"><input type="checkbox" name="${name}" value="yes"${flag("checked", on)}${attr("form", form)}> <span>${label}</span></label>`;
}

/** What a person decides with: a note, and a button for each way. */
export function decision(approve: string, deny: string): Html {
  const noted = input({
    label: "Note",
    name: "note",
    quiet: true,
    placeholder: "Note (kept on the ledger)",
    maxlength: 4_000,
  });
  const yes = button(approve, "good", html` name="decision" value="approve"`);
  return html`${noted}${yes}${button(deny, "danger", html` name="decision" value="deny"`)}`;
}

/**
 * The second gesture for an irreversible call; read as `irreversible`. `after` names the part of the page whose long
 * values must be opened first. Without script they are open from the beginning, and so is the box.
 */
export function secondGesture(label: string, after?: string): Html {
  const wait = html`<p class="expand-first" hidden><span role="status"></span> <button type="button" class="plain" data-expand>Show everything</button></p>`;
  return html`<div class="second"${attr("data-after", after)}>${after === undefined ? null : wait}${checkbox("irreversible", label)}</div>`;
}

export function button(
  label: string,
  kind: "primary" | "good" | "danger" | "plain" = "plain",
  extra: Html = nothing,
): Html {
  return html`<button type="submit" class="${kind}"${extra}>${label}</button>`;
}

/** Hides a form until it is asked for. */
export function disclosed(summary: string, ...body: Part[]): Html {
  return html`<details class="disclosed"><summary>${summary}</summary>${body}</details>`;
}
