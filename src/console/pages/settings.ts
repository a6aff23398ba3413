/** The Settings page: who is told, what leaves this machine, what is kept and for how long, and who holds keys. */
import { createKey } from "../../app/operations/keys.ts";
import { type Answer, type Ctx, get, post } from "../ctx.ts";
import { type Html, html } from "../html.ts";
import { card, factList, pageHead } from "../parts/blocks.ts";
import { mark } from "../parts/marks.ts";
import { span } from "../parts/time.ts";
import { channelsCard, sendTest, TEST_NEEDS } from "./channels.ts";
import { holdsCard } from "./holds.ts";
import { keysCard, makeKey } from "./keys.ts";
import { retentionCard, retentionNeeds, workRetention } from "./retention.ts";

interface Results {
  keys?: Html;
  retention?: Html;
  channels?: Html;
}

export const settingsRoutes = [
  get("/settings", (ctx) => settings(ctx, {})),
  post("/settings/test", TEST_NEEDS, async (ctx) => settings(ctx, { channels: await sendTest(ctx) })),
  post("/settings/retention", retentionNeeds, async (ctx) =>
    settings(ctx, { retention: await workRetention(ctx) }),
  ),
  post("/settings/keys", createKey, async (ctx) => settings(ctx, { keys: await makeKey(ctx) })),
];

/** The page, with what came of a form at its place. */
async function settings(ctx: Ctx, results: Results): Promise<Answer> {
  const body = html`${pageHead("Settings", "What is configured here. Files and environment set it; this page shows it and does what has to be done by hand.")}
${channelsCard(ctx, results.channels ?? null)}
<div class="columns">${egressCard(ctx)}${serviceCard(ctx)}</div>
${await holdsCard(ctx)}
${retentionCard(ctx, results.retention ?? null)}
${await keysCard(ctx, results.keys ?? null)}`;
  return { page: { title: "Settings", nav: "settings", body } };
}

function egressCard(ctx: Ctx): Html {
  const { in_force, sentences } = ctx.app.egress.describe();
  return card(
    {
      title: "Egress",
      id: "egress",
      aside: in_force ? mark("good", "rules in force") : mark("quiet", "no rules of your own"),
    },
    html`<p>${in_force ? "Egress rules are in force: what leaves this server is held to them." : "No egress rules are in force: this server may reach any host."}</p>`,
    html`<ul class="list">${sentences.map((one) => html`<li>${one}</li>`)}</ul>`,
    html`<p class="soft">They cover notifications, anchors, traces, remote manifests, the OIDC issuer and gateway upstreams. A refusal is logged and never changes a decision.</p>`,
  );
}

function serviceCard(ctx: Ctx): Html {
  const { settings, core, version } = ctx.app;
  const { capture } = settings;
  return card(
    { title: "This server", id: "server" },
    factList([
      ["Version", version],
      ["Environment", settings.environment ?? html`<span class="soft">not named</span>`],
      ["Store", core.store.kind],
      ["Running for", span(core.env.now() - ctx.app.started_ms)],
      ["Console", ctx.mode === "open" ? html`open, as ${ctx.principal.name}` : "login"],
      [
        "Capture",
        capture.enabled
          ? html`${mark("info", "on")} kept for ${span(capture.ttl_ms)}, personal data ${capture.redact_pii ? "redacted" : "kept"}`
          : mark("quiet", "off"),
      ],
      [
        "Signing key",
        ctx.app.signing === null ? mark("quiet", "none") : html`<code>${ctx.app.signing.key_id}</code>`,
      ],
      [
        "Rollback jobs",
        ctx.app.jobTools === null
          ? html`${mark("quiet", "off")} <span class="soft">SVC_COMPENSATOR_CMD is not set</span>`
          : mark("good", "on"),
      ],
      ["OIDC", settings.oidc.issuer ?? html`<span class="soft">no issuer</span>`],
      [
        "Config file",
        settings.meta.file === null
          ? html`<span class="soft">none</span>`
          : html`<code>${settings.meta.file}</code>`,
      ],
    ]),
  );
}
