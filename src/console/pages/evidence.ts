/** The Evidence page: is the ledger sound, what proves it to others, and the switch that stops everything. */
import { isWithinTenant } from "../../app/door/perform.ts";
import { bundleLedger, evidenceKey, verifyLedger } from "../../app/operations/bundles.ts";
import { ledgerCheckpoint } from "../../app/operations/checkpoints.ts";
import { periodReport } from "../../app/operations/reports.ts";
import { shownRecords } from "../../store/confined.ts";
import { type Answer, type Ctx, get, post } from "../ctx.ts";
import { type Html, html } from "../html.ts";
import { card, command, factList, notice, pageHead } from "../parts/blocks.ts";
import { containmentsCard, readContainments } from "../parts/containments.ts";
import { button, form, select } from "../parts/forms.ts";
import { hashText, idText } from "../parts/ids.ts";
import { mark } from "../parts/marks.ts";
import { took, when } from "../parts/time.ts";
import { anchorCard } from "./anchors.ts";
import { haltCard } from "./halts.ts";
import { ledgerCard } from "./ledger.ts";

export const evidenceRoutes = [get("/evidence", evidence), post("/evidence/verify", verifyLedger, verify)];

async function evidence(ctx: Ctx): Promise<Answer> {
  const body = html`${pageHead("Evidence", "What happened can be proved to somebody who does not trust this server.", html`<a class="button" href="/console/oversight">Human oversight</a>`)}
${await haltCard(ctx)}${containmentsCard(await readContainments(ctx))}
<div class="columns">${await healthCard(ctx)}<div>${await bundlesCard(ctx)}${anchorCard(ctx)}</div></div>
${await ledgerCard(ctx)}`;
  return {
    page: {
      title: "Evidence",
      nav: "evidence",
      body,
      live: `/console/evidence?${new URLSearchParams(ctx.query)}`,
    },
  };
}

async function healthCard(ctx: Ctx): Promise<Html> {
  const { store } = ctx.app.core;
  const { hash } = await store.head();
  const records = await shownRecords(store);
  const { last } = ctx.checkup;
  return card(
    {
      title: "Ledger",
      id: "health",
      live: true,
      aside:
        last === null
          ? mark("quiet", "not verified yet")
          : last.ok
            ? mark("good", "sound")
            : mark("bad", "not sound"),
    },
    factList([
      ["Records", records.toLocaleString("en")],
      ["Head", hashText(hash, "the head", 16)],
      ["Store", ctx.app.core.store.kind],
      last === null
        ? null
        : [
            "Verified",
            html`${when(last.at_ms)} <span class="soft">by ${last.by}, ${last.records.toLocaleString("en")} records in ${took(last.took_ms)}</span>`,
          ],
    ]),
    last?.first_bad == null
      ? null
      : notice(
          "bad",
          html`<p class="said">Record ${last.first_bad.seq} is the first bad one: ${last.first_bad.problem}.</p><p>Keep the data as it is, block all new calls, and compare with the last bundle or anchor that was good.</p>`,
        ),
    isWithinTenant(verifyLedger, ctx.principal)
      ? form(ctx, { action: "/console/evidence/verify", class: "inline" }, button("Verify now", "primary"))
      : null,
    html`<p class="soft">Recomputes every hash and every link, from the first record to the last. Others can do the same without this server:</p>`,
    command("svc verify -d data/"),
  );
}

/** Everybody who may look may also verify. */
async function verify(ctx: Ctx): Promise<Answer> {
  ctx.demand(verifyLedger);
  const { ok, records, took_ms } = await ctx.checkup.run(ctx.principal.name);
  return {
    to: "/console/evidence#health",
    notice: ok
      ? {
          kind: "ok",
          text: `The ledger is sound: ${records.toLocaleString("en")} records verified in ${took(took_ms)}.`,
        }
      : { kind: "warn", text: "The ledger does not verify. See below." },
  };
}

async function bundlesCard(ctx: Ctx): Promise<Html> {
  if (!ctx.has(bundleLedger)) {
    return card(
      { title: "Signed bundles", id: "bundles" },
      html`<p>Not enabled here: a bundle is signed, and no signing key is configured.</p>`,
      command("svc keygen evidence"),
      html`<p class="soft">Then set <code>SVC_SIGNING_KEY=evidence.key</code> and restart.</p>`,
      reportForm(ctx),
    );
  }
  const { key_id } = await ctx.call(evidenceKey, {});
  return card(
    { title: "Signed bundles", id: "bundles" },
    html`<p>Records with their proofs, signed with Ed25519. A run's own bundle is on its page.</p>`,
    html`<p class="actions">${ctx.may(bundleLedger) ? html`<a class="button primary" href="/console/evidence/bundle">Bundle of the whole ledger</a> ` : null}<a class="button" href="/console/evidence/key">Public key</a>${ctx.may(ledgerCheckpoint) ? html` <a class="button" href="/console/evidence/checkpoint">Checkpoint</a>` : null}</p>`,
    factList([["Key", idText(key_id, "the key's id")]]),
    html`<p class="soft">Whoever gets it checks it without this server: <code>svc verify-bundle</code>, the Python SDK, or the page in <code>viewer/</code>.</p>`,
    reportForm(ctx),
  );
}

function reportForm(ctx: Ctx): Html | null {
  if (!ctx.has(periodReport)) return null;
  return html`<h3>Period report</h3><form method="get" action="/console/evidence/report" class="form"><div class="row">${select(
    {
      label: "Since",
      name: "since",
      value: "7d",
      choices: [
        ["1d", "yesterday"],
        ["7d", "a week ago"],
        ["30d", "30 days ago"],
        ["90d", "90 days ago"],
      ],
    },
  )}${select({
    label: "As",
    name: "format",
    value: "html",
    choices: [
      ["html", "a page"],
      ["pdf", "PDF"],
      ["md", "Markdown"],
      ["json", "JSON"],
    ],
  })}</div><button type="submit">Make it</button></form>`;
}
