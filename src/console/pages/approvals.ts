/** The Approvals page: what waits for a person, decided one by one or together, and what was decided lately. */
import {
  approve as approveOp,
  breakGlass as breakGlassOp,
  deny as denyOp,
  listApprovals,
} from "../../app/operations/approvals.ts";
import { invalid, messageOf, SvcError } from "../../kernel/errors.ts";
import { APPROVAL_STATUSES, OPEN_APPROVAL } from "../../model/approval.ts";
import { type Answer, type Ctx, get, post } from "../ctx.ts";
import { sentence } from "../errors.ts";
import { type Html, html } from "../html.ts";
import { card, empty, pageHead, pager, table } from "../parts/blocks.ts";
import { nameText, runLink } from "../parts/ids.ts";
import { approvalMark, plural } from "../parts/marks.ts";
import { when } from "../parts/time.ts";
import { approvalCard, bulkBar } from "./approval-card.ts";
import { judgeable, openApprovals } from "./approval-data.ts";
import { approvalTabs } from "./approval-tabs.ts";
import { delegationsCard, mayDecide } from "./delegations.ts";
import { alikeForm } from "./grant-alike.ts";

const MOST_CARDS = 50;
const PATH = "/console/approvals";

export const approvalRoutes = [
  get("/approvals", waiting),
  get("/approvals/decided", decided),
  post("/approvals", decideMany),
  post("/approvals/:id", decideOne),
  post("/approvals/:id/break-glass", breakGlass),
];

async function waiting(ctx: Ctx): Promise<Answer> {
  const open = await openApprovals(ctx);
  const shown = open.slice(0, MOST_CARDS);
  const may_decide = await mayDecide(ctx);
  const judged = await Promise.all(shown.map((approval) => judgeable(ctx, approval)));
  const alike = await Promise.all(shown.map((approval) => alikeForm(ctx, approval)));
  const bulk = may_decide && shown.length > 1;
  const body = html`${pageHead("Approvals", "Calls that wait for a person. The agent is told to try again once you decide.")}
${approvalTabs("waiting")}
<div id="waiting" data-live>${
    shown.length === 0
      ? nobodyWaits()
      : html`${bulk ? bulkBar(ctx, shown.length) : null}${judged.map((one, i) => approvalCard(ctx, one, { may_decide, bulk, alike: alike[i]! }))}`
  }${open.length > MOST_CARDS ? html`<p class="soft">${MOST_CARDS} of ${open.length} are shown; the others come up as these are decided.</p>` : null}</div>
${await delegationsCard(ctx)}
<p class="soft"><a href="/console/oversight">Oversight</a>: how these decisions are made.</p>`;
  return { page: { title: "Approvals", nav: "approvals", body, live: PATH } };
}

function nobodyWaits(): Html {
  return empty(
    "Nobody is waiting",
    html`<p>A request appears here when a policy rule says <code>action: require_approval</code>, when a risk score reaches <code>risk.require_approval_at</code>, or when an undo says <code>requires_approval: true</code>.</p>`,
    html`<p><a class="button" href="/console/policy">See the policy</a> <a class="button" href="/console/impact">Try a call</a></p>`,
  );
}

async function decided(ctx: Ctx): Promise<Answer> {
  const wanted = APPROVAL_STATUSES.find((status) => status === ctx.query["status"]);
  const query = { status: wanted, ...(ctx.query["cursor"] && { cursor: ctx.query["cursor"] }) };
  const { approvals, next_cursor } = await ctx.call(listApprovals, query);
  const rows = approvals
    .filter(({ status }) => wanted !== undefined || !OPEN_APPROVAL.has(status))
    .map((one) => [
      approvalMark(one.status),
      html`<code>${one.tool}</code>`,
      nameText(one.actor),
      runLink(one.run_id),
      one.decided_by === null ? "" : html`${one.decided_by}${one.break_glass ? " (break glass)" : ""}`,
      one.note ?? "",
      when(one.decided_ms ?? one.requested_ms),
    ]);
  const list =
    rows.length === 0
      ? empty(
          "Nothing was decided yet",
          html`<p>Requests come here once they are approved, denied, used or expired.</p>`,
        )
      : table("Decided requests", ["Status", "Tool", "Actor", "Run", "Decided by", "Note", "When"], rows);
  const body = html`${pageHead("Approvals", "What was decided, by whom, and what they noted.")}${approvalTabs("decided")}
${card({ title: "Decided", id: "decided", live: true }, list, pager(`${PATH}/decided`, ctx.query, next_cursor ?? null))}`;
  return { page: { title: "Decided approvals", nav: "approvals", body, live: `${PATH}/decided` } };
}

type Verb = "approve" | "deny";

function readVerb(ctx: Ctx): Verb {
  const verb = ctx.form.text("decision");
  if (verb !== "approve" && verb !== "deny") throw invalid("choose approve or deny");
  return verb;
}

const decide = (ctx: Ctx, id: string, verb: Verb) =>
  ctx.call(verb === "approve" ? approveOp : denyOp, {
    approval_id: id,
    note: ctx.form.optional("note"),
  });

async function decideOne(ctx: Ctx): Promise<Answer> {
  const approval = await decide(ctx, ctx.params["id"]!, readVerb(ctx));
  const { tool, actor, status } = approval;
  const text = OPEN_APPROVAL.has(status)
    ? `Your approval of ${tool} counts; ${plural(approval.approvers.quorum - approval.votes.length, "more is", "more are")} needed.`
    : `${sentence(status)}: ${tool} for ${actor}.`;
  return { to: PATH, notice: { kind: "ok", text } };
}

async function decideMany(ctx: Ctx): Promise<Answer> {
  const verb = readVerb(ctx);
  const chosen = ctx.form.all("id");
  const ids = ctx.form.checked("all")
    ? (await openApprovals(ctx)).slice(0, MOST_CARDS).map(({ id }) => id)
    : chosen;
  if (ids.length === 0) throw invalid("choose at least one request");
  if (ids.length > MOST_CARDS) throw invalid(`at most ${MOST_CARDS} requests at once`);
  const problems: SvcError[] = [];
  for (const id of new Set(ids)) {
    try {
      await decide(ctx, id, verb);
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      problems.push(error);
    }
  }
  const done = new Set(ids).size - problems.length;
  if (done === 0 && problems.every(({ code }) => code === "forbidden")) throw problems[0]!;
  const said = `${plural(done, "request")} ${verb === "approve" ? "approved" : "denied"}.`;
  if (problems.length === 0) return { to: PATH, notice: { kind: "ok", text: said } };
  const why = [...new Set(problems.map(messageOf))].slice(0, 3).join("; ");
  return {
    to: PATH,
    notice: { kind: "warn", text: `${said} ${plural(problems.length, "was", "were")} not: ${why}.` },
  };
}

async function breakGlass(ctx: Ctx): Promise<Answer> {
  ctx.demandConfirmed(breakGlassOp);
  const { tool } = await ctx.call(breakGlassOp, {
    approval_id: ctx.params["id"]!,
    reason: ctx.form.text("reason"),
  });
  return { to: PATH, notice: { kind: "warn", text: `Approved alone: ${tool}. An alert was raised.` } };
}
