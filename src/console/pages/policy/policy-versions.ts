/** Policy versions in the registry: drafts, the active version and retired ones. */
import type { ResponseOf } from "../../../operations/pipeline/operation.ts";
import { activatePolicy, publishPolicy, readRegistry } from "../../../operations/registry/registry.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import { type PageAnswer, type PageContext, postRoute } from "../../page-context.ts";
import { cardBlock, emptyState, tableBlock } from "../../parts/blocks.ts";
import { formElement, submitButton } from "../../parts/forms.ts";
import { hashText } from "../../parts/ids.ts";
import { type MarkTone, markLabel } from "../../parts/marks.ts";

type Version = ResponseOf<typeof readRegistry>["policies"][number];

const STATUS: Record<Version["status"], MarkTone> = { draft: "warn", active: "good", retired: "quiet" };

export const activateRoute = postRoute("/policy/versions/:version/activate", activatePolicy, activate);

export async function versionsCard(ctx: PageContext): Promise<HtmlFragment> {
  if (!ctx.may(readRegistry) || !ctx.has(publishPolicy)) return emptyHtml;
  const { policies } = await ctx.call(readRegistry, {});
  const may = ctx.may(activatePolicy);
  return cardBlock(
    { title: "Versions", id: "versions" },
    policies.length === 0
      ? emptyState(
          "No versions yet",
          safeHtml`<p>Publish a draft above. An admin can then activate it. The ledger records every activation.</p>`,
        )
      : tableBlock(
          "Policy versions",
          ["Version", "State", "Hash", "By", "Note", "Action"],
          policies
            .toReversed()
            .map((one) => [
              safeHtml`<a href="/console/policy?version=${encodeURIComponent(one.version)}#text" title="Open in the editor">${one.version}</a>`,
              markLabel(STATUS[one.status], one.status),
              hashText(one.hash, "the version's hash", 8),
              one.created_by ?? "",
              one.note ?? "",
              may && one.status !== "active" ? activateForm(ctx, one.version) : "",
            ]),
        ),
  );
}

/** Versions to compare a policy with. */
export async function versionNames(ctx: PageContext): Promise<string[]> {
  if (!ctx.may(readRegistry) || !ctx.has(publishPolicy)) return [];
  const { policies } = await ctx.call(readRegistry, {});
  return policies.map(({ version }) => version).toReversed();
}

function activateForm(ctx: PageContext, version: string): HtmlFragment {
  return formElement(
    ctx,
    {
      action: `/console/policy/versions/${encodeURIComponent(version)}/activate`,
      class: "inline",
      confirm: `Activate version ${version} for every call from now on.`,
      verb: "Activate",
    },
    submitButton("Activate", "danger"),
  );
}

async function activate(ctx: PageContext): Promise<PageAnswer> {
  ctx.demandConfirmed(activatePolicy);
  const entry = await ctx.call(activatePolicy, { version: ctx.params["version"]! });
  const { version } = entry;
  if ("waiting_for" in entry) {
    const text = `Version ${version} is looser than the active one, so another admin must activate it too.`;
    return { to: "/console/policy#versions", notice: { kind: "ok", text } };
  }
  return { to: "/console/policy#versions", notice: { kind: "ok", text: `Version ${version} is active.` } };
}
