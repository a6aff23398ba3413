/** Policy versions of the registry: drafts, the one in force, and those before it. */
import type { AnswerTo } from "../../app/door/operation.ts";
import { activatePolicy, publishPolicy, readRegistry } from "../../app/operations/registry.ts";
import { type Answer, type Ctx, post } from "../ctx.ts";
import { type Html, html, nothing } from "../html.ts";
import { card, empty, table } from "../parts/blocks.ts";
import { button, form } from "../parts/forms.ts";
import { hashText } from "../parts/ids.ts";
import { mark, type Tone } from "../parts/marks.ts";

type Version = AnswerTo<typeof readRegistry>["policies"][number];

const STATUS: Record<Version["status"], Tone> = { draft: "warn", active: "good", retired: "quiet" };

export const activateRoute = post("/policy/versions/:version/activate", activatePolicy, activate);

export async function versionsCard(ctx: Ctx): Promise<Html> {
  if (!ctx.may(readRegistry) || !ctx.has(publishPolicy)) return nothing;
  const { policies } = await ctx.call(readRegistry, {});
  const may = ctx.may(activatePolicy);
  return card(
    { title: "Versions", id: "versions" },
    policies.length === 0
      ? empty(
          "No version was published yet",
          html`<p>Publish a draft above; an admin puts it in force, and every activation stands on the ledger.</p>`,
        )
      : table(
          "Policy versions",
          ["Version", "State", "Hash", "By", "Note", "Action"],
          policies
            .toReversed()
            .map((one) => [
              html`<a href="/console/policy?version=${encodeURIComponent(one.version)}#text" title="Opens its text on the bench">${one.version}</a>`,
              mark(STATUS[one.status], one.status),
              hashText(one.hash, "the version's hash", 8),
              one.created_by ?? "",
              one.note ?? "",
              may && one.status !== "active" ? activateForm(ctx, one.version) : "",
            ]),
        ),
  );
}

/** The versions that a text can be compared with. */
export async function versionNames(ctx: Ctx): Promise<string[]> {
  if (!ctx.may(readRegistry) || !ctx.has(publishPolicy)) return [];
  const { policies } = await ctx.call(readRegistry, {});
  return policies.map(({ version }) => version).toReversed();
}

function activateForm(ctx: Ctx, version: string): Html {
  return form(
    ctx,
    {
      action: `/console/policy/versions/${encodeURIComponent(version)}/activate`,
      class: "inline",
      confirm: `Put version ${version} in force for every call from now on.`,
      verb: "Activate",
    },
    button("Activate", "danger"),
  );
}

async function activate(ctx: Ctx): Promise<Answer> {
  ctx.demandConfirmed(activatePolicy);
  const entry = await ctx.call(activatePolicy, { version: ctx.params["version"]! });
  const { version } = entry;
  if ("waiting_for" in entry) {
    const text = `Version ${version} is looser somewhere: it waits until another admin activates it, too.`;
    return { to: "/console/policy#versions", notice: { kind: "ok", text } };
  }
  return { to: "/console/policy#versions", notice: { kind: "ok", text: `Version ${version} is in force.` } };
}
