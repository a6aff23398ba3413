/** The Drills page: which undos are proven, which never were and which fail; drilling them, where that is allowed. */
import { drillable } from "../../app/operations/drills/proofs.ts";
import { listDrills, mayDrillHere, startDrills } from "../../app/operations/drills.ts";
import type { Manifest } from "../../model/manifest/types.ts";
import { type DrillDoc, proofOf } from "../../model/proof.ts";
import { type Answer, type Ctx, get, post } from "../ctx.ts";
import { type Html, html, nothing } from "../html.ts";
import { card, empty, pageHead, table } from "../parts/blocks.ts";
import { button, form } from "../parts/forms.ts";
import { runLink, toolLink } from "../parts/ids.ts";
import { plural, proofMark } from "../parts/marks.ts";
import { ago } from "../parts/time.ts";

const PATH = "/console/drills";

export const drillRoutes = [get("/drills", drills), post("/drills", startDrills, start)];

async function drills(ctx: Ctx): Promise<Answer> {
  const last = new Map((await ctx.call(listDrills, {})).drills.map((drill) => [drill.tool, drill]));
  const tools = drillable(ctx.app.core);
  const list =
    tools.length === 0
      ? empty(
          "No drills",
          html`<p>No manifest declares <code>drill</code>, a harmless example of the call by which its undo is proven.</p>`,
        )
      : table(
          "Drills",
          ["Tool", "Undo", "Tried", "Run", "What went wrong", "Action"],
          tools.map((manifest) => rowOf(ctx, manifest, last.get(manifest.tool))),
        );
  const body = html`${pageHead("Drills", "Undos, proven before they are needed: the call is made, undone and read back.")}
${card({ title: "Drills", id: "drills", live: true }, list)}${startCard(ctx)}`;
  return { page: { title: "Drills", nav: "drills", body, live: PATH } };
}

function rowOf(ctx: Ctx, manifest: Manifest, drill: DrillDoc | undefined): (Html | string)[] {
  const { tool } = manifest;
  const proof = proofOf(drill, ctx.app.core.rules().manifests.hashOf(manifest));
  const upstream = upstreamsOf(ctx).find((name) => offers(ctx, name, manifest));
  return [
    toolLink(tool),
    // When it was tried stands beside it.
    proofMark(proof.state),
    proof.at_ms === null ? "" : ago(proof.at_ms, ctx.app.core.env.now()),
    drill === undefined || drill.run_id === null ? "" : runLink(drill.run_id),
    proof.state === "failing" ? (drill?.problem ?? "") : "",
    upstream === undefined || !allowed(ctx) ? "" : drillForm(ctx, { upstream, tool }, "Drill"),
  ];
}

const upstreamsOf = ({ app }: Ctx): string[] => app.settings.upstreams.map(({ name }) => name);

const offers = ({ app }: Ctx, upstream: string, { tool }: Manifest): boolean =>
  app.drills?.(upstream).offers(tool) === true;

const allowed = (ctx: Ctx): boolean => ctx.may(startDrills) && mayDrillHere(ctx.app);

function drillForm(ctx: Ctx, fields: Record<string, string>, label: string): Html {
  const confirm = `Calls are made for real through ${fields["upstream"]}, and undone.`;
  const hidden = Object.entries(fields).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  );
  return form(ctx, { action: PATH, class: "inline", confirm, verb: "Drill" }, ...hidden, button(label));
}

function startCard(ctx: Ctx): Html {
  const off = ctx.whyOff(startDrills);
  if (off !== null) return card({ title: "Start drills", id: "start" }, html`<p class="soft">${off}</p>`);
  if (!allowed(ctx)) return nothing;
  const tools = drillable(ctx.app.core);
  const forms = upstreamsOf(ctx)
    .filter((upstream) => tools.some((manifest) => offers(ctx, upstream, manifest)))
    .map((upstream) => drillForm(ctx, { upstream }, `Drill what is due through ${upstream}`));
  if (forms.length === 0) return nothing;
  return card({ title: "Start drills", id: "start" }, ...forms);
}

async function start(ctx: Ctx): Promise<Answer> {
  ctx.demandConfirmed(startDrills);
  const tool = ctx.form.optional("tool");
  const what = tool === undefined ? { due: true } : { tools: [tool] };
  const { job } = await ctx.call(startDrills, { ...what, upstream: ctx.form.optional("upstream") });
  const text =
    job.tools.length === 0
      ? "Nothing is due."
      : `${plural(job.tools.length, "drill")} begun through ${job.upstream}.`;
  return { to: PATH, notice: { kind: "ok", text } };
}
