/** Passkeys page: add one, compare codes, sign further ones, and revoke. */
import type { RegistrationResponseJSON } from "@simplewebauthn/server";
import {
  addPasskey,
  confirmPasskey,
  listPasskeys,
  type PasskeyView,
  passkeyOptions,
  revokePasskey,
} from "../../operations/signing/passkeys.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../html.ts";
import { getRoute, type PageAnswer, type PageContext, postRoute } from "../page-context.ts";
import { cardBlock, emptyState, pageHead, tableBlock } from "../parts/blocks.ts";
import { foldedForm, formElement, inputField, submitButton } from "../parts/forms.ts";
import { markLabel } from "../parts/marks.ts";
import { formatAgo } from "../parts/time.ts";
import { givenSignature, jsonContent, scriptField, signedForm } from "./sign.ts";

const PATH = "/console/passkeys";

export const passkeyRoutes = [
  getRoute("/passkeys", passkeysPage),
  postRoute("/passkeys/options", passkeyOptions, createOptions),
  postRoute("/passkeys", addPasskey, add),
  postRoute("/passkeys/:id/confirm", confirmPasskey, confirm),
  postRoute("/passkeys/:id/revoke", revokePasskey, revoke),
];

async function passkeysPage(ctx: PageContext): Promise<PageAnswer> {
  ctx.demand(listPasskeys);
  const { passkeys } = await ctx.call(listPasskeys, {});
  const off = ctx.whyOff(addPasskey);
  const body = safeHtml`${pageHead("Passkeys", "Sign approvals with your own passkey, so that nobody else can approve in your name.")}
${off === null ? addCard(ctx) : cardBlock({ title: "Add a passkey" }, safeHtml`<p>${off}</p>`)}
${waitingCards(ctx, passkeys)}
${listCard(ctx, passkeys)}`;
  return { page: { title: "Passkeys", nav: "settings", body } };
}

function addCard(ctx: PageContext): HtmlFragment {
  const alone = ctx.app.settings.passkeys.enrol === "self";
  return cardBlock(
    { title: "Add a passkey", id: "add" },
    safeHtml`<p class="soft">${alone ? "It is active at once." : "It becomes active when another admin confirms its code, or when you sign with an active passkey."}</p>`,
    formElement(ctx, { action: PATH, passkey: "create" }, submitButton("Add a passkey", "primary")),
    safeHtml`<noscript><p>Passkeys need JavaScript.</p></noscript>`,
  );
}

/** Pending passkeys: the person reads the code out, another admin types it. */
function waitingCards(ctx: PageContext, passkeys: readonly PasskeyView[]): HtmlFragment {
  const waiting = passkeys.filter(({ status }) => status === "pending");
  const signs = passkeys.some(({ mine, status }) => mine && status === "active");
  return safeHtml`${waiting.map((one) => (one.mine ? ownWaiting(ctx, one, signs) : otherWaiting(ctx, one)))}`;
}

function ownWaiting(ctx: PageContext, one: PasskeyView, signs: boolean): HtmlFragment {
  return cardBlock(
    { title: "Your new passkey is not active yet", id: one.id },
    safeHtml`<p>Give this code to another admin: <code class="passkey-code">${one.code}</code></p>`,
    signs
      ? formElement(
          ctx,
          { action: `${PATH}/${one.id}/confirm`, ...signedForm("passkey", one.id) },
          submitButton("Confirm with an active passkey", "primary"),
        )
      : emptyHtml,
  );
}

function otherWaiting(ctx: PageContext, one: PasskeyView): HtmlFragment {
  if (!ctx.is("admin")) return emptyHtml;
  return cardBlock(
    { title: `A passkey of ${one.name} waits`, id: one.id },
    safeHtml`<p class="soft">Ask ${one.name} in person, or on a call, for the code on their screen.</p>`,
    formElement(
      ctx,
      { action: `${PATH}/${one.id}/confirm` },
      inputField({ label: `Code on the screen of ${one.name}`, name: "code", required: true, maxlength: 8 }),
      submitButton("Confirm", "primary"),
    ),
  );
}

const MARKS = {
  pending: () => markLabel("warn", "waits"),
  active: () => markLabel("good", "active"),
  revoked: () => markLabel("quiet", "revoked"),
} as const;

function listCard(ctx: PageContext, passkeys: readonly PasskeyView[]): HtmlFragment {
  const now = ctx.app.core.env.now();
  if (passkeys.length === 0)
    return cardBlock({ title: "Passkeys", id: "passkeys" }, emptyState("No passkeys yet."));
  const rows = passkeys.map((one) => [
    one.name,
    safeHtml`<code>${one.code}</code>`,
    one.alg,
    MARKS[one.status](),
    formatAgo(one.added_ms, now),
    one.confirmed_by ?? "",
    one.status === "revoked" ? "" : revokeForm(ctx, one),
  ]);
  return cardBlock(
    { title: "Passkeys", id: "passkeys" },
    tableBlock("Passkeys", ["Person", "Code", "Algorithm", "State", "Added", "Confirmed by", "Action"], rows),
  );
}

function revokeForm(ctx: PageContext, one: PasskeyView): HtmlFragment {
  return foldedForm(
    "Revoke",
    formElement(
      ctx,
      { action: `${PATH}/${one.id}/revoke`, confirm: "It can no longer sign.", verb: "Revoke" },
      submitButton("Revoke", "danger"),
    ),
  );
}

async function createOptions(ctx: PageContext): Promise<PageAnswer> {
  return jsonContent(await ctx.call(passkeyOptions, {}));
}

async function add(ctx: PageContext): Promise<PageAnswer> {
  const response = scriptField<RegistrationResponseJSON & { type: "public-key" }>(ctx, "response");
  const { id, status } = await ctx.call(addPasskey, { response });
  const text =
    status === "active" ? "The passkey is active." : "The passkey is not active until it is confirmed.";
  return { to: `${PATH}#${id}`, notice: { kind: "ok", text } };
}

async function confirm(ctx: PageContext): Promise<PageAnswer> {
  const passkey_id = ctx.params["id"]!;
  const code = ctx.form.optional("code")?.toLowerCase();
  const how = code === undefined ? givenSignature(ctx) : { code };
  const { name } = await ctx.call(confirmPasskey, { passkey_id, ...how });
  return { to: PATH, notice: { kind: "ok", text: `The passkey of ${name} is active.` } };
}

async function revoke(ctx: PageContext): Promise<PageAnswer> {
  ctx.demandConfirmed(revokePasskey);
  const { name } = await ctx.call(revokePasskey, { passkey_id: ctx.params["id"]! });
  return { to: PATH, notice: { kind: "ok", text: `The passkey of ${name} is revoked.` } };
}
