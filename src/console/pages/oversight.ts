/** The Oversight page: whether people really look at what they decide. */
import { oversightReport } from "../../app/operations/oversight.ts";
import type { OversightReport } from "../../evidence/report/oversight.ts";
import { oversightHeadline, oversightSections } from "../../evidence/report/oversight-formats.ts";
import type { Cell, ReportSection } from "../../evidence/report/period-rows.ts";
import { visible } from "../../evidence/report/text.ts";
import { type Answer, type Ctx, get } from "../ctx.ts";
import { type Html, html, type Part } from "../html.ts";
import { card, factList, pageHead, table } from "../parts/blocks.ts";
import { select } from "../parts/forms.ts";
import { approvalTabs } from "./approval-tabs.ts";

export const oversightRoutes = [get("/oversight", oversight)];

const PERIODS = ["1d", "7d", "30d", "90d"] as const;

async function oversight(ctx: Ctx): Promise<Answer> {
  const since = PERIODS.find((one) => one === ctx.query["since"]) ?? "30d";
  const anonymous = ctx.query["anonymous"] === "1";
  const { body: text } = await ctx.call(oversightReport, { since, anonymous, format: "json" });
  const report = JSON.parse(String(text)) as OversightReport;
  const body = html`${pageHead("Oversight", "Whether people really look at what they decide.")}${await approvalTabs(ctx, "oversight")}
<form method="get" action="/console/oversight" class="form"><div class="row">${select({
    label: "Since",
    name: "since",
    value: since,
    choices: [
      ["1d", "yesterday"],
      ["7d", "a week ago"],
      ["30d", "30 days ago"],
      ["90d", "90 days ago"],
    ],
  })}${select({
    label: "Names of approvers",
    name: "anonymous",
    value: anonymous ? "1" : "0",
    choices: [
      ["0", "shown"],
      ["1", "left out"],
    ],
  })}</div><button type="submit">Show</button></form>
${card({ title: "In short", id: "short" }, factList(oversightHeadline(report)))}
${oversightSections(report).map(sectionCard)}
<p class="soft">Each figure is material for the duty beside it. It does not say that a duty is met or a law complied with. As a document: <code>svc oversight --since ${since} --format html</code></p>`;
  return { page: { title: "Oversight", nav: "approvals", body } };
}

function sectionCard({ title, note, columns, rows, none }: ReportSection): Html {
  if (rows.length === 0) return card({ title }, html`<p class="soft">${none}</p>`);
  return card(
    { title },
    table(
      title,
      columns ?? [],
      rows.map((row) => row.map(part)),
    ),
    note === undefined ? null : html`<p class="soft">${note}</p>`,
  );
}

function part(cell: Cell): Part {
  if ("name" in cell) return html`<code>${visible(cell.name)}</code>`;
  return "text" in cell ? cell.text : String(cell.number);
}
