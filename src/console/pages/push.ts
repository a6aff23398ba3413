/** Push messages page: turns them on for this browser, and lists devices with quiet hours, tests and removal. */
import { sha256Hex } from "../../kernel/hash.ts";
import {
  addDevice,
  bindDevice,
  changeDevice,
  type DeviceView,
  deviceAt,
  listDevices,
  removeDevice,
  testDevice,
} from "../../operations/push/devices.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../html.ts";
import { getRoute, type PageAnswer, type PageContext, postRoute } from "../page-context.ts";
import { cardBlock, emptyState, pageHead, tableBlock } from "../parts/blocks.ts";
import { checkboxField, foldedForm, formElement, inputField, submitButton } from "../parts/forms.ts";
import { markLabel } from "../parts/marks.ts";
import { formatAgo } from "../parts/time.ts";
import { jsonContent, scriptField } from "./sign.ts";

const PATH = "/console/push";

export const pushRoutes = [
  getRoute("/push", pushPage),
  postRoute("/push", addDevice, add),
  postRoute("/push/here", addDevice, here),
  postRoute("/push/:id/quiet", changeDevice, setQuiet),
  postRoute("/push/:id/test", testDevice, test),
  postRoute("/push/:id/remove", removeDevice, remove),
];

/** Names a console session in the store, without its token. */
export const pushSession = (csrf: string): string => sha256Hex(`push:${csrf}`);

async function pushPage(ctx: PageContext): Promise<PageAnswer> {
  ctx.demand(listDevices);
  const { key, devices } = await ctx.call(listDevices, {});
  const off = ctx.whyOff(addDevice);
  const body = safeHtml`${pageHead("Push messages", "Get a notification on your phone or in your browser when a request waits for you. It names the rule and the agent, never a value.")}
${off === null && key !== null ? onCard(ctx, key) : cardBlock({ title: "This browser" }, safeHtml`<p>${off ?? ""}</p>`)}
${installCard()}
${listCard(ctx, devices)}`;
  return { page: { title: "Push messages", nav: "settings", body } };
}

function onCard(ctx: PageContext, key: string): HtmlFragment {
  return cardBlock(
    { title: "This browser", id: "here" },
    formElement(
      ctx,
      { action: PATH, push: key },
      safeHtml`<input type="hidden" name="subscription" value="">`,
      inputField({ label: "Name of this device", name: "label", maxlength: 100, placeholder: "Ann's phone" }),
      safeHtml`<p class="bad" role="alert" data-push-note hidden></p>`,
      submitButton("Turn on push messages here", "primary"),
    ),
    safeHtml`<noscript><p>Push messages need JavaScript.</p></noscript>`,
    safeHtml`<p class="soft">Logging out turns them off. So does disabling your key.</p>`,
  );
}

function installCard(): HtmlFragment {
  return cardBlock(
    { title: "Install the console", id: "install" },
    safeHtml`<p>As an app, the console has an icon with the number of requests that wait. On a phone, choose <b>Add to Home Screen</b> or <b>Install app</b> in the menu of the browser.</p>`,
    safeHtml`<p><button type="button" class="primary" data-install hidden>Install</button></p>`,
  );
}

function listCard(ctx: PageContext, devices: readonly DeviceView[]): HtmlFragment {
  const now = ctx.app.core.env.now();
  if (devices.length === 0)
    return cardBlock({ title: "Devices", id: "devices" }, emptyState("No device gets push messages."));
  const rows = devices.map((one) => [
    one.name,
    one.label,
    safeHtml`<code>${one.service}</code>`,
    stateOf(one, now),
    one.quiet === null ? "none" : `${one.quiet.from} to ${one.quiet.to}, ${one.quiet.zone}`,
    safeHtml`${one.mine ? ownForms(ctx, one) : emptyHtml}${removeForm(ctx, one)}`,
  ]);
  return cardBlock(
    { title: "Devices", id: "devices" },
    tableBlock("Devices", ["Person", "Device", "Push service", "State", "Quiet hours", "Action"], rows),
  );
}

