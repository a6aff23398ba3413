/** Evidence page: ledger state, halts, signed bundles, anchors and ledger records. */

import { bundleLedger, evidenceKey, verifyLedger } from "../../../operations/evidence/bundles.ts";
import { ledgerCheckpoint } from "../../../operations/evidence/checkpoints.ts";
import { periodReport } from "../../../operations/evidence/reports.ts";
import { countRecords, ledgerOf } from "../../../operations/ledger-reader.ts";
import { isWithinTenant } from "../../../operations/pipeline/dispatch.ts";
import { storeKind } from "../../../operations/status.ts";
import { type HtmlFragment, safeHtml } from "../../html.ts";
import { getRoute, type PageAnswer, type PageContext, postRoute } from "../../page-context.ts";
import { cardBlock, commandBlock, factList, noticeBox, pageHead } from "../../parts/blocks.ts";
import { containmentsCard, readContainments } from "../../parts/containments.ts";
import { formElement, selectField, submitButton } from "../../parts/forms.ts";
import { hashText, idText } from "../../parts/ids.ts";
import { markLabel } from "../../parts/marks.ts";
import { formatElapsed, formatTime } from "../../parts/time.ts";
import { haltCard } from "../halts.ts";
import { anchorCard } from "./anchors.ts";
import { ledgerCard } from "./ledger.ts";

export const evidenceRoutes = [
  getRoute("/evidence", evidence),
  postRoute("/evidence/verify", verifyLedger, verify),
];

async function evidence(ctx: PageContext): Promise<PageAnswer> {
  const body = safeHtml`${pageHead("Evidence", "Proof of what happened, for people who do not trust this server.", safeHtml`<a class="button" href="/console/oversight">Oversight report</a>`)}
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

async function healthCard(ctx: PageContext): Promise<HtmlFragment> {
  const { hash } = await ledgerOf(ctx.app).head();
  const records = await countRecords(ctx.app);
  const { last } = ctx.checkup;
  return cardBlock(
    {
      title: "Ledger",
      id: "health",
      live: true,
      aside:
        last === null
          ? markLabel("quiet", "not verified yet")
          : last.ok
            ? markLabel("good", "sound")
            : markLabel("bad", "not sound"),
    },
    factList([
      ["Records", records.toLocaleString("en")],
      ["Head", hashText(hash, "the head", 16)],
      ["Store", storeKind(ctx.app)],
      last === null
        ? null
        : [
            "Verified",
            safeHtml`${formatTime(last.at_ms)} <span class="soft">by ${last.by}, ${last.records.toLocaleString("en")} records in ${formatElapsed(last.took_ms)}</span>`,
          ],
    ]),
    last?.first_bad == null
      ? null
      : noticeBox(
          "bad",
          safeHtml`<p class="said">Record ${last.first_bad.seq} is the first bad record: ${last.first_bad.problem}.</p><p>Keep the data unchanged, block all new calls, and compare with the last good bundle or anchor.</p>`,
        ),
    isWithinTenant(verifyLedger, ctx.principal)
      ? formElement(
          ctx,
          { action: "/console/evidence/verify", class: "inline" },
          submitButton("Verify now", "primary"),
        )
      : null,
    safeHtml`<p class="soft">Recomputes every hash and every link. Anyone with the data can do the same without this server:</p>`,
    commandBlock("svc verify -d data/"),
  );
}

/** Verification needs no more than the role to view the page. */
async function verify(ctx: PageContext): Promise<PageAnswer> {
  ctx.demand(verifyLedger);
  const { ok, records, took_ms } = await ctx.checkup.run(ctx.principal.name);
  return {
    to: "/console/evidence#health",
    notice: ok
      ? {
          kind: "ok",
          text: `The ledger is sound: ${records.toLocaleString("en")} records verified in ${formatElapsed(took_ms)}.`,
        }
      : { kind: "warn", text: "The ledger does not verify. See below." },
  };
}

async function bundlesCard(ctx: PageContext): Promise<HtmlFragment> {
  if (!ctx.has(bundleLedger)) {
    return cardBlock(
      { title: "Signed bundles", id: "bundles" },
      safeHtml`<p>Not enabled: bundles need a signing key, and none is configured.</p>`,
      commandBlock("svc keygen evidence"),
      safeHtml`<p class="soft">Then set <code>SVC_SIGNING_KEY=evidence.key</code> and restart.</p>`,
      reportForm(ctx),
    );
  }
  const { key_id } = await ctx.call(evidenceKey, {});
  return cardBlock(
    { title: "Signed bundles", id: "bundles" },
    safeHtml`<p>Ledger records with their proofs, signed with Ed25519. For the bundle of one run, open the run.</p>`,
    safeHtml`<p class="actions">${ctx.may(bundleLedger) ? safeHtml`<a class="button primary" href="/console/evidence/bundle">Bundle of the whole ledger</a> ` : null}<a class="button" href="/console/evidence/key">Public key</a>${ctx.may(ledgerCheckpoint) ? safeHtml` <a class="button" href="/console/evidence/checkpoint">Checkpoint</a>` : null}</p>`,
    factList([["Key", idText(key_id, "the key's id")]]),
    safeHtml`<p class="soft">Recipients can verify it without this server, with <code>svc verify-bundle</code>, the Python SDK, or the page in <code>viewer/</code>.</p>`,
    reportForm(ctx),
  );
}

function reportForm(ctx: PageContext): HtmlFragment | null {
  if (!ctx.has(periodReport)) return null;
  return safeHtml`<h3>Period report</h3><form method="get" action="/console/evidence/report" class="form"><div class="row">${selectField(
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
  )}${selectField({
    label: "As",
    name: "format",
    value: "html",
    choices: [
      ["html", "a page"],
      ["pdf", "PDF"],
      ["md", "Markdown"],
      ["json", "JSON"],
    ],
  })}</div><button type="submit">Create report</button></form>`;
}
