/**
 * Keys card of the Settings page, for admins: lists, creates, changes and deletes API keys. A new key is shown once.
 */

import { keyExpiry } from "../../auth/key-entry.ts";
import type { KeyView } from "../../auth/key-manager.ts";
import { isExpired } from "../../govern/expiry.ts";
import { PRINCIPAL_ROLES, type PrincipalRole } from "../../govern/roles.ts";
import { changeKey, createKey, deleteKey, keyStateText, listKeys } from "../../operations/keys.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../html.ts";
import { type PageAnswer, type PageContext, postRoute } from "../page-context.ts";
import { cardBlock, noticeBox, tableBlock } from "../parts/blocks.ts";
import { checkboxField, foldedForm, formElement, inputField, submitButton } from "../parts/forms.ts";
import { copyButton } from "../parts/ids.ts";
import { markLabel } from "../parts/marks.ts";
import { incidentPath } from "./incidents/incident-list.ts";

export const keyRoutes = [
  postRoute("/settings/keys/:index", changeKey, change),
  postRoute("/settings/keys/:index/delete", deleteKey, remove),
];

/** Empty for users other than admins. */
export async function keysCard(ctx: PageContext, result: HtmlFragment | null): Promise<HtmlFragment> {
  if (!ctx.is("admin")) return emptyHtml;
  if (!ctx.has(listKeys))
    return cardBlock(
      { title: "Keys", id: "keys" },
      safeHtml`<p class="soft">No key file is configured on this server (<code>SVC_KEYS</code>).</p>`,
    );
  const { keys } = await ctx.call(listKeys, {});
  return cardBlock(
    { title: "Keys", id: "keys" },
    result,
    tableBlock(
      "API keys",
      ["Name", "Roles", "Groups", "Can request", "State", "Fingerprint", "Change"],
      keys.map((key) => keyRow(ctx, key)),
    ),
    foldedForm(
      "Create a key",
      formElement(
        ctx,
        { action: "/console/settings/keys#keys" },
        safeHtml`<div class="row">${inputField({ label: "Name", name: "name", required: true, maxlength: 256, hint: "recorded in the ledger" })}${roleBoxes([])}</div>`,
        keyFields(null),
        submitButton("Create key", "primary"),
      ),
    ),
  );
}

function keyRow(ctx: PageContext, key: KeyView) {
  const expired = isExpired(keyExpiry(key), ctx.app.core.env.now());
  return [
    key.name,
    key.roles.join(", "),
    key.groups.join(", "),
    !key.roles.includes("agent")
      ? ""
      : safeHtml`${key.max_permissions.map((one) => safeHtml`<code class="chip">${one}</code> `)}${key.allow_observe ? markLabel("info", "can observe") : null}`,
    key.disabled
      ? markLabel("bad", "disabled")
      : expired
        ? markLabel("bad", "expired")
        : safeHtml`${markLabel("good", "active")}${key.expires_at === null ? null : safeHtml` <span class="soft">until ${key.expires_at}</span>`}`,
    safeHtml`<code>${key.fingerprint}</code>`,
    changeForms(ctx, key),
  ];
}

function changeForms(ctx: PageContext, key: KeyView): HtmlFragment {
  const guard = safeHtml`<input type="hidden" name="fingerprint" value="${key.fingerprint}">`;
  const path = `/console/settings/keys/${key.index}`;
  return safeHtml`${formElement(ctx, { action: path, class: "inline" }, guard, safeHtml`<input type="hidden" name="do" value="${key.disabled ? "enable" : "disable"}">`, submitButton(key.disabled ? "Enable" : "Disable"))}${foldedForm(
    "Edit",
    formElement(
      ctx,
      { action: path },
      guard,
      safeHtml`<input type="hidden" name="do" value="edit">`,
      roleBoxes(key.roles),
      keyFields(key),
      submitButton("Save", "primary"),
    ),
    formElement(
      ctx,
      {
        action: `${path}/delete`,
        confirm: `Delete the key of ${key.name}. Anyone who uses it loses access at once.`,
        verb: "Delete",
      },
      guard,
      submitButton("Delete", "danger"),
    ),
  )}`;
}

function roleBoxes(on: readonly PrincipalRole[]): HtmlFragment {
  return safeHtml`<fieldset class="boxes"><legend>Roles</legend>${PRINCIPAL_ROLES.map((role) => checkboxField(`role_${role}`, role, on.includes(role)))}</fieldset>`;
}

