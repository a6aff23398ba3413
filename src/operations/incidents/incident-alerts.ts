/** Active alerts of an incident's agent, one line per group. */
import { groupAlerts, groupMessage } from "../../alerts/groups.ts";
import type { ActiveAlert } from "../../alerts/kinds.ts";
import type { IncidentDoc } from "../../govern/incidents/incident.ts";
import type { ServiceApp } from "../app.ts";
import { activeAlerts } from "../background/alerting.ts";

export interface IncidentAlerts extends Pick<ActiveAlert, "group" | "kind" | "severity" | "title"> {
  /** Text of the oldest alert, with the number of the others. */
  message: string;
  count: number;
  since_ms: number;
}

/** None for a closed incident: later alerts belong to the next one. */
export async function incidentAlerts(
  app: ServiceApp,
  { actor, tenant, status }: IncidentDoc,
): Promise<IncidentAlerts[]> {
  if (status !== "open") return [];
  const own: ActiveAlert[] = [];
  for (const alert of await activeAlerts(app))
    if (alert.actor === actor && (await isInTenant(app, alert, tenant))) own.push(alert);
  return groupAlerts(own).map((group) => {
    const { kind, severity, title, since_ms } = group.first;
    const message = groupMessage(group);
    return { group: group.group, kind, severity, title, message, count: group.alerts.length, since_ms };
  });
}

/** Agents of two tenants can have one name. An alert without a run concerns both. */
async function isInTenant({ core }: ServiceApp, { run_id }: ActiveAlert, tenant: string | null) {
  if (run_id === null) return true;
  const run = await core.store.get("runs", run_id);
  return run === undefined || run.tenant === tenant;
}
