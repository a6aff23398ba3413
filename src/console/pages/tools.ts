/** The Tools page: what is registered, what each tool does to the world, who owns it, how often it is called. */
import { listConnectors } from "../../app/operations/connectors.ts";
import type { Manifest } from "../../model/manifest/types.ts";
import { compareVersions } from "../../model/manifest/version.ts";
import { type Answer, type Ctx, get } from "../ctx.ts";
import { type Html, html, nothing } from "../html.ts";
import { card, command, empty, pageHead, table } from "../parts/blocks.ts";
import { input } from "../parts/forms.ts";
import { toolLink } from "../parts/ids.ts";
import { effectMark, lifecycleMark, mark, plural } from "../parts/marks.ts";
import { registryCard } from "./registry.ts";
import { toolPage } from "./tool.ts";

export const toolsRoutes = [get("/tools", tools), get("/tools/:tool", toolPage)];

async function tools(ctx: Ctx): Promise<Answer> {
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
  const body = html`${pageHead("Tools", `${plural(names.length, "tool")} with a manifest. A call to any other is blocked, unless its run only observes.`)}
<form method="get" action="/console/tools" class="filters" role="search">${input({ label: "Search", name: "q", type: "search", value: ctx.query["q"] ?? "", placeholder: "tool, owner, permission or data class", class: "wide" })}<button type="submit" class="primary">Search</button></form>
${card({ title: "Registered", id: "tools", live: true }, shown.length === 0 ? none(q !== "") : toolsTable(shown, calls, manifests.all))}
${
  unknown.length === 0
    ? null
    : card(
        { title: "Called without a manifest" },
        html`<p class="soft">In the last 24 hours. Nobody has said what these do, so nobody can judge or undo them.</p>`,
        table(
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

/** The tool servers behind a gateway; a standalone server has none. */
async function connectorsCard(ctx: Ctx): Promise<Html> {
  const { connectors } = await ctx.call(listConnectors, {});
  if (connectors.length === 0) return nothing;
  const rows = connectors.map(({ name, transport, ok, tools }) => [
    name,
    transport,
    ok ? mark("good", "connected") : mark("bad", "down"),
    String(tools),
  ]);
  return card(
    { title: "Tool servers", id: "connectors", live: true },
    table("Tool servers", ["Name", "Transport", "State", "Tools"], rows),
  );
}

const textOf = ({ tool, owner, permission, risk }: Manifest): string =>
  [tool, owner ?? "", permission, risk.data_class ?? ""].join("\n").toLowerCase();

function toolsTable(
  shown: readonly Manifest[],
  calls: ReadonlyMap<string, number>,
  all: readonly Manifest[],
): Html {
  return table(
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
        html`<code>${manifest.permission}</code>`,
        manifest.owner ?? html`<span class="soft">nobody</span>`,
        html`${manifest.risk.data_class ?? ""}${manifest.risk.blast_radius === null ? "" : html` <span class="soft">· ${manifest.risk.blast_radius}</span>`}`,
        html`${lifecycleMark(manifest.lifecycle)} ${manifest.version}${versions.length > 1 ? html` <span class="soft">of ${versions.length}</span>` : null}`,
        callsText(calls.get(manifest.tool) ?? 0),
      ];
    }),
    "tools",
  );
}

/** On a phone the column has no head. */
const callsText = (count: number): Html =>
  html`${count.toLocaleString("en")}<span class="small-only"> ${count === 1 ? "call" : "calls"}</span>`;

function undoWords({ compensation, effect }: Manifest): Html {
  if (compensation !== null) return html`<code>${compensation.tool}</code>`;
  return html`<span class="soft">${effect === "irreversible" ? "impossible" : "not needed"}</span>`;
}

function none(filtered: boolean): Html {
  return filtered
    ? empty("No tool fits", html`<p>Try another word.</p>`)
    : empty(
        "No manifests are loaded",
        html`<p>A manifest says what a tool does: its effect, the permission it takes, and how to undo it. Without one, calls are blocked.</p>`,
        command("svc server -m manifests/"),
      );
}
