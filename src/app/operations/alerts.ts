/** Alerts, evaluated live. */
import * as z from "zod";
import { standingAlerts } from "../background/alerting.ts";
import { operation } from "../door/operation.ts";
import { noFields, nullable } from "./schemas.ts";

export const listAlerts = operation({
  id: "list_alerts",
  summary: "The alerts that stand now",
  role: "auditor",
  within_tenant: true,
  input: noFields,
  output: z.strictObject({
    alerts: z.array(
      z.strictObject({
        id: z.string(),
        kind: z.string(),
        severity: z.enum(["critical", "error", "warning", "info"]),
        title: z.string(),
        message: z.string(),
        since_ms: z.int(),
        run_id: nullable(z.string()),
        step: nullable(z.int()),
        tool: nullable(z.string()),
      }),
    ),
  }),
  async run({ app }) {
    return { alerts: await standingAlerts(app) };
  },
});
