/** Anchors card of the Evidence page: ledger heads published outside this machine. */
import { formatCountOf } from "../../../kernel/text/phrases.ts";
import { publishAnchor } from "../../../operations/evidence/anchors.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import { type PageAnswer, type PageContext, postRoute } from "../../page-context.ts";
import { bulletList, cardBlock, factList } from "../../parts/blocks.ts";
import { formElement, submitButton } from "../../parts/forms.ts";
import { markLabel } from "../../parts/marks.ts";
import { formatSpan } from "../../parts/time.ts";

export const anchorRoutes = [postRoute("/evidence/anchor", publishAnchor, publish)];

export function anchorCard(ctx: PageContext): HtmlFragment {
  const { sinks, interval_ms } = ctx.app.settings.anchor;
  if (sinks.length === 0) {
    return cardBlock(
      { title: "Anchors", id: "anchors" },
      safeHtml`<p>No anchor sink is configured, so nobody outside would notice if this entire ledger were replaced.</p>`,
      safeHtml`<p class="soft">Add one, ideally on another machine: <code>anchor: {sinks: [{type: file, path: anchors.jsonl}]}</code></p>`,
    );
  }
  return cardBlock(
    { title: "Anchors", id: "anchors", aside: markLabel("good", `every ${formatSpan(interval_ms)}`) },
    factList([
      [
        "Sinks",
        bulletList(
          sinks.map((sink) =>
            sink.type === "file"
              ? safeHtml`file <code>${sink.path}</code>`
              : safeHtml`${sink.type} at ${new URL(sink.url).host}`,
          ),
        ),
      ],
    ]),
    ctx.may(publishAnchor)
      ? formElement(
          ctx,
          { action: "/console/evidence/anchor", class: "inline" },
          submitButton("Publish an anchor"),
        )
      : emptyHtml,
  );
}

async function publish(ctx: PageContext): Promise<PageAnswer> {
  const { anchor, sinks } = await ctx.call(publishAnchor, {});
  return {
    to: "/console/evidence#anchors",
    notice: {
      kind: "ok",
      text: `The ledger head at ${anchor.records} records was published to ${formatCountOf(sinks.length, "sink")}.`,
    },
  };
}
