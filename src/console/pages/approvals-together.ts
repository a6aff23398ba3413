/** Deciding several requests at once: first a page that says how many and which values, then the decision itself. */
import { approve, deny } from "../../app/operations/approvals.ts";
import { invalid, messageOf, SvcError } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { isIrreversible, OPEN_APPROVAL, requestGroups } from "../../model/approval.ts";
import { groupQuestion, tableful } from "../../model/request-table.ts";
import type { Answer, Ctx } from "../ctx.ts";
import { type Html, html, nothing } from "../html.ts";
import { card, pageHead } from "../parts/blocks.ts";
import { button, form, input } from "../parts/forms.ts";
import { plural } from "../parts/marks.ts";
import { type ApprovalLine, chosenLines } from "./approval-data.ts";
import { linesTable, tableHtml } from "./approval-group.ts";
import { idField } from "./approval-list.ts";

const PATH = "/console/approvals";

export type Verb = "approve" | "deny";

export function readVerb(ctx: Ctx): Verb {
  const verb = ctx.form.text("decision");
  if (verb !== "approve" && verb !== "deny") throw invalid("choose approve or deny");
  return verb;
}

interface Decided {
  approval_id: string;
  card_hash: string | undefined;
  group_of?: number;
}

export const decideAs = (ctx: Ctx, verb: Verb, what: Decided) =>
  ctx.call(verb === "approve" ? approve : deny, { ...what, note: ctx.form.optional("note") });

export async function isIrreversibleRequest({ app }: Ctx, id: string): Promise<boolean> {
  const approval = await app.core.store.get("approvals", id);
  return approval !== undefined && isIrreversible(approval, app.core.rules().manifests);
}

/** The number that the confirmation repeats comes back with it; anything else is asked again. */
export async function decideMany(ctx: Ctx): Promise<Answer> {
  const verb = readVerb(ctx);
  const chosen = new Map(ctx.form.all("id").map((value) => value.split(" ") as [string, string | undefined]));
  if (chosen.size === 0) throw invalid("choose at least one request");
  if (chosen.size > LIMITS.page_max) throw invalid(`at most ${LIMITS.page_max} requests at once`);
  if (ctx.form.text("confirmed") !== String(chosen.size)) return confirmation(ctx, verb, [...chosen.keys()]);
  if (chosen.size > LIMITS.group_rows) throw invalid(`at most ${LIMITS.group_rows} requests in one decision`);
  const problems: SvcError[] = [];
  let waiting = 0;
  for (const [approval_id, card_hash] of chosen) {
    try {
      if (await isIrreversibleRequest(ctx, approval_id))
        throw invalid("an irreversible call is decided by itself");
      const done = await decideAs(ctx, verb, { approval_id, card_hash, group_of: chosen.size });
      if (OPEN_APPROVAL.has(done.status)) waiting++;
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      problems.push(error);
    }
  }
  const done = chosen.size - problems.length;
  if (done === 0 && problems.every(({ code }) => code === "forbidden")) throw problems[0]!;
  const settled = `${plural(done - waiting, "request")} ${verb === "approve" ? "approved" : "denied"}.`;
  const said =
    waiting === 0 ? settled : `${settled} ${plural(waiting, "waits", "wait")} for others to approve too.`;
  if (problems.length === 0) return { to: PATH, notice: { kind: "ok", text: said } };
  const why = [...new Set(problems.map(messageOf))].slice(0, 3).join("; ");
  return {
    to: PATH,
    notice: { kind: "warn", text: `${said} ${plural(problems.length, "was", "were")} not: ${why}.` },
  };
}

/** One decision is about the requests that this page lists; what does not fit comes after it. */
async function confirmation(ctx: Ctx, verb: Verb, ids: readonly string[]): Promise<Answer> {
  const open = await chosenLines(ctx, ids);
  const able = open.filter(({ card_hash }) => card_hash !== null);
  const listed = tableful(able);
  if (listed.length === 0)
    throw invalid("none of these requests can be decided with others: open each by itself");
  const byId = new Map(listed.map((line) => [line.approval.id, line]));
  const groups = requestGroups(listed.map(({ approval }) => approval)).map(({ requests, tool, actor }) => {
    const lines = requests.map(({ id }) => byId.get(id)!);
    const found = linesTable(lines);
    return card({ title: groupQuestion(verb, { tool, actor }, found) }, tableHtml(found, lines[0]!));
  });
  const word = verb === "approve" ? "Approve" : "Deny";
  const body = html`${pageHead(`${word} ${plural(listed.length, "request")}?`, "Nothing is decided yet.")}
${leftOut(ids.length, open.length, able.length, listed.length)}
${groups}
${confirmForm(ctx, verb, listed)}`;
  return { page: { title: `${word} ${plural(listed.length, "request")}`, nav: "approvals", body } };
}

function leftOut(chosen: number, open: number, able: number, listed: number): Html {
  const said = [
    ...(chosen > open ? [`${chosen - open} can no longer be decided`] : []),
    ...(open > able ? [`${open - able} are decided by themselves, or not by you`] : []),
    ...(able > listed ? [`${able - listed} come after these`] : []),
  ];
  if (said.length === 0) return nothing;
  return html`<p class="notice warn">${listed} of the ${chosen} chosen are on this page: ${said.join("; ")}.</p>`;
}

function confirmForm(ctx: Ctx, verb: Verb, lines: readonly ApprovalLine[]): Html {
  const isApproval = verb === "approve";
  return form(
    ctx,
    { action: PATH, class: "form confirm-group" },
    html`${lines.map(idField)}<input type="hidden" name="confirmed" value="${lines.length}"><input type="hidden" name="decision" value="${verb}">`,
    input({ label: "Note for all", name: "note", value: ctx.form.text("note"), maxlength: 4_000 }),
    html`<p class="actions">${button(
      `${isApproval ? "Approve" : "Deny"} ${plural(lines.length, "request")}`,
      isApproval ? "good" : "danger",
    )} <a class="button" href="${PATH}">Cancel</a></p>`,
  );
}
