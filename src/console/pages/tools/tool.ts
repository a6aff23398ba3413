/** Tool page: its manifest, versions, undo and recent runs. */
import { undoKindText } from "../../../govern/cards/undo-summary.ts";
import { notFoundError } from "../../../kernel/errors.ts";
import { proofWordsOf } from "../../../operations/drills/drill-results.ts";
import { searchRuns } from "../../../operations/runs/search.ts";
import type { ToolManifest } from "../../../rules/manifest/types.ts";
import { compareVersions } from "../../../rules/manifest/version.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import type { PageAnswer, PageContext } from "../../page-context.ts";
import { bulletList, cardBlock, emptyState, factList, pageHead, tableBlock } from "../../parts/blocks.ts";
import { effectMark, lifecycleMark, markLabel, proofMark } from "../../parts/marks.ts";
import { runsTable, waitingRuns } from "../runs/runs.ts";
import { moveForms } from "./registry.ts";

export async function toolPage(ctx: PageContext): Promise<PageAnswer> {
  const tool = ctx.params["tool"]!;
  const { manifests } = ctx.app.core.rules();
  const active = manifests.active(tool);
  const found = await ctx.call(searchRuns, { tool, limit: 20 });
  if (active === undefined && found.runs.length === 0)
    throw notFoundError(`unknown tool ${tool}: no manifest and no run names it`);
  const versions = manifests.all
    .filter((one) => one.tool === tool)
    .sort((a, b) => compareVersions(b.version, a.version));
  const body = safeHtml`${pageHead(safeHtml`<code>${tool}</code>`, active === undefined ? "No manifest describes this tool." : describeEffect(active), safeHtml`<a class="button" href="/console/impact?tool=${encodeURIComponent(tool)}">Preview a call</a>`)}
<div class="columns">${active === undefined ? unclassified() : manifestCard(active)}<div>${active === undefined ? emptyHtml : undoCard(active, await proofWordsOf(ctx.app.core, tool))}${versions.length === 0 ? emptyHtml : versionsCard(ctx, versions, active)}</div></div>
${cardBlock({ title: "Runs that called it", id: "runs", live: true }, found.runs.length === 0 ? emptyState("No runs yet") : runsTable(found.runs, ctx.app.core.env.now(), await waitingRuns(ctx)))}`;
  return { page: { title: tool, nav: "tools", body, live: `/console/tools/${encodeURIComponent(tool)}` } };
}

function describeEffect({ effect }: ToolManifest): string {
  const words = {
    read: "Reads only.",
    idempotent: "Can be repeated without harm.",
    reversible: "Makes changes that can be undone exactly.",
    compensable: "Makes changes that can be compensated, but not undone exactly.",
    irreversible: "Cannot be undone.",
  };
  return words[effect];
}

function unclassified(): HtmlFragment {
  return cardBlock(
    { title: "Unclassified" },
    emptyState(
      "No manifest",
      safeHtml`<p>Add a manifest for this tool, so that its calls can be evaluated and undone.</p>`,
    ),
  );
}

function manifestCard(manifest: ToolManifest): HtmlFragment {
  const { risk, audit } = manifest;
  const { data_class, blast_radius, ...labels } = risk;
  return cardBlock(
    { title: "Manifest", aside: safeHtml`${lifecycleMark(manifest.lifecycle)} ${manifest.version}` },
    factList([
      ["Effect", effectMark(manifest.effect)],
      ["Permission", safeHtml`<code>${manifest.permission}</code>`],
      ["Owner", manifest.owner ?? safeHtml`<span class="soft">not set</span>`],
      ["Data class", data_class ?? safeHtml`<span class="soft">not set</span>`],
      ["Blast radius", blast_radius ?? safeHtml`<span class="soft">not set</span>`],
      ...Object.entries(labels).map(
        ([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)] as const,
      ),
      manifest.requires.length === 0
        ? null
        : ["Must run first", safeHtml`${manifest.requires.map((one) => safeHtml`<code>${one}</code> `)}`],
      manifest.idempotency.length === 0
        ? null
        : ["One call per", safeHtml`${manifest.idempotency.map((one) => safeHtml`<code>${one}</code> `)}`],
      audit.redaction.length === 0
        ? null
        : ["Redacted", safeHtml`${audit.redaction.map((one) => safeHtml`<code>${one}</code> `)}`],
      audit.retention_days === null ? null : ["Kept for", `${audit.retention_days} days at least`],
      audit.evidence_export === null ? null : ["Evidence", markLabel("info", "a bundle before deletion")],
    ]),
  );
}

function undoCard({ compensation, verification, effect }: ToolManifest, proof: string | null): HtmlFragment {
  if (compensation === null)
    return cardBlock(
      { title: "Undo" },
      safeHtml`<p>${effect === "irreversible" ? safeHtml`<strong>Calls cannot be undone.</strong>` : "There is nothing to undo."}</p>`,
    );
  return cardBlock(
    { title: "Undo" },
    factList([
      ["Tool", safeHtml`<code>${compensation.tool}</code>`],
      proof === null ? null : ["Proof", proofMark(proof)],
      ["Kind", `${compensation.kind}: ${undoKindText(compensation.kind)}`],
      ["Arguments", safeHtml`<code>${JSON.stringify(compensation.args)}</code>`],
      ["Approval", compensation.requires_approval ? markLabel("warn", "needed") : "not needed"],
      [
        "Read back",
        verification === null
          ? safeHtml`${markLabel("quiet", "no")}`
          : safeHtml`<code>${verification.tool}</code> must show <code>${JSON.stringify(verification.expect)}</code>`,
      ],
    ]),
    compensation.residue.length === 0
      ? emptyHtml
      : safeHtml`<p class="soft">Side effects that remain:</p>${bulletList(compensation.residue, "residue")}`,
  );
}

function versionsCard(
  ctx: PageContext,
  versions: readonly ToolManifest[],
  active: ToolManifest | undefined,
): HtmlFragment {
  return cardBlock(
    { title: "Versions", id: "versions" },
    tableBlock(
      "Versions of the manifest",
      ["Version", "Lifecycle", "Action"],
      versions.map((one) => [
        safeHtml`${one.version}${one === active ? safeHtml` ${markLabel("info", "active")}` : null}`,
        lifecycleMark(one.lifecycle),
        moveForms(ctx, one),
      ]),
    ),
  );
}
