/** Notification channels: who is told of what, how deliveries go, and a test message for admins. */
import type { RoleGate } from "../../app/door/perform.ts";
import { SvcError } from "../../kernel/errors.ts";
import { boundTo } from "../../model/roles.ts";
import type { ChannelInfo, TestResult } from "../../notify/notifier.ts";
import type { Ctx } from "../ctx.ts";
import { type Html, html, nothing } from "../html.ts";
import { card, empty, notice, table } from "../parts/blocks.ts";
import { button, form } from "../parts/forms.ts";
import { mark } from "../parts/marks.ts";

/** Channels and what went through them are the whole service's: nothing for a person who is bound to a tenant. */
export function channelsCard(ctx: Ctx, result: Html | null): Html {
  if (boundTo(ctx.principal) !== null) return nothing;
  const channels = ctx.app.notifier?.channels() ?? [];
  const admin = ctx.is("admin");
  return card(
    {
      title: "Channels",
      id: "channels",
      aside: admin && channels.length > 0 ? testForm(ctx, null, "Send test notification") : undefined,
    },
    result,
    channels.length === 0
      ? empty(
          "Nobody is told of anything",
          html`<p>Add a channel, so that approvals and alerts reach people: Slack, Teams, PagerDuty, Opsgenie, mail, or a webhook of your own.</p>`,
          html`<pre class="sample" tabindex="0" aria-label="Example configuration">notifications:
  channels:
    - {name: ops, type: slack, url: "\${SLACK_URL}", events: [approval_requested, alert]}</pre>`,
        )
      : table(
          "Notification channels",
          ["Name", "Type", "To", "Told of", "Delivered", "Failed", ...(admin ? ["Test"] : [])],
          channels.map((channel) => channelRow(ctx, channel, admin)),
        ),
  );
}

function channelRow(ctx: Ctx, channel: ChannelInfo, admin: boolean) {
  return [
    channel.name,
    channel.type,
    html`<code>${channel.host}</code>`,
    channel.events === null ? "everything" : channel.events.join(", "),
    html`${channel.ok}${channel.queued > 0 ? html`<span class="soft">, ${channel.queued} queued</span>` : null}`,
    channel.failed + channel.dropped === 0
      ? html`<span class="soft">0</span>`
      : mark("bad", String(channel.failed + channel.dropped)),
    ...(admin ? [testForm(ctx, channel.name, "Send test")] : []),
  ];
}

function testForm(ctx: Ctx, channel: string | null, label: string): Html {
  return form(
    ctx,
    { action: "/console/settings/test", class: "inline" },
    channel === null ? nothing : html`<input type="hidden" name="channel" value="${channel}">`,
    button(label),
  );
}

/** Who may send a test message. */
export const TEST_NEEDS: RoleGate = { role: "admin", within_tenant: false };

/** Answers what came of it, channel by channel. */
export async function sendTest(ctx: Ctx): Promise<Html> {
  const { notifier } = ctx.app;
  if (notifier === null) throw new SvcError("not_enabled", "this process sends no notifications");
  const results = await notifier.sendTest(ctx.principal.name, ctx.form.optional("channel"));
  return testResults(results);
}

function testResults(results: readonly TestResult[]): Html {
  const all = results.every(({ ok }) => ok);
  return notice(
    all ? "ok" : "bad",
    html`<ul class="list">${results.map(({ channel, ok, error }) => html`<li>${ok ? mark("good", "delivered") : mark("bad", "failed")} ${channel}${error === null ? null : `: ${error}`}</li>`)}</ul>`,
  );
}