function keyFields(key: KeyView | null): HtmlFragment {
  return safeHtml`<div class="row">${inputField({ label: "Can request", name: "max_permissions", value: key?.max_permissions.join(", ") ?? "", hint: "for agents: permissions or globs, comma-separated" })}${inputField({ label: "Groups", name: "groups", value: key?.groups.join(", ") ?? "", hint: "comma-separated" })}${inputField({ label: "Tenant", name: "tenant", value: key?.tenant ?? "" })}${inputField({ label: "Expires at", name: "expires_at", value: key?.expires_at ?? "", placeholder: "2027-01-01T00:00:00Z" })}</div>${checkboxField("tenant_only", "Limit every role to the tenant", key?.tenant_only ?? false)}${checkboxField("allow_observe", "Can open runs in observe and advise mode", key?.allow_observe ?? false)}${checkboxField("may_give", "Can send users' texts to its runs", key?.may_give ?? false)}${checkboxField("may_sandbox", "Can prove that agents are confined, for svc run", key?.may_sandbox ?? false)}${checkboxField("self_rollback", "Can roll back its own runs (self-reported)", key?.self_rollback ?? false)}`;
}

const list = (ctx: PageContext, name: string): string[] =>
  ctx.form
    .text(name)
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");

function fieldsOf(ctx: PageContext, make: boolean) {
  const roles = PRINCIPAL_ROLES.filter((role) => ctx.form.checked(`role_${role}`));
  const tenant = ctx.form.optional("tenant");
  const expires_at = ctx.form.optional("expires_at");
  const self_rollback = ctx.form.checked("self_rollback");
  const may_give = ctx.form.checked("may_give");
  const may_sandbox = ctx.form.checked("may_sandbox");
  const tenant_only = ctx.form.checked("tenant_only");
  return {
    roles,
    groups: list(ctx, "groups"),
    max_permissions: list(ctx, "max_permissions"),
    allow_observe: ctx.form.checked("allow_observe"),
    ...(tenant !== undefined ? { tenant } : make ? {} : { tenant: null }),
    ...(tenant_only ? { tenant_only } : make ? {} : { tenant_only: false }),
    ...(self_rollback ? { self_rollback } : make ? {} : { self_rollback: false }),
    ...(may_give ? { may_give } : make ? {} : { may_give: false }),
    ...(may_sandbox ? { may_sandbox } : make ? {} : { may_sandbox: false }),
    ...(expires_at !== undefined ? { expires_at } : make ? {} : { expires_at: null }),
  };
}

/** Creates a key and returns the only page that shows its value. */
export async function makeKey(ctx: PageContext): Promise<HtmlFragment> {
  const made = await ctx.call(createKey, { name: ctx.form.text("name"), ...fieldsOf(ctx, true) });
  return noticeBox(
    "ok",
    safeHtml`<p class="said">The key of ${made.name}. It is shown only once:</p>`,
    safeHtml`<p class="new-key"><code>${made.key}</code>${copyButton(made.key, "the key")}</p>`,
  );
}

/** Index and fingerprint of the key that the form is about. */
const entryOf = (ctx: PageContext) => ({
  index: Number(ctx.params["index"]),
  fingerprint: ctx.form.text("fingerprint"),
});

async function change(ctx: PageContext): Promise<PageAnswer> {
  const wanted = ctx.form.text("do");
  const body =
    wanted === "disable"
      ? { disabled: true }
      : wanted === "enable"
        ? { disabled: false }
        : fieldsOf(ctx, false);
  const { name, disabled } = await ctx.call(changeKey, { ...entryOf(ctx), ...body });
  const incident = ctx.form.optional("incident");
  return {
    // The form of an incident leads back to its other tasks.
    to: incident === undefined ? "/console/settings#keys" : incidentPath(incident),
    notice: {
      kind: "ok",
      text: `The key of ${name} is ${"disabled" in body ? keyStateText(disabled) : "changed"}.`,
    },
  };
}

async function remove(ctx: PageContext): Promise<PageAnswer> {
  ctx.demandConfirmed(deleteKey);
  const { name } = await ctx.call(deleteKey, entryOf(ctx));
  return { to: "/console/settings#keys", notice: { kind: "ok", text: `The key of ${name} is deleted.` } };
}
