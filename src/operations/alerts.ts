/** Alerts, evaluated on each request. */
import * as z from "zod";
import { nullableSchema } from "../rules/nullable-schema.ts";
import { activeAlerts } from "./background/alerting.ts";
import { defineOperation } from "./pipeline/operation.ts";
import { noFields } from "./schemas.ts";

export const listAlerts = defineOperation({
  id: "list_alerts",
  summary: "List the active alerts",
  role: "auditor",
  within_tenant: true,
  input: noFields,
  output: z.strictObject({
    alerts: z.array(
      z.strictObject({
        id: z.string(),
        group: z.string().meta({ description: "the same for alerts of one kind, actor, and rule or tool" }),
        kind: z.string(),
        severity: z.enum(["critical", "error", "warning", "info"]),
        title: z.string(),
        message: z.string(),
        since_ms: z.int(),
        run_id: nullableSchema(z.string()),
        step: nullableSchema(z.int()),
        tool: nullableSchema(z.string()),
      }),
    ),
  }),
  async run({ app }) {
    const active = await activeAlerts(app);
    return { alerts: active.map(({ actor: _, ...shown }) => shown) };
  },
});
