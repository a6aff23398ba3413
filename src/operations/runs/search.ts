/** Searches runs and ledger records, page by page. */
import * as z from "zod";
import { RUN_MODES, STEP_STATUSES } from "../../govern/runs/run.ts";
import { parseSince } from "../../kernel/duration.ts";
import { invalidError } from "../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { isLedgerEvent } from "../../ledger/events.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import { cutPage, encodeCursor, positionOf } from "../cursor.ts";
import { defineOperation } from "../pipeline/operation.ts";
import { boundedText, pagingFields } from "../schemas.ts";
import { findRuns, foundRunShape } from "./run-search.ts";

const field = boundedText(512).optional();
const event = z.string().refine(isLedgerEvent, "is not a ledger event").optional();
const cursor = z.string().max(1_000).optional();
const time = z.string().max(64).optional();

function bounds(query: { since?: string | undefined; until?: string | undefined }, now: number) {
  return {
    since_ms: query.since === undefined ? undefined : parseSince(query.since, now, "since"),
    until_ms: query.until === undefined ? undefined : parseSince(query.until, now, "until"),
  };
}

export const searchRuns = defineOperation({
  id: "search_runs",
  reads_replica: true,
  summary: "Search runs, newest first by default",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({
    actor: field,
    tool: field,
    tenant: field,
    mode: z.enum(RUN_MODES).optional(),
    status: z.enum(STEP_STATUSES).optional(),
    event,
    since: time,
    until: time,
    attention: z.boolean().optional(),
    q: field,
    order: z.enum(["asc", "desc"]).optional(),
    limit: pagingFields.limit,
    cursor,
  }),
  output: z.strictObject({
    runs: z.array(foundRunShape),
    next_cursor: nullableSchema(z.string()),
  }),
  async run({ app }, query) {
    const { attention, limit, cursor, ...rest } = query;
    const found = await findRuns(app.core, {
      ...rest,
      ...bounds(query, app.core.env.now()),
      attention: attention ?? false,
      limit: limit ?? SERVICE_LIMITS.page_default,
      after: positionOf(cursor),
    });
    return { runs: found.runs, next_cursor: found.next === null ? null : encodeCursor(found.next) };
  },
});

export const searchRecords = defineOperation({
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
    limit: pagingFields.limit,
    cursor,
  }),
  output: z.strictObject({
    records: z.array(z.looseObject({ seq: z.int() })),
    next_cursor: nullableSchema(z.string()),
  }),
  async run({ app }, query) {
    const limit = query.limit ?? SERVICE_LIMITS.page_default;
    const before = positionOf(query.cursor)?.sort;
    if (before !== undefined && !Number.isSafeInteger(before))
      throw invalidError("cursor: not a cursor of this listing");
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
