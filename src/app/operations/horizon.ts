/** What can be undone now and will not be for ever. */
import * as z from "zod";
import type { Core } from "../../engine/core.ts";
import { tryDuration } from "../../kernel/duration.ts";
import { LIMITS } from "../../kernel/limits.ts";
import type { ClosingDoc } from "../../port/docs.ts";
import type { App } from "../app.ts";
import { operation } from "../door/operation.ts";
import { cutPage, type Position, positionOf } from "./cursor.ts";
import { nullable, paging } from "./schemas.ts";

export const horizon = operation({
  id: "horizon",
  reads_replica: true,
  summary: "Undos that stop working, soonest first",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({
    within: z
      .string()
      .max(32)
      .refine((text) => (tryDuration(text) ?? 0) > 0, "must be a duration such as 24h or 7d")
      .optional(),
    ...paging,
    cursor: z.string().max(1_000).optional(),
  }),
  output: z.strictObject({
    undos: z.array(
      z.strictObject({ run_id: z.string(), step: z.int(), tool: z.string(), closes_ms: z.int() }),
    ),
    next_cursor: nullable(z.string()),
  }),
  async run({ app }, { within, limit = LIMITS.page_default, cursor }) {
    const to = within === undefined ? undefined : app.core.env.now() + tryDuration(within)!;
    const after = positionOf(cursor);
    const rows = await closings(app.core, { to, after, limit: limit + 1 });
    const { page, next } = cutPage(rows, limit);
    const undos = page.map(({ doc: { run_id, step, tool, closes_ms } }) => ({
      run_id,
      step,
      tool,
      closes_ms,
    }));
    return { undos, next_cursor: next };
  },
});

interface Closing extends Position {
  doc: ClosingDoc;
}

const COUNTED = 10_000;

/** How many close within the time that alerts look ahead; more than ten thousand are told as that. */
export async function closingSoon({ core, settings }: App): Promise<number> {
  const to = core.env.now() + settings.alerts.undo_closing_ms;
  return (await closings(core, { to, limit: COUNTED })).length;
}

/** Those that are open at `now` and close until `to`; all of them where it is left out. */
function closings(
  { store, env }: Core,
  { to, limit, after }: { to?: number | undefined; limit: number; after?: Position | undefined },
): Promise<Closing[]> {
  return store.list("closings", { from: env.now() + 1, to, after, order: "asc", limit });
}
