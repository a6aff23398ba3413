/** Upstreams page: the connections of people to tool servers, connect, and revoke. */
import { invalidError } from "../../../kernel/errors.ts";
import {
  type ConnectionView,
  connectUpstream,
  disconnectUpstream,
  listUpstreams,
} from "../../../operations/upstreams/upstreams.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import { getRoute, type PageAnswer, type PageContext, postRoute } from "../../page-context.ts";
import { cardBlock, emptyState, pageHead, tableBlock } from "../../parts/blocks.ts";
import { foldedForm, formElement, submitButton } from "../../parts/forms.ts";
import { formatAgo } from "../../parts/time.ts";

const PATH = "/console/upstreams";

export const upstreamRoutes = [
  getRoute("/upstreams", upstreamsPage),
  postRoute("/upstreams/:name/link", connectUpstream, connect),
  postRoute("/upstreams/:id/revoke", disconnectUpstream, revoke),
];

async function upstreamsPage(ctx: PageContext): Promise<PageAnswer> {
  const { upstreams, connections } = await ctx.call(listUpstreams, {});
  const off = ctx.whyOff(connectUpstream);
  const body = safeHtml`${pageHead("Upstreams", "Tool servers at which people consent, and who is connected.")}
${off === null ? serverCards(ctx, upstreams, connections) : cardBlock({ title: "Upstreams" }, safeHtml`<p>${off}</p>`)}
${connectionsCard(ctx, connections)}`;
  return { page: { title: "Upstreams", nav: "tools", body } };
}

type Listed = { name: string; type: "oauth" | "exchange"; per: "principal" | "service" };

function serverCards(
  ctx: PageContext,
  upstreams: readonly Listed[],
  connections: readonly ConnectionView[],
): HtmlFragment {
  const rows = upstreams.map(({ name, type, per }) => {
    const mine = connections.some(
      (one) => one.upstream === name && one.principal === (per === "service" ? null : ctx.principal.id),
    );
    return [
      name,
      WHO[type === "exchange" ? type : per],
      mine ? "connected" : "not connected",
      connectForm(ctx, name, type, per),
    ];
  });
  if (rows.length === 0)
    return cardBlock({ title: "Upstreams" }, emptyState("No tool server here needs consent."));
  return cardBlock(
    { title: "Upstreams", id: "servers" },
    tableBlock("Upstreams", ["Tool server", "Consent", "For you", "Action"], rows),
  );
}

const WHO = {
  principal: "each person",
  service: "an admin, for everybody",
  exchange: "none; callers' tokens are exchanged",
} as const;

function connectForm(ctx: PageContext, name: string, type: Listed["type"], per: Listed["per"]): HtmlFragment {
  if (type === "exchange" || (per === "service" && !ctx.is("admin"))) return emptyHtml;
  return formElement(ctx, { action: `${PATH}/${encodeURIComponent(name)}/link` }, submitButton("Connect"));
}

function connectionsCard(ctx: PageContext, connections: readonly ConnectionView[]): HtmlFragment {
  const now = ctx.app.core.env.now();
  if (connections.length === 0)
    return cardBlock({ title: "Connected", id: "connections" }, emptyState("Nobody is connected."));
  const rows = connections.map((one) => [
    one.upstream,
    one.name,
    one.tenant ?? "",
    one.scopes.join(" "),
    new URL(one.issuer).host,
    safeHtml`${formatAgo(one.connected_ms, now)} by ${one.connected_by}`,
    ctx.is("admin") || one.principal === ctx.principal.id ? revokeForm(ctx, one) : "",
  ]);
  const heads = ["Tool server", "Who", "Tenant", "Scopes", "Issuer", "Connected", "Action"];
  return cardBlock({ title: "Connected", id: "connections" }, tableBlock("Connected", heads, rows));
}

function revokeForm(ctx: PageContext, { id }: ConnectionView): HtmlFragment {
  return foldedForm(
    "Revoke",
    formElement(
      ctx,
      {
        action: `${PATH}/${id}/revoke`,
        confirm: "Its tokens are deleted here and revoked at the issuer.",
        verb: "Revoke",
      },
      submitButton("Revoke", "danger"),
    ),
  );
}

async function connect(ctx: PageContext): Promise<PageAnswer> {
  const { url } = await ctx.call(connectUpstream, { upstream: ctx.params["name"]! });
  // The same page under this browser's own address.
  return { to: new URL(url).pathname };
}

async function revoke(ctx: PageContext): Promise<PageAnswer> {
  if (!ctx.form.checked("confirm")) throw invalidError("check the box that confirms this action");
  const { upstream, name } = await ctx.call(disconnectUpstream, { connection_id: ctx.params["id"]! });
  return { to: PATH, notice: { kind: "ok", text: `Disconnected ${name} from ${upstream}.` } };
}