function stateOf(one: DeviceView, now: number): HtmlFragment {
  if (!one.current) return markLabel("warn", "turn it on again there");
  if (one.last_error !== null) return safeHtml`${markLabel("bad", "not delivered")} ${one.last_error}`;
  if (one.last_ok_ms === null) return markLabel("quiet", "no message yet");
  return safeHtml`${markLabel("good", "delivered")} ${formatAgo(one.last_ok_ms, now)}`;
}

function ownForms(ctx: PageContext, { id, quiet }: DeviceView): HtmlFragment {
  return safeHtml`${formElement(ctx, { action: `${PATH}/${id}/test`, class: "inline" }, submitButton("Send a test"))}${foldedForm(
    "Quiet hours",
    formElement(
      ctx,
      { action: `${PATH}/${id}/quiet` },
      inputField({ label: "From", name: "from", value: quiet?.from ?? "22:00", maxlength: 5 }),
      inputField({ label: "To", name: "to", value: quiet?.to ?? "07:00", maxlength: 5 }),
      inputField({
        label: "Time zone",
        name: "zone",
        value: quiet?.zone ?? "",
        maxlength: 64,
        placeholder: "Europe/Berlin",
        hint: "Requests for calls that cannot be undone, and break-glass approvals, are still sent.",
      }),
      checkboxField("off", "No quiet hours", quiet === null),
      submitButton("Save"),
    ),
  )}`;
}

function removeForm(ctx: PageContext, { id }: DeviceView): HtmlFragment {
  return foldedForm(
    "Remove",
    formElement(
      ctx,
      { action: `${PATH}/${id}/remove`, confirm: "It gets no more messages.", verb: "Remove" },
      submitButton("Remove", "danger"),
    ),
  );
}

interface BrowserSubscription {
  endpoint: string;
  keys: { p256dh: string; auth: string };
}

async function add(ctx: PageContext): Promise<PageAnswer> {
  const given = scriptField<BrowserSubscription>(ctx, "subscription");
  const { id } = await ctx.call(addDevice, { ...given, label: ctx.form.optional("label") });
  await bindDevice(ctx.app, ctx.principal, id, pushSession(ctx.csrf));
  return { to: `${PATH}#devices`, notice: { kind: "ok", text: "Push messages are on. Send a test." } };
}

/** Ties a known device to this session. Never adds one: it may have been removed elsewhere. */
async function here(ctx: PageContext): Promise<PageAnswer> {
  const given = scriptField<BrowserSubscription | null>(ctx, "subscription");
  const known = await deviceAt(ctx.app, ctx.principal, String(given?.endpoint));
  if (known !== undefined) await bindDevice(ctx.app, ctx.principal, known.id, pushSession(ctx.csrf));
  return jsonContent({ known: known !== undefined });
}

async function setQuiet(ctx: PageContext): Promise<PageAnswer> {
  const { form } = ctx;
  const hours = { from: form.text("from"), to: form.text("to"), zone: form.text("zone") };
  const quiet = form.checked("off") ? null : hours;
  const { label } = await ctx.call(changeDevice, { device_id: ctx.params["id"]!, quiet });
  const text = quiet === null ? `No quiet hours for ${label}.` : `Quiet hours of ${label} are saved.`;
  return { to: `${PATH}#devices`, notice: { kind: "ok", text } };
}

async function test(ctx: PageContext): Promise<PageAnswer> {
  const { ok, error } = await ctx.call(testDevice, { device_id: ctx.params["id"]! });
  const notice = ok
    ? ({ kind: "ok", text: "The push service accepted the message." } as const)
    : ({ kind: "warn", text: `Not delivered: ${error}.` } as const);
  return { to: `${PATH}#devices`, notice };
}

async function remove(ctx: PageContext): Promise<PageAnswer> {
  ctx.demandConfirmed(removeDevice);
  const { label } = await ctx.call(removeDevice, { device_id: ctx.params["id"]! });
  return { to: `${PATH}#devices`, notice: { kind: "ok", text: `${label} gets no more messages.` } };
}
