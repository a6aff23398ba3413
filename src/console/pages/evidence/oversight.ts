/** Oversight page: how carefully approvers review requests. */
import { spellOutInvisible } from "../../../evidence/report/external-text.ts";
import type { OversightReport } from "../../../evidence/report/oversight.ts";
import { oversightHeadline, oversightSections } from "../../../evidence/report/oversight-formats.ts";
import type { ReportCell, ReportSection } from "../../../evidence/report/period/period-rows.ts";
import { oversightReport } from "../../../operations/evidence/oversight.ts";
import { type HtmlFragment, safeHtml, type TemplateValue } from "../../html.ts";
import { getRoute, type PageAnswer, type PageContext } from "../../page-context.ts";
import { cardBlock, factList, pageHead, tableBlock } from "../../parts/blocks.ts";
import { selectField } from "../../parts/forms.ts";
import { approvalTabs } from "../approvals/approval-tabs.ts";

export const oversightRoutes = [getRoute("/oversight", oversight)];

const PERIODS = ["1d", "7d", "30d", "90d"] as const;

async function oversight(ctx: PageContext): Promise<PageAnswer> {
  const since = PERIODS.find((one) => one === ctx.query["since"]) ?? "30d";
  const anonymous = ctx.query["anonymous"] === "1";
  const { body: text } = await ctx.call(oversightReport, { since, anonymous, format: "json" });
  const report = JSON.parse(String(text)) as OversightReport;
  const body = safeHtml`${pageHead("Oversight", "How carefully approvers review requests.")}${await approvalTabs(ctx, "oversight")}
<form method="get" action="/console/oversight" class="form"><div class="row">${selectField({
    label: "Since",
    name: "since",
    value: since,
    choices: [
      ["1d", "yesterday"],
      ["7d", "a week ago"],
      ["30d", "30 days ago"],
      ["90d", "90 days ago"],
    ],
  })}${selectField({
    label: "Names of approvers",
    name: "anonymous",
    value: anonymous ? "1" : "0",
    choices: [
      ["0", "shown"],
      ["1", "hidden"],
    ],
  })}</div><button type="submit">Show</button></form>
${cardBlock({ title: "Summary", id: "short" }, factList(oversightHeadline(report)))}
${oversightSections(report).map(sectionCard)}
<p class="soft">Each figure is evidence for the duty next to it. It does not show that a duty is met or a law is complied with. To export the report: <code>svc oversight --since ${since} --format html</code></p>`;
  return { page: { title: "Oversight", nav: "approvals", body } };
}

function sectionCard({ title, note, columns, rows, none }: ReportSection): HtmlFragment {
  if (rows.length === 0) return cardBlock({ title }, safeHtml`<p class="soft">${none}</p>`);
  return cardBlock(
    { title },
    tableBlock(
      title,
      columns ?? [],
      rows.map((row) => row.map(part)),
    ),
    note === undefined ? null : safeHtml`<p class="soft">${note}</p>`,
  );
}

function part(cell: ReportCell): TemplateValue {
  if ("name" in cell) return safeHtml`<code>${spellOutInvisible(cell.name)}</code>`;
  return "text" in cell ? cell.text : String(cell.number);
}
