/** The registry of manifests: publishing a draft, approving it, retiring it. */
import {
  approveManifest,
  deprecateManifest,
  publishManifest,
  readRegistry,
} from "../../app/operations/registry.ts";
import type { Manifest } from "../../model/manifest/types.ts";
import { type Answer, type Ctx, post } from "../ctx.ts";
import { type Html, html, nothing } from "../html.ts";
import { card, table } from "../parts/blocks.ts";
import { button, disclosed, form, textarea } from "../parts/forms.ts";
import { lifecycleMark } from "../parts/marks.ts";
import { when } from "../parts/time.ts";

export const registryRoutes = [
  post("/registry/manifests", publishManifest, publish),
  post("/registry/manifests/:tool/approve", approveManifest, (ctx) => move(ctx, "approve")),
  post("/registry/manifests/:tool/deprecate", deprecateManifest, (ctx) => move(ctx, "deprecate")),
];

const SAMPLE = `- tool: crm.create_contact
  version: "1"
  effect: compensable
  permission: crm.write
  compensation:
    tool: crm.delete_contact
    args: {id: $result.id}
`;

/** Only where a registry folder is configured, and for those who may read it. */
export async function registryCard(ctx: Ctx): Promise<Html> {
  if (!ctx.may(readRegistry)) return nothing;
  const { manifests } = await ctx.call(readRegistry, {});
  const drafts = manifests.filter(({ lifecycle }) => lifecycle === "draft");
  return card(
    { title: "Registry", id: "registry" },
    html`<p class="soft">Operators publish drafts; an admin puts them in force. Both stand on the ledger.</p>`,
    drafts.length === 0
      ? html`<p class="calm">No draft waits.</p>`
      : table(
          "Drafts",
          ["Tool", "Version", "State", "By", "When", "Action"],
          drafts.map((one) => [
            html`<code>${one.tool}</code>`,
            one.version,
            lifecycleMark(one.lifecycle),
            one.created_by ?? "",
            one.created_ms === null ? "" : when(one.created_ms),
            moveForms(ctx, one),
          ]),
        ),
    ctx.may(publishManifest)
      ? disclosed(
          "Publish a manifest",
          form(
            ctx,
            { action: "/console/registry/manifests" },
            textarea({
              label: "Manifest (YAML)",
              name: "yaml",
              rows: 10,
              mono: true,
              required: true,
              value: SAMPLE,
            }),
            button("Publish as draft", "primary"),
          ),
        )
      : nothing,
  );
}

/** What an admin may do with this version. */
export function moveForms(
  ctx: Ctx,
  { tool, version, lifecycle }: Pick<Manifest, "tool" | "version" | "lifecycle">,
): Html {
  if (!ctx.may(approveManifest)) return nothing;
  const to = (verb: string) => `/console/registry/manifests/${encodeURIComponent(tool)}/${verb}`;
  const hidden = html`<input type="hidden" name="version" value="${version}">`;
  if (lifecycle === "draft")
    return form(ctx, { action: to("approve"), class: "inline" }, hidden, button("Approve", "good"));
  if (lifecycle === "approved")
    return form(ctx, { action: to("deprecate"), class: "inline" }, hidden, button("Deprecate"));
  return nothing;
}

async function publish(ctx: Ctx): Promise<Answer> {
  const { tool, version } = await ctx.call(publishManifest, {
    yaml: ctx.form.document("yaml"),
  });
  return {
    to: "/console/tools#registry",
    notice: {
      kind: "ok",
      text: `Draft ${version} of ${tool} is published; it counts once an admin approves it.`,
    },
  };
}

async function move(ctx: Ctx, verb: "approve" | "deprecate"): Promise<Answer> {
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
    notice: { kind: "ok", text: `Version ${moved} of ${tool} is ${lifecycle} now.` },
  };
}
