/** Source of the state series of /metrics. */
import { APPROVAL_STATUSES } from "../govern/approvals/approval.ts";
import type { StateStore } from "../govern/port/store.ts";
import { PROBE_ACTOR, PROBE_PRINCIPALS } from "../govern/roles.ts";
import { EVENT_NAMES } from "../ledger/events.ts";
import type { EventNotifier } from "../notify/notifier.ts";
import type { ServiceApp } from "../operations/app.ts";
import { activeHalts } from "../operations/halts.ts";
import { closingSoon } from "../operations/runs/horizon.ts";
import { createMetrics, type ServiceMetrics } from "../telemetry/metrics.ts";
import type { SpanTracer } from "../telemetry/trace.ts";

interface Deliveries {
  notifier: EventNotifier;
  tracer: SpanTracer | null;
}

export function appMetrics(app: ServiceApp, { notifier, tracer }: Deliveries): ServiceMetrics {
  const { store, env, killSwitch } = app.core;
  return createMetrics({
    version: app.version,
    events: EVENT_NAMES,
    approval_statuses: APPROVAL_STATUSES,
    source: {
      ledgerEvents: async () => (await store.head()).events,
      approvals: () => peoplesApprovals(store),
      halted: async () =>
        killSwitch() !== null || (await activeHalts(app)).some(({ scope }) => scope.actor !== PROBE_ACTOR),
      runs: () => agentsRuns(store),
      async oldestApprovalMs() {
        const [oldest] = await store.list("approvals", { tag: ["pending", "escalated"], limit: 1 });
        return oldest === undefined ? null : env.now() - oldest.doc.requested_ms;
      },
      undosClosing: () => closingSoon(app),
      ...(store.replica === undefined ? {} : { replicaLagMs: () => store.replica!.lag_ms }),
      queues: () => ({
        ...Object.fromEntries(notifier.channels().map(({ name, queued }) => [`notify:${name}`, queued])),
        ...(tracer === null ? {} : { trace: tracer.stats().queued }),
      }),
      deliveries: () => [
        ...notifier.channels().flatMap((channel) => results(`notify:${channel.name}`, channel)),
        ...(tracer === null ? [] : results("trace", tracer.stats())),
      ],
    },
  });
}

/** Counts approvals without those of the probe, which have other tags. */
async function peoplesApprovals(store: StateStore): Promise<Record<string, number>> {
  const count = async (tag: string) => [tag, await store.count("approvals", { tag })] as const;
  return Object.fromEntries(await Promise.all(APPROVAL_STATUSES.map(count)));
}

async function agentsRuns(store: StateStore): Promise<number> {
  const probes = await Promise.all(PROBE_PRINCIPALS.map((owner) => store.count("runs", { owner })));
  return probes.reduce((left, n) => left - n, await store.count("runs"));
}

const RESULTS = ["ok", "failed", "dropped"] as const;

function results(target: string, counts: Record<(typeof RESULTS)[number], number>) {
  return RESULTS.map((result) => ({ target, result, count: counts[result] }));
}
