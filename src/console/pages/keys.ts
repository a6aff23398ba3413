/** API keys, for admins: who holds one, a new one whose value is shown once, changes and the end of one. */
import { changeKey, createKey, deleteKey, listKeys } from "../../app/operations/keys.ts";
import type { KeyView } from "../../auth/manage.ts";
import { ROLES, type Role } from "../../model/roles.ts";
import { type Answer, type Ctx, post } from "../ctx.ts";
import { type Html, html, nothing } from "../html.ts";
import { card, notice, table } from "../parts/blocks.ts";
import { button, checkbox, disclosed, form, input } from "../parts/forms.ts";
import { copyButton } from "../parts/ids.ts";
import { mark } from "../parts/marks.ts";

export const keyRoutes = [
  post("/settings/keys/:index", changeKey, change),
  post("/settings/keys/:index/delete", deleteKey, remove),
];

/** Only admins learn who holds keys. */
export async function keysCard(ctx: Ctx, result: Html | null): Promise<Html> {
  if (!ctx.is("admin")) return nothing;
  if (!ctx.has(listKeys))
    return card(
      { title: "Keys", id: "keys" },
      html`<p class="soft">No key file is configured on this server (<code>SVC_KEYS</code>).</p>`,
    );
  const { keys } = await ctx.call(listKeys, {});
  return card(
    { title: "Keys", id: "keys" },
    result,
    table(
      "API keys",
      ["Name", "Roles", "Groups", "May request", "State", "Fingerprint", "Change"],
      keys.map((key) => keyRow(ctx, key)),
    ),
    disclosed(
      "Make a key",
      form(
        ctx,
        { action: "/console/settings/keys#keys" },
        html`<div class="row">${input({ label: "Name", name: "name", required: true, maxlength: 256, hint: "stands on the ledger" })}${roleBoxes([])}</div>`,
        keyFields(null),
        button("Make the key", "primary"),
      ),
    ),
  );
}

function keyRow(ctx: Ctx, key: KeyView) {
  const expired = key.expires_at !== null && Date.parse(key.expires_at) <= ctx.app.core.env.now();
  return [
    key.name,
    key.roles.join(", "),
    key.groups.join(", "),
    !key.roles.includes("agent")
      ? ""
      : html`${key.max_permissions.map((one) => html`<code class="chip">${one}</code> `)}${key.allow_observe ? mark("info", "may observe") : null}`,
    key.disabled
      ? mark("bad", "disabled")
      : expired
        ? mark("bad", "expired")
        : html`${mark("good", "works")}${key.expires_at === null ? null : html` <span class="soft">until ${key.expires_at}</span>`}`,
    html`<code>${key.fingerprint}</code>`,
    changeForms(ctx, key),
  ];
}

function changeForms(ctx: Ctx, key: KeyView): Html {
  const guard = html`<input type="hidden" name="fingerprint" value="${key.fingerprint}">`;
  const path = `/console/settings/keys/${key.index}`;
  return html`${form(ctx, { action: path, class: "inline" }, guard, html`<input type="hidden" name="do" value="${key.disabled ? "enable" : "disable"}">`, button(key.disabled ? "Enable" : "Disable"))}${disclosed(
    "Edit",
    form(
      ctx,
      { action: path },
      guard,
      html`<input type="hidden" name="do" value="edit">`,
      roleBoxes(key.roles),
      keyFields(key),
      button("Save", "primary"),
    ),
    form(
      ctx,
      {
        action: `${path}/delete`,
        confirm: `Delete the key of ${key.name}. Whoever uses it is out at once.`,
        verb: "Delete",
      },
      guard,
      button("Delete", "danger"),
    ),
  )}`;
}

function roleBoxes(on: readonly Role[]): Html {
  return html`<fieldset class="boxes"><legend>Roles</legend>${ROLES.map((role) => checkbox(`role_${role}`, role, on.includes(role)))}</fieldset>`;
}

function keyFields(key: KeyView | null): Html {
  return html`<div class="row">${input({ label: "May request", name: "max_permissions", value: key?.max_permissions.join(", ") ?? "", hint: "agents: permissions or globs, with commas" })}${input({ label: "Groups", name: "groups", value: key?.groups.join(", ") ?? "", hint: "with commas" })}${input({ label: "Tenant", name: "tenant", value: key?.tenant ?? "" })}${input({ label: "Expires at", name: "expires_at", value: key?.expires_at ?? "", placeholder: "2027-01-01T00:00:00Z" })}</div>${checkbox("tenant_only", "Every role holds within the tenant only", key?.tenant_only ?? false)}${checkbox("allow_observe", "May open runs that only observe or advise", key?.allow_observe ?? false)}${checkbox("self_rollback", "May roll back its own runs, as self-reported", key?.self_rollback ?? false)}`;
}

const list = (ctx: Ctx, name: string): string[] =>
  ctx.form
    .text(name)
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");

function fieldsOf(ctx: Ctx, make: boolean) {
  const roles = ROLES.filter((role) => ctx.form.checked(`role_${role}`));
  const tenant = ctx.form.optional("tenant");
  const expires_at = ctx.form.optional("expires_at");
  const self_rollback = ctx.form.checked("self_rollback");
  const tenant_only = ctx.form.checked("tenant_only");
  return {
    roles,
    groups: list(ctx, "groups"),
    max_permissions: list(ctx, "max_permissions"),
    allow_observe: ctx.form.checked("allow_observe"),
    ...(tenant !== undefined ? { tenant } : make ? {} : { tenant: null }),
    ...(tenant_only ? { tenant_only } : make ? {} : { tenant_only: false }),
    ...(self_rollback ? { self_rollback } : make ? {} : { self_rollback: false }),
    ...(expires_at !== undefined ? { expires_at } : make ? {} : { expires_at: null }),
  };
}

/** Makes a key, and answers the only sight of its value there will ever be. */
export async function makeKey(ctx: Ctx): Promise<Html> {
  const made = await ctx.call(createKey, { name: ctx.form.text("name"), ...fieldsOf(ctx, true) });
  return notice(
    "ok",
    html`<p class="said">The key of ${made.name}. It is shown now and never again:</p>`,
    html`<p class="new-key"><code>${made.key}</code>${copyButton(made.key, "the key")}</p>`,
  );
}

/** The entry as the page showed it. */
const entryOf = (ctx: Ctx) => ({
  index: Number(ctx.params["index"]),
  fingerprint: ctx.form.text("fingerprint"),
});

async function change(ctx: Ctx): Promise<Answer> {
  const wanted = ctx.form.text("do");
  const body =
    wanted === "disable"
      ? { disabled: true }
      : wanted === "enable"
        ? { disabled: false }
        : fieldsOf(ctx, false);
  const { name, disabled } = await ctx.call(changeKey, { ...entryOf(ctx), ...body });
  return {
    to: "/console/settings#keys",
    notice: {
      kind: "ok",
      text: disabled ? `The key of ${name} is disabled.` : `The key of ${name} is changed.`,
    },
  };
}

async function remove(ctx: Ctx): Promise<Answer> {
  ctx.demandConfirmed(deleteKey);
  const { name } = await ctx.call(deleteKey, entryOf(ctx));
  return { to: "/console/settings#keys", notice: { kind: "ok", text: `The key of ${name} is deleted.` } };
}
