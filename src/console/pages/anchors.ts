/** Anchors: the head of the ledger, published where this machine cannot change it. */
import { publishAnchor } from "../../app/operations/anchors.ts";
import { type Answer, type Ctx, post } from "../ctx.ts";
import { type Html, html, nothing } from "../html.ts";
import { bullets, card, factList } from "../parts/blocks.ts";
import { button, form } from "../parts/forms.ts";
import { mark } from "../parts/marks.ts";
import { span } from "../parts/time.ts";

export const anchorRoutes = [post("/evidence/anchor", publishAnchor, publish)];

export function anchorCard(ctx: Ctx): Html {
  const { sinks, interval_ms } = ctx.app.settings.anchor;
  if (sinks.length === 0) {
    return card(
      { title: "Anchors", id: "anchors" },
      html`<p>Nobody outside would notice if this whole ledger were replaced: no anchor sink is configured.</p>`,
      html`<p class="soft">Add one: <code>anchor: {sinks: [{type: file, path: anchors.jsonl}]}</code>, best on another machine.</p>`,
    );
  }
  return card(
    { title: "Anchors", id: "anchors", aside: mark("good", `every ${span(interval_ms)}`) },
    factList([
      [
        "Sinks",
        bullets(
          sinks.map((sink) =>
            sink.type === "file"
              ? html`file <code>${sink.path}</code>`
              : html`${sink.type} at ${new URL(sink.url).host}`,
          ),
        ),
      ],
    ]),
    ctx.may(publishAnchor)
      ? form(ctx, { action: "/console/evidence/anchor", class: "inline" }, button("Publish an anchor now"))
      : nothing,
  );
}

async function publish(ctx: Ctx): Promise<Answer> {
  const { anchor, sinks } = await ctx.call(publishAnchor, {});
  return {
    to: "/console/evidence#anchors",
    notice: {
      kind: "ok",
      text: `The head at ${anchor.records} records is anchored in ${sinks.length} places.`,
    },
  };
}
