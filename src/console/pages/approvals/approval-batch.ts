/** Decides several requests at once. A confirmation page first shows their number and values. */

import {
  needsConfirmation,
  OPEN_APPROVAL_STATUSES,
  requestGroups,
} from "../../../govern/approvals/approval.ts";
import { groupQuestion, requestsForTable } from "../../../govern/approvals/request-table.ts";
import { invalidError, messageOf, SvcError } from "../../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import { approveRequest, denyRequest } from "../../../operations/approvals/approvals.ts";
import { findApproval } from "../../../operations/documents.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import type { PageAnswer, PageContext } from "../../page-context.ts";
import { cardBlock, pageHead } from "../../parts/blocks.ts";
import { formElement, inputField, submitButton } from "../../parts/forms.ts";
import { formatCountOf } from "../../parts/marks.ts";
import { givenSignature } from "../sign.ts";
import { type ApprovalLine, chosenLines } from "./approval-data.ts";
import { linesTable, tableHtml } from "./approval-group.ts";
import { idField } from "./approval-list.ts";

const PATH = "/console/approvals";

export type DecisionVerb = "approve" | "deny";

export function readVerb(ctx: PageContext): DecisionVerb {
  const verb = ctx.form.text("decision");
  if (verb !== "approve" && verb !== "deny") throw invalidError("choose approve or deny");
  return verb;
}

interface Decided {
  approval_id: string;
  card_hash: string | undefined;
  group_of?: number;
}

export const decideAs = (ctx: PageContext, verb: DecisionVerb, what: Decided) =>
  ctx.call(verb === "approve" ? approveRequest : denyRequest, {
    ...what,
    ...(verb === "approve" ? givenSignature(ctx) : {}),
    note: ctx.form.optional("note"),
  });

export async function needsSecondGesture({ app }: PageContext, id: string): Promise<boolean> {
  const approval = await findApproval(app, id);
  return approval !== undefined && needsConfirmation(approval, app.core.rules().manifests);
}

/** Decides the chosen requests if the form repeats their number, else shows the confirmation page. */
export async function decideMany(ctx: PageContext): Promise<PageAnswer> {
  const verb = readVerb(ctx);
  const chosen = new Map(ctx.form.all("id").map((value) => value.split(" ") as [string, string | undefined]));
  if (chosen.size === 0) throw invalidError("select at least one request");
  if (chosen.size > SERVICE_LIMITS.page_max)
    throw invalidError(`at most ${SERVICE_LIMITS.page_max} requests at once`);
  if (ctx.form.text("confirmed") !== String(chosen.size)) return confirmation(ctx, verb, [...chosen.keys()]);
  if (chosen.size > SERVICE_LIMITS.group_rows)
    throw invalidError(`at most ${SERVICE_LIMITS.group_rows} requests in one decision`);
  const problems: SvcError[] = [];
  let waiting = 0;
  for (const [approval_id, card_hash] of chosen) {
    try {
      if (await needsSecondGesture(ctx, approval_id))
        throw invalidError("this call must be decided separately");
      const done = await decideAs(ctx, verb, { approval_id, card_hash, group_of: chosen.size });
      if (OPEN_APPROVAL_STATUSES.has(done.status)) waiting++;
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      problems.push(error);
    }
  }
  const done = chosen.size - problems.length;
  if (done === 0 && problems.every(({ code }) => code === "forbidden")) throw problems[0]!;
  const settled = `${formatCountOf(done - waiting, "request")} ${verb === "approve" ? "approved" : "denied"}.`;
  const said =
    waiting === 0
      ? settled
      : `${settled} ${formatCountOf(waiting, "request still needs", "requests still need")} more approvals.`;
  if (problems.length === 0) return { to: PATH, notice: { kind: "ok", text: said } };
  const why = [...new Set(problems.map(messageOf))].slice(0, 3).join("; ");
  return {
    to: PATH,
    notice: {
      kind: "warn",
      text: `${said} ${formatCountOf(problems.length, "request was", "requests were")} not decided: ${why}.`,
    },
  };
}

/** Lists the requests that one decision covers. Requests that do not fit the page come after it. */
async function confirmation(
  ctx: PageContext,
  verb: DecisionVerb,
  ids: readonly string[],
): Promise<PageAnswer> {
  const open = await chosenLines(ctx, ids);
  const able = open.filter(({ card_hash }) => card_hash !== null);
  const listed = requestsForTable(able);
  if (listed.length === 0)
    throw invalidError("none of these requests can be decided together: open each one");
  const byId = new Map(listed.map((line) => [line.approval.id, line]));
  const groups = requestGroups(listed.map(({ approval }) => approval)).map(({ requests, tool, actor }) => {
    const lines = requests.map(({ id }) => byId.get(id)!);
    const found = linesTable(lines);
    return cardBlock({ title: groupQuestion(verb, { tool, actor }, found) }, tableHtml(found, lines[0]!));
  });
  const word = verb === "approve" ? "Approve" : "Deny";
  const body = safeHtml`${pageHead(`${word} ${formatCountOf(listed.length, "request")}?`, "Nothing is decided yet.")}
${leftOut(ids.length, open.length, able.length, listed.length)}
${groups}
${confirmForm(ctx, verb, listed)}`;
  return { page: { title: `${word} ${formatCountOf(listed.length, "request")}`, nav: "approvals", body } };
}

function leftOut(chosen: number, open: number, able: number, listed: number): HtmlFragment {
  const said = [
    ...(chosen > open ? [`${chosen - open} can no longer be decided`] : []),
    ...(open > able ? [`${open - able} must be decided separately, or by someone else`] : []),
    ...(able > listed ? [`${able - listed} do not fit on this page`] : []),
  ];
  if (said.length === 0) return emptyHtml;
  return safeHtml`<p class="notice warn">This page lists ${listed} of the ${chosen} selected requests: ${said.join("; ")}.</p>`;
}

function confirmForm(ctx: PageContext, verb: DecisionVerb, lines: readonly ApprovalLine[]): HtmlFragment {
  const isApproval = verb === "approve";
  return formElement(
    ctx,
    { action: PATH, class: "form confirm-group" },
    safeHtml`${lines.map(idField)}<input type="hidden" name="confirmed" value="${lines.length}"><input type="hidden" name="decision" value="${verb}">`,
    inputField({ label: "Note for all", name: "note", value: ctx.form.text("note"), maxlength: 4_000 }),
    safeHtml`<p class="actions">${submitButton(
      `${isApproval ? "Approve" : "Deny"} ${formatCountOf(lines.length, "request")}`,
      isApproval ? "good" : "danger",
    )} <a class="button" href="${PATH}">Cancel</a></p>`,
  );
}
