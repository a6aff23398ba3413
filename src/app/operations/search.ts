/** Search over runs and over ledger records, page by page. */
import * as z from "zod";
import { parseSince } from "../../kernel/duration.ts";
import { invalid } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { isLedgerEvent } from "../../ledger/events.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { MODES, RUN_STATES, STEP_STATUSES } from "../../model/run.ts";
import { operation } from "../door/operation.ts";
import { cutPage, encodeCursor, positionOf } from "./cursor.ts";
import { nullable, paging, text } from "./schemas.ts";
import { findRuns } from "./search/run-search.ts";

const field = text(512).optional();
const event = z.string().refine(isLedgerEvent, "is not a ledger event").optional();
const cursor = z.string().max(1_000).optional();
const time = z.string().max(64).optional();

function bounds(query: { since?: string | undefined; until?: string | undefined }, now: number) {
  return {
    since_ms: query.since === undefined ? undefined : parseSince(query.since, now, "since"),
    until_ms: query.until === undefined ? undefined : parseSince(query.until, now, "until"),
  };
}

export const searchRuns = operation({
  id: "search_runs",
  reads_replica: true,
  summary: "Search runs, newest first unless told otherwise",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({
    actor: field,
    tool: field,
    tenant: field,
    mode: z.enum(MODES).optional(),
    status: z.enum(STEP_STATUSES).optional(),
    event,
    since: time,
    until: time,
    attention: z.boolean().optional(),
    q: field,
    order: z.enum(["asc", "desc"]).optional(),
    limit: paging.limit,
    cursor,
  }),
  output: z.strictObject({
    runs: z.array(
      z.strictObject({
        run_id: z.string(),
        actor: z.string(),
        mode: z.enum(MODES),
        tenant: nullable(z.string()),
        reason: nullable(z.string()),
        created_ms: z.int(),
        steps: z.int(),
        unresolved: z.int(),
        attention: z.boolean(),
        state: z.enum(RUN_STATES),
      }),
    ),
    next_cursor: nullable(z.string()),
  }),
  async run({ app }, query) {
    const { attention, limit, cursor, ...rest } = query;
    const found = await findRuns(app.core, {
      ...rest,
      ...bounds(query, app.core.env.now()),
      attention: attention ?? false,
      limit: limit ?? LIMITS.page_default,
      after: positionOf(cursor),
    });
    return { runs: found.runs, next_cursor: found.next === null ? null : encodeCursor(found.next) };
  },
});

export const searchRecords = operation({
  id: "search_records",
  reads_replica: true,
  summary: "Search ledger records, newest first",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({
    run_id: field,
    event,
    actor: field,
    tool: field,
    since: time,
    until: time,
    q: field,
    limit: paging.limit,
    cursor,
  }),
  output: z.strictObject({
    records: z.array(z.looseObject({ seq: z.int() })),
    next_cursor: nullable(z.string()),
  }),
  async run({ app }, query) {
    const limit = query.limit ?? LIMITS.page_default;
    const before = positionOf(query.cursor)?.sort;
    if (before !== undefined && !Number.isSafeInteger(before))
      throw invalid("cursor: not a cursor of this listing");
    const { run_id, event, actor, tool, q } = query;
    const lines = await app.core.store.records({
      ...{ run_id, event, actor, tool, q },
      ...bounds(query, app.core.env.now()),
      to: before === undefined ? undefined : before - 1,
      order: "desc",
      limit: limit + 1,
    });
    const found = lines.map((line) => JSON.parse(line) as LedgerRecord);
    const { page, next } = cutPage(
      found.map((record) => ({ record, sort: record.seq, key: "" })),
      limit,
    );
    return { records: page.map(({ record }) => record), next_cursor: next };
  },
});
