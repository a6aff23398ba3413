/** The report on human oversight. */
import * as z from "zod";
import { collectOversight } from "../../evidence/report/oversight.ts";
import { writeOversight } from "../../evidence/report/oversight-formats.ts";
import { PERIOD_FORMATS, PERIOD_TYPES } from "../../evidence/report/period/period-formats.ts";
import { parseSince } from "../../kernel/duration.ts";
import type { ServiceApp } from "../app.ts";
import { DocumentContent, defineOperation } from "../pipeline/operation.ts";
import { DEFAULT_PERIOD } from "./reports.ts";

/** Current figures of a period. */
function oversightOf({ core, version }: ServiceApp, since: string, anonymous: boolean) {
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

export const oversightReport = defineOperation({
  id: "oversight_report",
  reads_replica: true,
  summary:
    "Report on human oversight: approval rates, decision times, very quick decisions, break-glass, grants and idle rules",
  role: "auditor",
  within_tenant: true,
  input: z.strictObject({
    since: z
      .string()
      .max(64)
      .optional()
      .meta({ description: `a duration such as 30d, or a date or timestamp; ${DEFAULT_PERIOD} by default` }),
    format: z.enum(PERIOD_FORMATS).optional().meta({ description: "json by default" }),
    anonymous: z.boolean().optional().meta({ description: "omits the names of approvers" }),
  }),
  output: { content_types: ["application/json", "text/html", "text/markdown"] },
  async run({ app }, { since = DEFAULT_PERIOD, format = "json", anonymous = false }) {
    const report = await oversightOf(app, since, anonymous);
    return new DocumentContent(PERIOD_TYPES[format], writeOversight(report, format));
  },
});
