/** Drills page: tested, untested and failing undos, and starting drills where the settings allow it. */
import { drillableManifests } from "../../../operations/drills/drill-results.ts";
import { listDrills, mayDrillHere, startDrills } from "../../../operations/drills/drills.ts";
import type { ToolManifest } from "../../../rules/manifest/types.ts";
import { type DrillDoc, undoProofOf } from "../../../rules/undo-proof.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import { getRoute, type PageAnswer, type PageContext, postRoute } from "../../page-context.ts";
import { cardBlock, emptyState, nextAction, pageHead, tableBlock } from "../../parts/blocks.ts";
import { formElement, submitButton } from "../../parts/forms.ts";
import { runLink, toolLink } from "../../parts/ids.ts";
import { formatCountOf, proofMark } from "../../parts/marks.ts";
import { formatAgo } from "../../parts/time.ts";

const PATH = "/console/drills";

export const drillRoutes = [getRoute("/drills", drills), postRoute("/drills", startDrills, start)];

async function drills(ctx: PageContext): Promise<PageAnswer> {
  const last = new Map((await ctx.call(listDrills, {})).drills.map((drill) => [drill.tool, drill]));
  const tools = drillableManifests(ctx.app.core);
  const list =
    tools.length === 0
      ? emptyState(
          "No drills",
          safeHtml`<p>A drill tests an undo with a harmless example call. Add <code>drill</code> to a manifest to list its tool here.</p>`,
          nextAction("/console/tools", "Open the tools"),
        )
      : tableBlock(
          "Drills",
          ["Tool", "Undo", "Tested", "Run", "Problem", "Action"],
          tools.map((manifest) => rowOf(ctx, manifest, last.get(manifest.tool))),
        );
  const body = safeHtml`${pageHead("Drills", "Test undos before you need them: each drill makes a call, undoes it and checks the result.")}
${cardBlock({ title: "Drills", id: "drills", live: true }, list)}${startCard(ctx)}`;
  return { page: { title: "Drills", nav: "drills", body, live: PATH } };
}

function rowOf(
  ctx: PageContext,
  manifest: ToolManifest,
  drill: DrillDoc | undefined,
): (HtmlFragment | string)[] {
  const { tool } = manifest;
  const proof = undoProofOf(drill, ctx.app.core.rules().manifests.hashOf(manifest));
  const upstream = upstreamsOf(ctx).find((name) => offers(ctx, name, manifest));
  return [
    toolLink(tool),
    // The next column shows the time of the drill.
    proofMark(proof.state),
    proof.at_ms === null ? "" : formatAgo(proof.at_ms, ctx.app.core.env.now()),
    drill === undefined || drill.run_id === null ? "" : runLink(drill.run_id),
    proof.state === "failing" ? (drill?.problem ?? "") : "",
    upstream === undefined || !allowed(ctx) ? "" : drillForm(ctx, { upstream, tool }, "Drill"),
  ];
}

const upstreamsOf = ({ app }: PageContext): string[] => app.settings.upstreams.map(({ name }) => name);

const offers = ({ app }: PageContext, upstream: string, { tool }: ToolManifest): boolean =>
  app.drills?.(upstream).offers(tool) === true;

const allowed = (ctx: PageContext): boolean => ctx.may(startDrills) && mayDrillHere(ctx.app);

function drillForm(ctx: PageContext, fields: Record<string, string>, label: string): HtmlFragment {
  const confirm = `This makes real calls through ${fields["upstream"]} and undoes them.`;
  const hidden = Object.entries(fields).map(
    ([name, value]) => safeHtml`<input type="hidden" name="${name}" value="${value}">`,
  );
  return formElement(
    ctx,
    { action: PATH, class: "inline", confirm, verb: "Drill" },
    ...hidden,
    submitButton(label),
  );
}

function startCard(ctx: PageContext): HtmlFragment {
  const off = ctx.whyOff(startDrills);
  if (off !== null)
    return cardBlock({ title: "Start drills", id: "start" }, safeHtml`<p class="soft">${off}</p>`);
  if (!allowed(ctx)) return emptyHtml;
  const tools = drillableManifests(ctx.app.core);
  const forms = upstreamsOf(ctx)
    .filter((upstream) => tools.some((manifest) => offers(ctx, upstream, manifest)))
    .map((upstream) => drillForm(ctx, { upstream }, `Drill due tools through ${upstream}`));
  if (forms.length === 0) return emptyHtml;
  return cardBlock({ title: "Start drills", id: "start" }, ...forms);
}

async function start(ctx: PageContext): Promise<PageAnswer> {
  ctx.demandConfirmed(startDrills);
  const tool = ctx.form.optional("tool");
  const what = tool === undefined ? { due: true } : { tools: [tool] };
  const { job } = await ctx.call(startDrills, { ...what, upstream: ctx.form.optional("upstream") });
  const text =
    job.tools.length === 0
      ? "No drills are due."
      : `Started ${formatCountOf(job.tools.length, "drill")} through ${job.upstream}.`;
  return { to: PATH, notice: { kind: "ok", text } };
}
