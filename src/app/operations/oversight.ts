/** The report on human oversight. */
import * as z from "zod";
import { collectOversight } from "../../evidence/report/oversight.ts";
import { writeOversight } from "../../evidence/report/oversight-formats.ts";
import { PERIOD_FORMATS, PERIOD_TYPES } from "../../evidence/report/period-formats.ts";
import { parseSince } from "../../kernel/duration.ts";
import type { App } from "../app.ts";
import { Content, operation } from "../door/operation.ts";
import { DEFAULT_PERIOD } from "./reports.ts";

/** The figures of a period as they are now. */
function oversightOf({ core, version }: App, since: string, anonymous: boolean) {
  const until_ms = core.env.now();
  const since_ms = parseSince(since, until_ms, "since");
  return collectOversight(core.store, {
    since_ms,
    until_ms,
    version,
    anonymous,
    policy: core.rules().policy,
  });
}

export const oversightReport = operation({
  id: "oversight_report",
  reads_replica: true,
  summary: "How people decide: rates, times, decisions made too quickly, break-glass, grants and idle rules",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({
    since: z
      .string()
      .max(64)
      .optional()
      .meta({ description: `a duration such as 30d, or a date or timestamp; ${DEFAULT_PERIOD} by default` }),
    format: z.enum(PERIOD_FORMATS).optional().meta({ description: "json by default" }),
    anonymous: z.boolean().optional().meta({ description: "leaves the names of approvers out" }),
  }),
  output: { content_types: ["application/json", "text/html", "text/markdown"] },
  async run({ app }, { since = DEFAULT_PERIOD, format = "json", anonymous = false }) {
    const report = await oversightOf(app, since, anonymous);
    return new Content(PERIOD_TYPES[format], writeOversight(report, format));
  },
});
