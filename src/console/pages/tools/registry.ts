/** Registry card of the Tools page: publishes, approves and deprecates manifests. */
import {
  approveManifest,
  deprecateManifest,
  publishManifest,
  readRegistry,
} from "../../../operations/registry/registry.ts";
import type { ToolManifest } from "../../../rules/manifest/types.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import { type PageAnswer, type PageContext, postRoute } from "../../page-context.ts";
import { cardBlock, tableBlock } from "../../parts/blocks.ts";
import { foldedForm, formElement, submitButton, textareaField } from "../../parts/forms.ts";
import { lifecycleMark } from "../../parts/marks.ts";
import { formatTime } from "../../parts/time.ts";

export const registryRoutes = [
  postRoute("/registry/manifests", publishManifest, publish),
  postRoute("/registry/manifests/:tool/approve", approveManifest, (ctx) => move(ctx, "approve")),
  postRoute("/registry/manifests/:tool/deprecate", deprecateManifest, (ctx) => move(ctx, "deprecate")),
];

const SAMPLE = `- tool: crm.create_contact
  version: "1"
  effect: compensable
  permission: crm.write
  compensation:
    tool: crm.delete_contact
    args: {id: $result.id}
`;

/** Empty without a registry directory, and for users who cannot read it. */
export async function registryCard(ctx: PageContext): Promise<HtmlFragment> {
  if (!ctx.may(readRegistry)) return emptyHtml;
  const { manifests } = await ctx.call(readRegistry, {});
  const drafts = manifests.filter(({ lifecycle }) => lifecycle === "draft");
  return cardBlock(
    { title: "Registry", id: "registry" },
    safeHtml`<p class="soft">Operators publish drafts and admins approve them. The ledger records both.</p>`,
    drafts.length === 0
      ? safeHtml`<p class="calm">No drafts.</p>`
      : tableBlock(
          "Drafts",
          ["Tool", "Version", "State", "By", "When", "Action"],
          drafts.map((one) => [
            safeHtml`<code>${one.tool}</code>`,
            one.version,
            lifecycleMark(one.lifecycle),
            one.created_by ?? "",
            one.created_ms === null ? "" : formatTime(one.created_ms),
            moveForms(ctx, one),
          ]),
        ),
    ctx.may(publishManifest)
      ? foldedForm(
          "Publish a manifest",
          formElement(
            ctx,
            { action: "/console/registry/manifests" },
            textareaField({
              label: "Manifest (YAML)",
              name: "yaml",
              rows: 10,
              mono: true,
              required: true,
              value: SAMPLE,
            }),
            submitButton("Publish as draft", "primary"),
          ),
        )
      : emptyHtml,
  );
}

/** Forms for an admin to approve or deprecate this version. */
export function moveForms(
  ctx: PageContext,
  { tool, version, lifecycle }: Pick<ToolManifest, "tool" | "version" | "lifecycle">,
): HtmlFragment {
  if (!ctx.may(approveManifest)) return emptyHtml;
  const to = (verb: string) => `/console/registry/manifests/${encodeURIComponent(tool)}/${verb}`;
  const hidden = safeHtml`<input type="hidden" name="version" value="${version}">`;
  if (lifecycle === "draft")
    return formElement(
      ctx,
      { action: to("approve"), class: "inline" },
      hidden,
      submitButton("Approve", "good"),
    );
  if (lifecycle === "approved")
    return formElement(ctx, { action: to("deprecate"), class: "inline" }, hidden, submitButton("Deprecate"));
  return emptyHtml;
}

async function publish(ctx: PageContext): Promise<PageAnswer> {
  const { tool, version } = await ctx.call(publishManifest, {
    yaml: ctx.form.document("yaml"),
  });
  return {
    to: "/console/tools#registry",
    notice: {
      kind: "ok",
      text: `Draft ${version} of ${tool} is published. It takes effect once an admin approves it.`,
    },
  };
}

async function move(ctx: PageContext, verb: "approve" | "deprecate"): Promise<PageAnswer> {
  const version = ctx.form.optional("version");
  const {
    tool,
    lifecycle,
    version: moved,
  } = await ctx.call(verb === "approve" ? approveManifest : deprecateManifest, {
    tool: ctx.params["tool"]!,
    version,
  });
  return {
    to: `/console/tools/${encodeURIComponent(tool)}`,
    notice: { kind: "ok", text: `Version ${moved} of ${tool} is now ${lifecycle}.` },
  };
}
