/** Settings page: notification channels, egress, server facts, legal holds, retention and API keys. */

import { createKey } from "../../operations/keys.ts";
import { storeKind } from "../../operations/status.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../html.ts";
import { getRoute, type PageAnswer, type PageContext, postRoute } from "../page-context.ts";
import { cardBlock, factList, pageHead } from "../parts/blocks.ts";
import { markLabel } from "../parts/marks.ts";
import { formatSpan } from "../parts/time.ts";
import { channelsCard, sendTest, TEST_NEEDS } from "./channels.ts";
import { holdsCard } from "./evidence/holds.ts";
import { retentionCard, retentionNeeds, workRetention } from "./evidence/retention.ts";
import { keysCard, makeKey } from "./keys.ts";

interface Results {
  keys?: HtmlFragment;
  retention?: HtmlFragment;
  channels?: HtmlFragment;
}

export const settingsRoutes = [
  getRoute("/settings", (ctx) => settings(ctx, {})),
  postRoute("/settings/test", TEST_NEEDS, async (ctx) => settings(ctx, { channels: await sendTest(ctx) })),
  postRoute("/settings/retention", retentionNeeds, async (ctx) =>
    settings(ctx, { retention: await workRetention(ctx) }),
  ),
  postRoute("/settings/keys", createKey, async (ctx) => settings(ctx, { keys: await makeKey(ctx) })),
];

/** Renders the page, with the result of a submitted form next to that form. */
async function settings(ctx: PageContext, results: Results): Promise<PageAnswer> {
  const body = safeHtml`${pageHead("Settings", "The configuration of this server. Change it in the config file or the environment. Manage holds, retention and keys here.")}
${channelsCard(ctx, results.channels ?? null)}
<div class="columns">${egressCard(ctx)}${serviceCard(ctx)}</div>
${await holdsCard(ctx)}
${retentionCard(ctx, results.retention ?? null)}
${await keysCard(ctx, results.keys ?? null)}
${passkeysLink(ctx)}
${pushLink(ctx)}`;
  return { page: { title: "Settings", nav: "settings", body } };
}

function passkeysLink(ctx: PageContext): HtmlFragment {
  if (!ctx.is("approver")) return emptyHtml;
  return cardBlock(
    { title: "Passkeys", id: "passkeys" },
    safeHtml`<p>People sign approvals with passkeys. <a href="/console/passkeys">Open your passkeys</a></p>`,
  );
}

function pushLink(ctx: PageContext): HtmlFragment {
  if (ctx.mode === "open") return emptyHtml;
  return cardBlock(
    { title: "Push messages", id: "push" },
    safeHtml`<p>Your phone or browser can notify you of requests that wait for you. <a href="/console/push">Open your devices</a>, turn the messages on, and send yourself a test.</p>`,
  );
}

function egressCard(ctx: PageContext): HtmlFragment {
  const { in_force, sentences } = ctx.app.egress.describe();
  return cardBlock(
    {
      title: "Egress",
      id: "egress",
      aside: in_force ? markLabel("good", "rules active") : markLabel("quiet", "no rules"),
    },
    safeHtml`<p>${in_force ? "Egress rules limit which hosts this server can reach." : "No egress rules are set, so this server can reach any host."}</p>`,
    safeHtml`<ul class="list">${sentences.map((one) => safeHtml`<li>${one}</li>`)}</ul>`,
    safeHtml`<p class="soft">Egress rules cover notifications, anchors, traces, remote manifests, the OIDC issuer and gateway upstreams. A rejected connection is logged and never changes a decision.</p>`,
  );
}

function serviceCard(ctx: PageContext): HtmlFragment {
  const { settings, core, version } = ctx.app;
  const { capture } = settings;
  return cardBlock(
    { title: "This server", id: "server" },
    factList([
      ["Version", version],
      ["Environment", settings.environment ?? safeHtml`<span class="soft">not set</span>`],
      ["Store", storeKind(ctx.app)],
      ["Running for", formatSpan(core.env.now() - ctx.app.started_ms)],
      ["Console", ctx.mode === "open" ? safeHtml`open, as ${ctx.principal.name}` : "login"],
      [
        "Capture",
        capture.enabled
          ? safeHtml`${markLabel("info", "on")} kept for ${formatSpan(capture.ttl_ms)}, personal data ${capture.redact_pii ? "redacted" : "kept"}`
          : markLabel("quiet", "off"),
      ],
      [
        "Signing key",
        ctx.app.signing === null
          ? markLabel("quiet", "none")
          : safeHtml`<code>${ctx.app.signing.key_id}</code>`,
      ],
      [
        "Rollback jobs",
        ctx.app.jobTools === null
          ? safeHtml`${markLabel("quiet", "off")} <span class="soft">SVC_COMPENSATOR_CMD is not set</span>`
          : markLabel("good", "on"),
      ],
      ["OIDC", settings.oidc.issuer ?? safeHtml`<span class="soft">none</span>`],
      [
        "Config file",
        settings.meta.file === null
          ? safeHtml`<span class="soft">none</span>`
          : safeHtml`<code>${settings.meta.file}</code>`,
      ],
    ]),
  );
}
