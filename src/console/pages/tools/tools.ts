/** Tools page: registered tools with their effect, undo, owner and number of calls. */
import { listConnectors } from "../../../operations/registry/connectors.ts";
import type { ToolManifest } from "../../../rules/manifest/types.ts";
import { compareVersions } from "../../../rules/manifest/version.ts";
import { emptyHtml, type HtmlFragment, safeHtml, type TemplateValue } from "../../html.ts";
import { getRoute, type PageAnswer, type PageContext } from "../../page-context.ts";
import { cardBlock, commandBlock, emptyState, nextAction, pageHead, tableBlock } from "../../parts/blocks.ts";
import { inputField } from "../../parts/forms.ts";
import { toolLink } from "../../parts/ids.ts";
import { effectMark, formatCountOf, lifecycleMark, markLabel } from "../../parts/marks.ts";
import { registryCard } from "./registry.ts";
import { toolPage } from "./tool.ts";

export const toolsRoutes = [getRoute("/tools", tools), getRoute("/tools/:tool", toolPage)];

async function tools(ctx: PageContext): Promise<PageAnswer> {
  const { manifests } = ctx.app.core.rules();
  const names = [...new Set(manifests.all.map(({ tool }) => tool))].sort();
  const q = ctx.query["q"]?.toLowerCase() ?? "";
  const shown = names
    .map((name) => manifests.active(name)!)
    .filter((manifest) => textOf(manifest).includes(q));
  const { calls } = await ctx.counts.lastDay(ctx.app.core.env.now());
  const unknown = [...calls.keys()]
    .filter((tool) => manifests.active(tool) === undefined && tool.toLowerCase().includes(q))
    .sort();
  const body = safeHtml`${pageHead("Tools", `${formatCountOf(names.length, "tool")} with a manifest. Calls to other tools are blocked, except in observe mode.`)}
<form method="get" action="/console/tools" class="filters" role="search">${inputField({ label: "Search", name: "q", type: "search", value: ctx.query["q"] ?? "", placeholder: "tool, owner, permission or data class", class: "wide" })}<button type="submit" class="primary">Search</button></form>
${cardBlock({ title: "Registered", id: "tools", live: true }, shown.length === 0 ? none(q !== "") : toolsTable(shown, calls, manifests.all))}
${
  unknown.length === 0
    ? null
    : cardBlock(
        { title: "Called without a manifest" },
        safeHtml`<p class="soft">In the last 24 hours. Without a manifest, these calls cannot be evaluated or undone.</p>`,
        tableBlock(
          "Tools without a manifest",
          ["Tool", "Calls"],
          unknown.map((tool) => [toolLink(tool), String(calls.get(tool))]),
        ),
      )
}
${await connectorsCard(ctx)}
${await registryCard(ctx)}`;
  return {
    page: { title: "Tools", nav: "tools", body, live: `/console/tools?${new URLSearchParams(ctx.query)}` },
  };
}

/** Tool servers behind a gateway. Empty for a standalone server. */
async function connectorsCard(ctx: PageContext): Promise<HtmlFragment> {
  const { connectors } = await ctx.call(listConnectors, {});
  if (connectors.length === 0) return emptyHtml;
  const rows = connectors.map(({ name, transport, ok, tools }) => [
    name,
    transport,
    ok ? markLabel("good", "connected") : markLabel("bad", "down"),
    String(tools),
  ]);
  return cardBlock(
    { title: "Tool servers", id: "connectors", live: true },
    tableBlock("Tool servers", ["Name", "Transport", "State", "Tools"], rows),
  );
}

const textOf = ({ tool, owner, permission, risk }: ToolManifest): string =>
  [tool, owner ?? "", permission, risk.data_class ?? ""].join("\n").toLowerCase();

function toolsTable(
  shown: readonly ToolManifest[],
  calls: ReadonlyMap<string, number>,
  all: readonly ToolManifest[],
): HtmlFragment {
  return tableBlock(
    "Registered tools",
    ["Tool", "Effect", "Undo", "Permission", "Owner", "Data, blast radius", "Version", "Calls, 24 h"],
    shown.map((manifest) => {
      const versions = all
        .filter(({ tool }) => tool === manifest.tool)
        .sort((a, b) => compareVersions(b.version, a.version));
      return [
        toolLink(manifest.tool),
        effectMark(manifest.effect),
        undoWords(manifest),
        safeHtml`<code>${breakable(manifest.permission)}</code>`,
        manifest.owner ?? safeHtml`<span class="soft">not set</span>`,
        safeHtml`${manifest.risk.data_class ?? ""}${manifest.risk.blast_radius === null ? "" : safeHtml` <span class="soft">· ${manifest.risk.blast_radius}</span>`}`,
        safeHtml`${lifecycleMark(manifest.lifecycle)} ${manifest.version}${versions.length > 1 ? safeHtml` <span class="soft">of ${versions.length}</span>` : null}`,
        callsText(calls.get(manifest.tool) ?? 0),
      ];
    }),
    "tools",
  );
}

/** A name that can break after its dots and underscores, so that eight columns fit on a desktop screen. */
const breakable = (name: string): TemplateValue[] =>
  name.split(/(?<=[._])/).flatMap((part) => [part, safeHtml`<wbr>`]);

/** Number with a unit that only phones show, where the table has no column headers. */
const callsText = (count: number): HtmlFragment =>
  safeHtml`${count.toLocaleString("en")}<span class="small-only"> ${count === 1 ? "call" : "calls"}</span>`;

function undoWords({ compensation, effect }: ToolManifest): HtmlFragment {
  if (compensation !== null) return safeHtml`<code>${breakable(compensation.tool)}</code>`;
  return safeHtml`<span class="soft">${effect === "irreversible" ? "impossible" : "not needed"}</span>`;
}

function none(filtered: boolean): HtmlFragment {
  return filtered
    ? emptyState(
        "No matching tools",
        safeHtml`<p>Try another search.</p>`,
        nextAction("/console/tools", "Show all tools"),
      )
    : emptyState(
        "No manifests are loaded",
        safeHtml`<p>A manifest describes a tool: its effect, its permission, and how to undo it. Calls to tools without a manifest are blocked. Load your manifests:</p>`,
        commandBlock("svc server -m manifests/"),
      );
}
