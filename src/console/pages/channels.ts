/** Channels card of the Settings page: notification channels, their deliveries, and a test message for admins. */
import { tenantBinding } from "../../govern/roles.ts";
import { SvcError } from "../../kernel/errors.ts";
import type { ChannelInfo, TestResult } from "../../notify/notifier.ts";
import type { RoleGate } from "../../operations/pipeline/dispatch.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../html.ts";
import type { PageContext } from "../page-context.ts";
import { cardBlock, emptyState, noticeBox, tableBlock } from "../parts/blocks.ts";
import { formElement, submitButton } from "../parts/forms.ts";
import { markLabel } from "../parts/marks.ts";

/** Channels belong to the entire service, so the card is empty for a tenant-bound user. */
export function channelsCard(ctx: PageContext, result: HtmlFragment | null): HtmlFragment {
  if (tenantBinding(ctx.principal) !== null) return emptyHtml;
  const channels = ctx.app.notifier?.channels() ?? [];
  const admin = ctx.is("admin");
  return cardBlock(
    {
      title: "Channels",
      id: "channels",
      aside: admin && channels.length > 0 ? testForm(ctx, null, "Send test notification") : undefined,
    },
    result,
    channels.length === 0
      ? emptyState(
          "No notification channels",
          safeHtml`<p>Channels send approvals and alerts to Slack, Teams, PagerDuty, Opsgenie, email or a webhook. Add one to the config file:</p>`,
          safeHtml`<pre class="sample" tabindex="0" aria-label="Example configuration">notifications:
  channels:
    - {name: ops, type: slack, url: "\${SLACK_URL}", events: [approval_requested, alert]}</pre>`,
        )
      : tableBlock(
          "Notification channels",
          ["Name", "Type", "To", "Events", "Delivered", "Failed", ...(admin ? ["Test"] : [])],
          channels.map((channel) => channelRow(ctx, channel, admin)),
        ),
  );
}

function channelRow(ctx: PageContext, channel: ChannelInfo, admin: boolean) {
  return [
    channel.name,
    channel.type,
    safeHtml`<code>${channel.host}</code>`,
    channel.events === null ? "everything" : channel.events.join(", "),
    safeHtml`${channel.ok}${channel.queued > 0 ? safeHtml`<span class="soft">, ${channel.queued} queued</span>` : null}`,
    channel.failed + channel.dropped === 0
      ? safeHtml`<span class="soft">0</span>`
      : markLabel("bad", String(channel.failed + channel.dropped)),
    ...(admin ? [testForm(ctx, channel.name, "Send test")] : []),
  ];
}

function testForm(ctx: PageContext, channel: string | null, label: string): HtmlFragment {
  return formElement(
    ctx,
    { action: "/console/settings/test", class: "inline" },
    channel === null ? emptyHtml : safeHtml`<input type="hidden" name="channel" value="${channel}">`,
    submitButton(label),
  );
}

/** Role check for sending a test message. */
export const TEST_NEEDS: RoleGate = { role: "admin", within_tenant: false };

/** Sends the test message and returns the result for each channel. */
export async function sendTest(ctx: PageContext): Promise<HtmlFragment> {
  const { notifier } = ctx.app;
  if (notifier === null) throw new SvcError("not_enabled", "this process sends no notifications");
  const results = await notifier.sendTest(ctx.principal.name, ctx.form.optional("channel"));
  return testResults(results);
}

function testResults(results: readonly TestResult[]): HtmlFragment {
  const all = results.every(({ ok }) => ok);
  return noticeBox(
    all ? "ok" : "bad",
    safeHtml`<ul class="list">${results.map(({ channel, ok, error }) => safeHtml`<li>${ok ? markLabel("good", "delivered") : markLabel("bad", "failed")} ${channel}${error === null ? null : `: ${error}`}</li>`)}</ul>`,
  );
}
