/** Sections of the active policy. */
import type { CompiledPolicy } from "../../../rules/policy/compile.ts";
import type { MatchDoc, PolicyDoc, RuleDoc } from "../../../rules/policy/schema.ts";
import { type HtmlFragment, safeHtml, type TemplateValue } from "../../html.ts";
import { cardBlock, commandBlock, emptyState, factList, tableBlock } from "../../parts/blocks.ts";
import { hashText } from "../../parts/ids.ts";
import { formatCountOf, rulingMark } from "../../parts/marks.ts";

export function inForceCard({ doc, hash }: CompiledPolicy): HtmlFragment {
  const rules = doc.rules ?? [];
  return cardBlock(
    { title: "Active policy", id: "in-force", aside: hashText(hash, "the policy's hash") },
    rules.length === 0
      ? emptyState(
          "No rules",
          safeHtml`<p>Without rules, only manifests, scopes and halts decide. Start with a first policy:</p>`,
          commandBlock("svc policy new"),
        )
      : tableBlock("Active rules", ["Rule", "For", "When", "Action", "Reason"], rules.map(ruleRow)),
    factList(sectionsOf(doc), "wide"),
  );
}

function sectionsOf(doc: PolicyDoc): [string, TemplateValue][] {
  return [
    ["Content checks", list(Object.entries(doc.content ?? {}).map(([name, value]) => `${name} ${value}`))],
    [
      "Risk",
      doc.risk === undefined
        ? none()
        : list(
            [
              limitWords("approval at", doc.risk.require_approval_at),
              limitWords("deny at", doc.risk.deny_at),
            ].filter((one) => one !== null),
            "scored only",
          ),
    ],
    [
      "Limits",
      list(
        (doc.limits ?? []).map(
          ({ id, max, per, window, refund }) => `${id}: ${max} per ${per} in ${window}${refundWords(refund)}`,
        ),
      ),
    ],
    [
      "Budgets",
      list(
        (doc.budgets ?? []).map(
          ({ id, max, per, window, path, refund }) =>
            `${id}: ${path} up to ${max} per ${per} in ${window}${refundWords(refund)}`,
        ),
      ),
    ],
    ["Flows", list((doc.flows ?? []).map(({ id, action }) => `${id}: ${action ?? "deny"}`))],
    [
      "Windows",
      list(
        (doc.windows ?? []).map(
          ({ id, hours, days, tz }) =>
            `${id}: ${[days?.join(" "), hours, tz ?? "UTC"].filter(Boolean).join(", ")}`,
        ),
      ),
    ],
    ["Freezes", list((doc.freezes ?? []).map(({ id, from, to }) => `${id}: ${from} to ${to}`))],
    ["Four eyes", doc.approvals?.four_eyes === true ? "nobody can decide their own request" : none()],
    [
      "Retention",
      doc.retention === undefined ? "nothing is deleted" : `${doc.retention.default_days} days by default`,
    ],
    ["Tests", formatCountOf(doc.tests?.length ?? 0, "test")],
    ["Claims", formatCountOf(doc.claims?.length ?? 0, "claim")],
  ];
}

const none = (): HtmlFragment => safeHtml`<span class="soft">none</span>`;
const list = (items: readonly TemplateValue[], otherwise = "none"): TemplateValue =>
  items.length === 0
    ? safeHtml`<span class="soft">${otherwise}</span>`
    : safeHtml`${items.map((item) => safeHtml`<span class="part">${item}</span>`)}`;
const refundWords = (refund: boolean | undefined): string =>
  refund === true ? ", refunded by undos that were read back" : "";

const limitWords = (label: string, value: number | undefined): string | null =>
  value === undefined ? null : `${label} ${value}`;

function ruleRow({ id, match, when, action, reason }: RuleDoc): TemplateValue[] {
  return [
    safeHtml`<code>${id}</code>`,
    matchWords(match),
    (when ?? []).map(
      ({ path, op, value }) =>
        safeHtml`<span class="part"><code>${path} ${op}${value === undefined ? "" : ` ${JSON.stringify(value)}`}</code></span>`,
    ),
    rulingMark(action),
    reason ?? "",
  ];
}

function matchWords(match: MatchDoc | undefined): TemplateValue {
  const parts = Object.entries(match ?? {});
  if (parts.length === 0) return safeHtml`<span class="soft">every call</span>`;
  return parts.map(
    ([name, glob]) =>
      safeHtml`<span class="part">${name === "tool" ? null : safeHtml`<span class="soft">${name} </span>`}<code>${glob}</code></span>`,
  );
}
