/** Alerts that people read as one line: the same kind, agent, and rule or tool. */
import type { ActiveAlert } from "./kinds.ts";

/** What grouping needs, so that answers of the service can be grouped, too. */
type Groupable = Pick<ActiveAlert, "group" | "since_ms" | "message">;

export interface AlertGroup<A extends Groupable> {
  group: string;
  /** The oldest alert, which represents the group. */
  first: A;
  alerts: A[];
}

/** In the order of the first of each group. */
export function groupAlerts<A extends Groupable>(alerts: readonly A[]): AlertGroup<A>[] {
  const groups = new Map<string, AlertGroup<A>>();
  for (const one of alerts) {
    const known = groups.get(one.group);
    if (known === undefined) groups.set(one.group, { group: one.group, first: one, alerts: [one] });
    else {
      known.alerts.push(one);
      if (one.since_ms < known.first.since_ms) known.first = one;
    }
  }
  return [...groups.values()];
}

/** The message of the line, with the count of the others. */
export function groupMessage({ first, alerts }: AlertGroup<Groupable>): string {
  const others = alerts.length - 1;
  return others === 0 ? first.message : `${first.message} (and ${others.toLocaleString("en")} more like it)`;
}
