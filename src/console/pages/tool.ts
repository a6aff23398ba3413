/** One tool: its manifest in words, its versions, and the runs that called it lately. */
import { proofWordsOf } from "../../app/operations/drills/proofs.ts";
import { searchRuns } from "../../app/operations/search.ts";
import { notFound } from "../../kernel/errors.ts";
import type { Manifest } from "../../model/manifest/types.ts";
import { compareVersions } from "../../model/manifest/version.ts";
import type { Answer, Ctx } from "../ctx.ts";
import { type Html, html, nothing } from "../html.ts";
import { bullets, card, empty, factList, pageHead, table } from "../parts/blocks.ts";
import { effectMark, lifecycleMark, mark, proofMark } from "../parts/marks.ts";
import { moveForms } from "./registry.ts";
import { runsTable, waitingRuns } from "./runs.ts";

export async function toolPage(ctx: Ctx): Promise<Answer> {
  const tool = ctx.params["tool"]!;
  const { manifests } = ctx.app.core.rules();
  const active = manifests.active(tool);
  const found = await ctx.call(searchRuns, { tool, limit: 20 });
  if (active === undefined && found.runs.length === 0)
    throw notFound(`no manifest and no run knows the tool ${tool}`);
  const versions = manifests.all
    .filter((one) => one.tool === tool)
    .sort((a, b) => compareVersions(b.version, a.version));
  const body = html`${pageHead(html`<code>${tool}</code>`, active === undefined ? "No manifest describes this tool." : describeEffect(active), html`<a class="button" href="/console/impact?tool=${encodeURIComponent(tool)}">Preview a call</a>`)}
<div class="columns">${active === undefined ? unclassified() : manifestCard(active)}<div>${active === undefined ? nothing : undoCard(active, await proofWordsOf(ctx.app.core, tool))}${versions.length === 0 ? nothing : versionsCard(ctx, versions, active)}</div></div>
${card({ title: "Runs that called it", id: "runs", live: true }, found.runs.length === 0 ? empty("No run called it yet") : runsTable(found.runs, ctx.app.core.env.now(), await waitingRuns(ctx)))}`;
  return { page: { title: tool, nav: "tools", body, live: `/console/tools/${encodeURIComponent(tool)}` } };
}

function describeEffect({ effect }: Manifest): string {
  const words = {
    read: "Reads only.",
    idempotent: "May be repeated without harm.",
    reversible: "Changes something that can be taken back exactly.",
    compensable: "Changes something that can be made good, not unmade.",
    irreversible: "Cannot be undone.",
  };
  return words[effect];
}

function unclassified(): Html {
  return card(
    { title: "Unclassified" },
    empty(
      "Nobody has said what this tool does",
      html`<p>Add a manifest for it, so that calls can be judged and undone.</p>`,
    ),
  );
}

function manifestCard(manifest: Manifest): Html {
  const { risk, audit } = manifest;
  const { data_class, blast_radius, ...labels } = risk;
  return card(
    { title: "Manifest", aside: html`${lifecycleMark(manifest.lifecycle)} ${manifest.version}` },
    factList([
      ["Effect", effectMark(manifest.effect)],
      ["Permission", html`<code>${manifest.permission}</code>`],
      ["Owner", manifest.owner ?? html`<span class="soft">nobody named</span>`],
      ["Data class", data_class ?? html`<span class="soft">not said</span>`],
      ["Blast radius", blast_radius ?? html`<span class="soft">not said</span>`],
      ...Object.entries(labels).map(
        ([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)] as const,
      ),
      manifest.requires.length === 0
        ? null
        : ["Must run first", html`${manifest.requires.map((one) => html`<code>${one}</code> `)}`],
      manifest.idempotency.length === 0
        ? null
        : ["One call per", html`${manifest.idempotency.map((one) => html`<code>${one}</code> `)}`],
      audit.redaction.length === 0
        ? null
        : ["Redacted", html`${audit.redaction.map((one) => html`<code>${one}</code> `)}`],
      audit.retention_days === null ? null : ["Kept for", `${audit.retention_days} days at least`],
      audit.evidence_export === null ? null : ["Evidence", mark("info", "a bundle before deletion")],
    ]),
  );
}

function undoCard({ compensation, verification, effect }: Manifest, proof: string | null): Html {
  if (compensation === null)
    return card(
      { title: "Undo" },
      html`<p>${effect === "irreversible" ? html`<strong>Nothing can take a call back.</strong>` : "There is nothing to undo."}</p>`,
    );
  return card(
    { title: "Undo" },
    factList([
      ["Tool", html`<code>${compensation.tool}</code>`],
      proof === null ? null : ["Proof", proofMark(proof)],
      [
        "Kind",
        compensation.kind === "inverse" ? "inverse: restores the exact state" : "compensation: makes amends",
      ],
      ["Arguments", html`<code>${JSON.stringify(compensation.args)}</code>`],
      ["Approval", compensation.requires_approval ? mark("warn", "needed") : "not needed"],
      [
        "Read back",
        verification === null
          ? html`${mark("quiet", "no")}`
          : html`<code>${verification.tool}</code> must show <code>${JSON.stringify(verification.expect)}</code>`,
      ],
    ]),
    compensation.residue.length === 0
      ? nothing
      : html`<p class="soft">What stays all the same:</p>${bullets(compensation.residue, "residue")}`,
  );
}

function versionsCard(ctx: Ctx, versions: readonly Manifest[], active: Manifest | undefined): Html {
  return card(
    { title: "Versions", id: "versions" },
    table(
      "Versions of the manifest",
      ["Version", "Lifecycle", "Action"],
      versions.map((one) => [
        html`${one.version}${one === active ? html` ${mark("info", "speaks for the tool")}` : null}`,
        lifecycleMark(one.lifecycle),
        moveForms(ctx, one),
      ]),
    ),
  );
}
