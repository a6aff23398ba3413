/** The form for a grant that starts from a call: each argument with what must hold for it, and what that allows. */
import type { z } from "zod";
import type { grantInput } from "../../app/operations/grants/grant-input.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { GrantMatch, GrantTerms } from "../../model/grant.ts";
import { type ArgumentChoice, argumentLabel, type LikeArgument, likeValue } from "../../model/like-call.ts";
import type { Ctx } from "../ctx.ts";
import { type Html, html, nothing } from "../html.ts";
import { button, checkbox, form, input, select } from "../parts/forms.ts";
import type { ShownRequest } from "./approval-data.ts";
import { MOST_HOURS } from "./grant-fields.ts";

export const ALIKE = "Approve, and the next ones like this";

/** The call at hand, as far as a grant can be filled in from it. */
export interface LikeCall {
  match: GrantMatch;
  rules: string[];
  irreversible: boolean;
  found: LikeArgument[];
  budget: LikeArgument | undefined;
}

/** The grant as the form says it; what was not sent is as the call has it. */
export interface AlikeDraft {
  choices: ArgumentChoice[];
  grant: Omit<z.input<typeof grantInput>, "reason" | "when" | "args_only">;
  hours: number;
  /** Null until a person has said what holds for each argument that is masked. */
  allowed: { terms: Pick<GrantTerms, "when" | "args_only">; sentence: string; hash: string } | null;
}

interface AlikeFacts {
  shown: ShownRequest;
  like: LikeCall;
  draft: AlikeDraft;
}

export function alikeFields(ctx: Ctx, { shown, like, draft }: AlikeFacts): Html {
  const { approval, card } = shown;
  const { grant, choices, hours, allowed } = draft;
  const numbers = like.found.filter(({ value }) => typeof value === "number" && value >= 0);
  return form(
    ctx,
    { action: `/console/approvals/${approval.id}/alike`, class: "form alike" },
    html`<input type="hidden" name="card_hash" value="${card?.card_hash ?? ""}"><input type="hidden" name="allows" value="${allowed?.hash ?? ""}">
${allowedText(like, draft)}
<fieldset class="arguments"><legend>What must hold for each argument</legend>${like.found.map((one, i) => argumentRow(one, choices[i]!, i))}</fieldset>
<div class="row">${input({ label: "How many more", name: "max_uses", type: "number", value: String(grant.max_uses), required: true, hint: `1 to ${LIMITS.grant_uses}` })}${input({ label: "For hours", name: "hours", value: String(hours), required: true, hint: `at most ${MOST_HOURS}` })}</div>`,
    numbers.length === 0
      ? nothing
      : html`<div class="row">${select({
          label: "Adds up",
          name: "budget_path",
          value: grant.budget?.path ?? "",
          choices: [
            ["", "nothing"],
            ...numbers.map(({ path, name }) => [path, argumentLabel(name)] as const),
          ],
        })}${input({ label: "To at most", name: "budget_max", value: grant.budget == null ? "" : String(grant.budget.max), hint: "all of these calls together" })}</div>`,
    input({
      label: "Reason",
      name: "reason",
      value: ctx.form.text("reason"),
      required: true,
      maxlength: LIMITS.reason_chars,
    }),
    like.irreversible
      ? checkbox("irreversible", "Nothing can take these calls back.", ctx.form.checked("irreversible"))
      : null,
    html`<p class="actions">${button("Approve and grant", "good")}${button("Show what it would allow", "plain", html` name="show" value="yes" formnovalidate`)}</p>`,
  );
}

function allowedText({ rules, found }: LikeCall, { allowed, choices }: AlikeDraft): Html {
  const open = found.filter((_, i) => choices[i]!.holds === null).map(({ name }) => argumentLabel(name));
  const said =
    allowed === null
      ? html`<p class="allows">Say first what holds for ${open.join(", ")}: a grant cannot name a value that is masked or not kept.</p>`
      : html`<p class="allows"><b>This would allow:</b> ${allowed.sentence}.</p>`;
  return html`${said}<p class="soft">It lifts only what ${rules.length === 1 ? "rule" : "rules"} ${rules.join(", ")} asks for. Anything else that asks still does.</p>`;
}

const WORDS = { exact: "exactly this call's", most: "at most", any: "any value" } as const;

/** What a person may choose depends on what is known of the value. */
function argumentRow(one: LikeArgument, { holds, most }: ArgumentChoice, i: number): Html {
  const { name, value } = one;
  const label = argumentLabel(name);
  const isNumber = typeof value === "number" && value >= 0;
  const choices: [string, string][] = [
    ...(value === undefined ? [["", "choose"] as [string, string]] : []),
    ...(isNumber ? [["most", WORDS.most] as [string, string]] : []),
    ...(value === undefined ? [] : [["exact", WORDS.exact] as [string, string]]),
    ["any", WORDS.any],
  ];
  const now = value === undefined ? "masked or not kept" : likeValue(value);
  return html`<div class="row argument">${select({ label: `${label} (now ${now})`, name: `holds_${i}`, value: holds ?? "", choices })}${
    isNumber ? input({ label: `${label} at most`, name: `most_${i}`, value: String(most ?? value) }) : nothing
  }</div>`;
}
