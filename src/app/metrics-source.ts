/** Where the state series of /metrics come from. */
import { EVENT_NAMES } from "../ledger/events.ts";
import { APPROVAL_STATUSES } from "../model/approval.ts";
import { createMetrics, type Metrics } from "../telemetry/metrics.ts";
import type { App } from "./app.ts";
import { activeHalts } from "./operations/halts.ts";
import { approvalCounts } from "./operations/status.ts";

export function appMetrics(app: App, queues: () => Record<string, number> = () => ({})): Metrics {
  const { store, env, killSwitch } = app.core;
  return createMetrics({
    version: app.version,
    events: EVENT_NAMES,
    approval_statuses: APPROVAL_STATUSES,
    source: {
      ledgerEvents: async () => (await store.head()).events,
      approvals: () => approvalCounts(app),
      halted: async () => killSwitch() !== null || (await activeHalts(app)).length > 0,
      runs: () => store.count("runs"),
      async oldestApprovalMs() {
        const [oldest] = await store.list("approvals", { tag: ["pending", "escalated"], limit: 1 });
        return oldest === undefined ? null : env.now() - oldest.doc.requested_ms;
      },
      queues,
    },
  });
}
