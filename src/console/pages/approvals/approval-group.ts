/** Table of similar requests: common values once, differing values in columns, unusual values marked. */
import {
  type RequestTable,
  requestsForTable,
  requestTable,
  type TableCell,
} from "../../../govern/approvals/request-table.ts";
import { formatCountOf } from "../../../kernel/text/phrases.ts";
import { emptyHtml, type HtmlFragment, joinHtml, safeHtml } from "../../html.ts";
import { factList, tableBlock } from "../../parts/blocks.ts";
import { markLabel } from "../../parts/marks.ts";
import type { ApprovalLine } from "./approval-data.ts";

/** Rows per group in the list. The confirmation page shows all of them. */
export const GROUP_PREVIEW = 5;
/** Longer values are folded and show their length. */
const CELL_CHARS = 80;
/** Total characters of folded values in one table. Values beyond that are shown only on their card. */
const FOLDED_CHARS = 400_000;

export const linesTable = (lines: readonly ApprovalLine[]): RequestTable =>
  requestTable(
    lines.map(({ approval, args, fields, causes }) => ({ id: approval.id, args, fields, causes })),
  );

/** Empty if this user is not allowed to see the values of at least two requests. */
export function groupTable(lines: readonly ApprovalLine[], most: number): HtmlFragment {
  const seen = requestsForTable(lines.filter(({ args }) => args !== null));
  if (seen.length < 2) return emptyHtml;
  return tableHtml(linesTable(seen), seen[0]!, { most, total: lines.length });
}

/** The line names the table in its caption, which tells the tables of a page apart for screen readers. */
export function tableHtml(
  found: RequestTable,
  { approval: { tool, actor, rule } }: ApprovalLine,
  { most = found.rows.length, total = found.rows.length } = {},
): HtmlFragment {
  const fold = new Fold();
  const same = found.same.map(({ name, text }) => [name, fold.shown(text)] as const);
  const rows = found.rows
    .slice(0, most)
    .map(({ id, cells, unusual }) => [
      safeHtml`<a href="/console/approvals/${id}">open</a>${unusual ? safeHtml` ${markLabel("warn", "unusual")}` : emptyHtml}`,
      ...cells.map((cell) => cellHtml(cell, fold)),
    ]);
  const columns = found.columns.map(({ name }) => name);
  return safeHtml`${same.length === 0 ? emptyHtml : safeHtml`<p class="soft">The same in all requests:</p>${factList(same, "same")}`}${
    columns.length === 0
      ? emptyHtml
      : safeHtml`<p class="soft">Different: ${joinHtml(
          found.columns.map(({ name, range }) => safeHtml`<b>${name}</b> ${range}`),
          "; ",
        )}</p>${tableBlock(`Differences: ${tool} by ${actor}, ${rule ?? "no rule"}`, ["Card", ...columns], rows, "group-table")}`
  }${columns.length > 0 && total > rows.length ? safeHtml`<p class="soft">This table shows ${rows.length} of ${formatCountOf(total, "request")}.</p>` : emptyHtml}`;
}

function cellHtml({ text, unusual }: TableCell, fold: Fold): HtmlFragment {
  return unusual ? safeHtml`<span class="unusual">${fold.shown(text)}</span>` : fold.shown(text);
}

/** Folds long values, up to a total size per table. */
class Fold {
  private left = FOLDED_CHARS;

  shown(text: string): HtmlFragment {
    if (text.length <= CELL_CHARS) return safeHtml`${text}`;
    const chars = formatCountOf(text.length, "character");
    if (text.length > this.left)
      return safeHtml`${text.slice(0, CELL_CHARS)}… (${chars}; open the card to read all)`;
    this.left -= text.length;
    return safeHtml`<details class="folded"><summary>${text.slice(0, CELL_CHARS)}… (${chars})</summary><pre class="preview" tabindex="0">${text}</pre></details>`;
  }
}
