/** Form for a grant that starts from a call: a condition for each argument, and the calls that these would allow. */
import type { z } from "zod";
import {
  type ArgumentChoice,
  argumentLabel,
  type LikeArgument,
  likeValue,
} from "../../../govern/approvals/grant-from-call.ts";
import type { GrantMatch, GrantTerms } from "../../../govern/grants/grant.ts";
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import type { grantInput } from "../../../operations/grants/grant-input.ts";
import { emptyHtml, type HtmlFragment, safeHtml } from "../../html.ts";
import type { PageContext } from "../../page-context.ts";
import { checkboxField, formElement, inputField, selectField, submitButton } from "../../parts/forms.ts";
import type { ShownRequest } from "../approvals/approval-data.ts";
import { MAX_GRANT_HOURS } from "./grant-fields.ts";

export const APPROVE_SIMILAR_LABEL = "Approve, and the next ones like this";

/** Facts of the call that prefill the grant. */
export interface SimilarCall {
  match: GrantMatch;
  rules: string[];
  irreversible: boolean;
  found: LikeArgument[];
  budget: LikeArgument | undefined;
}

/** Grant from the submitted form. Fields that were not sent come from the call. */
export interface SimilarGrantDraft {
  choices: ArgumentChoice[];
  grant: Omit<z.input<typeof grantInput>, "reason" | "when" | "args_only">;
  hours: number;
  /** Null until the user has chosen a condition for each masked argument. */
  allowed: { terms: Pick<GrantTerms, "when" | "args_only">; sentence: string; hash: string } | null;
}

interface AlikeFacts {
  shown: ShownRequest;
  like: SimilarCall;
  draft: SimilarGrantDraft;
}

export function similarGrantFields(ctx: PageContext, { shown, like, draft }: AlikeFacts): HtmlFragment {
  const { approval, card } = shown;
  const { grant, choices, hours, allowed } = draft;
  const numbers = like.found.filter(({ value }) => typeof value === "number" && value >= 0);
  return formElement(
    ctx,
    { action: `/console/approvals/${approval.id}/alike`, class: "form alike" },
    safeHtml`<input type="hidden" name="card_hash" value="${card?.card_hash ?? ""}"><input type="hidden" name="allows" value="${allowed?.hash ?? ""}">
${allowedText(like, draft)}
<fieldset class="arguments"><legend>Condition for each argument</legend>${like.found.map((one, i) => argumentRow(one, choices[i]!, i))}</fieldset>
<div class="row">${inputField({ label: "Number of calls", name: "max_uses", type: "number", value: String(grant.max_uses), required: true, hint: `1 to ${SERVICE_LIMITS.grant_uses}` })}${inputField({ label: "Valid for hours", name: "hours", value: String(hours), required: true, hint: `at most ${MAX_GRANT_HOURS}` })}</div>`,
    numbers.length === 0
      ? emptyHtml
      : safeHtml`<div class="row">${selectField({
          label: "Budget on",
          name: "budget_path",
          value: grant.budget?.path ?? "",
          choices: [
            ["", "nothing"],
            ...numbers.map(({ path, name }) => [path, argumentLabel(name)] as const),
          ],
        })}${inputField({ label: "Maximum total", name: "budget_max", value: grant.budget == null ? "" : String(grant.budget.max), hint: "over all of these calls" })}</div>`,
    inputField({
      label: "Reason",
      name: "reason",
      value: ctx.form.text("reason"),
      required: true,
      maxlength: SERVICE_LIMITS.reason_chars,
    }),
    like.irreversible
      ? checkboxField("irreversible", "These calls cannot be undone.", ctx.form.checked("irreversible"))
      : null,
    safeHtml`<p class="actions">${submitButton("Approve and grant", "good")}${submitButton("Preview", "plain", safeHtml` name="show" value="yes" formnovalidate`)}</p>`,
  );
}

function allowedText({ rules, found }: SimilarCall, { allowed, choices }: SimilarGrantDraft): HtmlFragment {
  const open = found.filter((_, i) => choices[i]!.holds === null).map(({ name }) => argumentLabel(name));
  const said =
    allowed === null
      ? safeHtml`<p class="allows">First choose a condition for ${open.join(", ")}: a grant cannot use a value that is masked or not stored.</p>`
      : safeHtml`<p class="allows"><b>This would allow:</b> ${allowed.sentence}.</p>`;
  return safeHtml`${said}<p class="soft">It replaces only the approval that ${rules.length === 1 ? "rule" : "rules"} ${rules.join(", ")} ${rules.length === 1 ? "requires" : "require"}. Other rules still require approval.</p>`;
}

const WORDS = { exact: "same as this call", most: "at most", any: "any value" } as const;

/** The choices depend on how much is known about the value. */
function argumentRow(one: LikeArgument, { holds, most }: ArgumentChoice, i: number): HtmlFragment {
  const { name, value } = one;
  const label = argumentLabel(name);
  const isNumber = typeof value === "number" && value >= 0;
  const choices: [string, string][] = [
    ...(value === undefined ? [["", "choose"] as [string, string]] : []),
    ...(isNumber ? [["most", WORDS.most] as [string, string]] : []),
    ...(value === undefined ? [] : [["exact", WORDS.exact] as [string, string]]),
    ["any", WORDS.any],
  ];
  const now = value === undefined ? "masked or not stored" : likeValue(value);
  return safeHtml`<div class="row argument">${selectField({ label: `${label} (now ${now})`, name: `holds_${i}`, value: holds ?? "", choices })}${
    isNumber
      ? inputField({ label: `${label} at most`, name: `most_${i}`, value: String(most ?? value) })
      : emptyHtml
  }</div>`;
}
