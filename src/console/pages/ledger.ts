/** Looking through the ledger itself: every record, newest first, by event, actor, tool or any word. */
import { searchRecords } from "../../app/operations/search.ts";
import { EVENT_NAMES, EVENTS } from "../../ledger/events.ts";
import type { Ctx } from "../ctx.ts";
import { type Html, html } from "../html.ts";
import { card, empty, pager } from "../parts/blocks.ts";
import { input, select } from "../parts/forms.ts";
import { checked, trail } from "../parts/records.ts";

const FIELDS = ["q", "event", "actor", "tool", "since", "until", "cursor"] as const;

export async function ledgerCard(ctx: Ctx): Promise<Html> {
  const query: Record<string, string> = {};
  for (const name of FIELDS) if (ctx.query[name] !== undefined) query[name] = ctx.query[name];
  const { records, next_cursor } = await ctx.call(searchRecords, { ...query, limit: 50 });
  const items = records.map(checked);
  return card(
    { title: "Records", id: "ledger" },
    filters(query),
    html`<div id="records" data-live>${
      items.length === 0
        ? empty(
            "No record fits",
            html`<p>Records are never deleted: if it happened, another filter finds it.</p>`,
          )
        : trail(items, { runs: true })
    }${pager("/console/evidence", query, next_cursor)}</div>`,
  );
}

function filters(query: Record<string, string>): Html {
  return html`<form method="get" action="/console/evidence#ledger" class="filters" role="search">
${input({ label: "Search", name: "q", type: "search", value: query["q"] ?? "", placeholder: "any text of a record, such as a hash", class: "wide" })}
${select({ label: "Event", name: "event", value: query["event"] ?? "", choices: [["", "any"], ...EVENT_NAMES.map((name) => [name, EVENTS[name]] as const)] })}
${input({ label: "Actor", name: "actor", value: query["actor"] ?? "" })}
${input({ label: "Tool", name: "tool", value: query["tool"] ?? "" })}
${input({ label: "Since", name: "since", value: query["since"] ?? "", placeholder: "7d or 2026-06-01" })}
<button type="submit" class="primary">Search</button></form>`;
}
