/** Ledger search of the Evidence page: records, newest first, by event, actor, tool or text. */
import { EVENT_NAMES, LEDGER_EVENTS } from "../../../ledger/events.ts";
import { searchRecords } from "../../../operations/runs/search.ts";
import { type HtmlFragment, safeHtml } from "../../html.ts";
import type { PageContext } from "../../page-context.ts";
import { cardBlock, emptyState, nextAction, pagerLinks } from "../../parts/blocks.ts";
import { inputField, selectField } from "../../parts/forms.ts";
import { checkRecordHash, trailList } from "../../parts/records.ts";

const FIELDS = ["q", "event", "actor", "tool", "since", "until", "cursor"] as const;

export async function ledgerCard(ctx: PageContext): Promise<HtmlFragment> {
  const query: Record<string, string> = {};
  for (const name of FIELDS) if (ctx.query[name] !== undefined) query[name] = ctx.query[name];
  const { records, next_cursor } = await ctx.call(searchRecords, { ...query, limit: 50 });
  const items = records.map(checkRecordHash);
  return cardBlock(
    { title: "Records", id: "ledger" },
    filters(query),
    safeHtml`<div id="records" data-live>${
      items.length === 0
        ? emptyState(
            "No matching records",
            safeHtml`<p>Records are never deleted. Try another filter.</p>`,
            nextAction("/console/evidence#ledger", "Show all records"),
          )
        : trailList(items, { runs: true })
    }${pagerLinks("/console/evidence", query, next_cursor)}</div>`,
  );
}

function filters(query: Record<string, string>): HtmlFragment {
  return safeHtml`<form method="get" action="/console/evidence#ledger" class="filters" role="search">
${inputField({ label: "Search", name: "q", type: "search", value: query["q"] ?? "", placeholder: "any text of a record, such as a hash", class: "wide" })}
${selectField({ label: "Event", name: "event", value: query["event"] ?? "", choices: [["", "any"], ...EVENT_NAMES.map((name) => [name, LEDGER_EVENTS[name]] as const)] })}
${inputField({ label: "Actor", name: "actor", value: query["actor"] ?? "" })}
${inputField({ label: "Tool", name: "tool", value: query["tool"] ?? "" })}
${inputField({ label: "Since", name: "since", value: query["since"] ?? "", placeholder: "7d or 2026-06-01" })}
<button type="submit" class="primary">Search</button></form>`;
}
