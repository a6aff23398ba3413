/** Undo deadlines: steps that can be undone now, but not forever. */
import * as z from "zod";
import type { EngineCore } from "../../govern/core.ts";
import type { UndoDeadlineDoc } from "../../govern/port/docs.ts";
import { tryDuration } from "../../kernel/duration.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import type { ServiceApp } from "../app.ts";
import { cutPage, type ListPosition, positionOf } from "../cursor.ts";
import { defineOperation } from "../pipeline/operation.ts";
import { pagingFields } from "../schemas.ts";

export const listUndoDeadlines = defineOperation({
  id: "horizon",
  reads_replica: true,
  summary: "List undo deadlines, soonest first",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({
    within: z
      .string()
      .max(32)
      .refine((text) => (tryDuration(text) ?? 0) > 0, "must be a duration such as 24h or 7d")
      .optional(),
    ...pagingFields,
    cursor: z.string().max(1_000).optional(),
  }),
  output: z.strictObject({
    undos: z.array(
      z.strictObject({ run_id: z.string(), step: z.int(), tool: z.string(), closes_ms: z.int() }),
    ),
    next_cursor: nullableSchema(z.string()),
  }),
  async run({ app }, { within, limit = SERVICE_LIMITS.page_default, cursor }) {
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

interface Closing extends ListPosition {
  doc: UndoDeadlineDoc;
}

const COUNTED = 10_000;

/** Number of undos that expire within the alert's lead time, capped at ten thousand. */
export async function closingSoon({ core, settings }: ServiceApp): Promise<number> {
  const to = core.env.now() + settings.alerts.undo_closing_ms;
  return (await closings(core, { to, limit: COUNTED })).length;
}

/** Undos that are possible at `now` and expire before `to`; all of them if `to` is omitted. */
function closings(
  { store, env }: EngineCore,
  { to, limit, after }: { to?: number | undefined; limit: number; after?: ListPosition | undefined },
): Promise<Closing[]> {
  return store.list("closings", { from: env.now() + 1, to, after, order: "asc", limit });
}
