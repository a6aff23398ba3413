/** A group of requests as a table: what they have in common once, what differs in columns, what is unusual first. */
import { plural } from "../../kernel/words.ts";
import { type RequestTable, requestTable, type TableCell, tableful } from "../../model/request-table.ts";
import { type Html, html, joined, nothing } from "../html.ts";
import { factList, table } from "../parts/blocks.ts";
import { mark } from "../parts/marks.ts";
import type { ApprovalLine } from "./approval-data.ts";

/** Rows that the list shows of a group; all of them are on the page that asks for the decision. */
export const GROUP_PREVIEW = 5;
/** Longer values are folded up, with their length. */
const CELL_CHARS = 80;
/** What a table may hold unfolded in all; a value beyond that is read on its card. */
const FOLDED_CHARS = 400_000;

export const linesTable = (lines: readonly ApprovalLine[]): RequestTable =>
  requestTable(lines.map(({ approval, args, fields }) => ({ id: approval.id, args, fields })));

/** Nothing where this person may not see the values. */
export function groupTable(lines: readonly ApprovalLine[], most: number): Html {
  const seen = tableful(lines.filter(({ args }) => args !== null));
  if (seen.length < 2) return nothing;
  return tableHtml(linesTable(seen), seen[0]!, { most, total: lines.length });
}

/** One of its requests names the table, so that those of one page can be told from each other. */
export function tableHtml(
  found: RequestTable,
  { approval: { tool, actor, rule } }: ApprovalLine,
  { most = found.rows.length, total = found.rows.length } = {},
): Html {
  const fold = new Fold();
  const same = found.same.map(({ name, text }) => [name, fold.shown(text)] as const);
  const rows = found.rows
    .slice(0, most)
    .map(({ id, cells, unusual }) => [
      html`<a href="/console/approvals/${id}">open</a>${unusual ? html` ${mark("warn", "unusual")}` : nothing}`,
      ...cells.map((cell) => cellHtml(cell, fold)),
    ]);
  const columns = found.columns.map(({ name }) => name);
  return html`${same.length === 0 ? nothing : html`<p class="soft">The same in all of them:</p>${factList(same, "same")}`}${
    columns.length === 0
      ? nothing
      : html`<p class="soft">Different: ${joined(
          found.columns.map(({ name, range }) => html`<b>${name}</b> ${range}`),
          "; ",
        )}</p>${table(`What differs: ${tool} by ${actor}, ${rule ?? "no rule"}`, ["Card", ...columns], rows, "group-table")}`
  }${columns.length > 0 && total > rows.length ? html`<p class="soft">${rows.length} of ${plural(total, "request")} are in this table.</p>` : nothing}`;
}

function cellHtml({ text, unusual }: TableCell, fold: Fold): Html {
  return unusual ? html`<span class="unusual">${fold.shown(text)}</span>` : fold.shown(text);
}

/** Long values are folded up until the table holds too much of them. */
class Fold {
  private left = FOLDED_CHARS;

  shown(text: string): Html {
    if (text.length <= CELL_CHARS) return html`${text}`;
    const chars = plural(text.length, "character");
    if (text.length > this.left)
      return html`${text.slice(0, CELL_CHARS)}… (${chars}; open the card to read all)`;
    this.left -= text.length;
    return html`<details class="folded"><summary>${text.slice(0, CELL_CHARS)}… (${chars})</summary><pre class="preview" tabindex="0">${text}</pre></details>`;
  }
}
