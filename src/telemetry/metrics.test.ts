import { describe, expect, it } from "vitest";
import { APPROVAL_STATUSES } from "../govern/approvals/approval.ts";
import { EVENT_NAMES } from "../ledger/events.ts";
import { createMetrics, type MetricsSource } from "./metrics.ts";

const source: MetricsSource = {
  ledgerEvents: () => ({ intended: 7, blocked: 2 }),
  approvals: async () => ({ pending: 3 }),
  halted: () => true,
  runs: () => 11,
  oldestApprovalMs: () => 90_000,
  queues: () => ({ "notify:ops": 4, trace: 0 }),
  deliveries: () => [{ target: "notify:ops", result: "failed", count: 5 }],
};
const make = (given: MetricsSource = source, process_metrics = false) =>
  createMetrics({
    source: given,
    events: EVENT_NAMES,
    approval_statuses: APPROVAL_STATUSES,
    version: "1.2.3",
    process_metrics,
  });

describe("metrics", () => {
  it("has the documented series, fed at scrape time", async () => {
    const text = await make().render();
    expect(text).toContain('svc_ledger_events_total{event="intended"} 7\n');
    expect(text).toContain('svc_ledger_events_total{event="blocked"} 2\n');
    expect(text).toContain('svc_ledger_events_total{event="compensation_failed"} 0\n');
    expect(text).toContain('svc_approvals{status="pending"} 3\n');
    expect(text).toContain('svc_approvals{status="denied"} 0\n');
    expect(text).toMatch(/^svc_halted 1$/m);
    expect(text).toMatch(/^svc_runs 11$/m);
    expect(text).toMatch(/^svc_oldest_approval_age_seconds 90$/m);
    expect(text).toContain('svc_queue_depth{queue="notify:ops"} 4\n');
    expect(text).toContain('svc_deliveries_total{target="notify:ops",result="failed"} 5\n');
    expect(text).toContain('svc_build_info{version="1.2.3"} 1\n');
  });

  it("does not add scrapes up, even when two run at once", async () => {
    const metrics = make();
    await Promise.all([metrics.render(), metrics.render(), metrics.render()]);
    expect(await metrics.render()).toContain('svc_ledger_events_total{event="intended"} 7\n');
  });

  it("counts what happens on the way", async () => {
    const metrics = make();
    metrics.decision("allow", 0.3);
    metrics.decision("block", 2);
    metrics.ledgerAppend(1.5);
    metrics.http("POST", "/v1/runs/{id}/intents", 200, 4);
    metrics.storeError("append");
    const text = await metrics.render();
    expect(text).toContain('svc_decision_duration_seconds_bucket{le="0.0005",decision="allow"} 1\n');
    expect(text).toContain('svc_decision_duration_seconds_count{decision="block"} 1\n');
    expect(text).toMatch(/^svc_ledger_append_duration_seconds_sum 0\.0015$/m);
    expect(text).toContain(
      'svc_http_request_duration_seconds_count{method="POST",route="/v1/runs/{id}/intents",status="200"} 1',
    );
    expect(text).toContain('svc_store_errors_total{operation="append"} 1\n');
  });

  it("leaves out unreadable values, and reports it", async () => {
    const metrics = make({
      ...source,
      runs: () => Promise.reject(new Error("store is down")),
      halted: () => {
        throw new Error("store is down");
      },
      approvals: () => Promise.reject(new Error("store is down")),
    });
    await metrics.render();
    const text = await metrics.render();
    expect(text).not.toMatch(/^svc_approvals\{/m);
    expect(text).not.toMatch(/^svc_runs \d/m);
    expect(text).toContain('svc_ledger_events_total{event="intended"} 7\n');
    expect(text).toContain('svc_scrape_errors_total{series="runs"}');
  });

  it("escapes label values", async () => {
    const metrics = make();
    metrics.storeError('a"b\\c\nd');
    expect(await metrics.render()).toContain('operation="a\\"b\\\\c\\nd"');
  });

  it("keeps to the naming rules that promtool checks", async () => {
    const text = await make(source, true).render();
    const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map((m) => [m[1]!, m[2]!]));
    const helps = [...text.matchAll(/^# HELP (\S+) (.+)$/gm)].map((m) => m[1]!);
    expect(new Set(helps)).toEqual(new Set(types.keys()));
    expect(helps).toHaveLength(types.size);
    for (const [name, type] of types) {
      expect([name, name.endsWith("_total")]).toEqual([name, type === "counter"]);
      expect(name).toMatch(/^[a-z][a-z0-9_]*$/);
      expect(name).not.toMatch(/_(ms|millis|milliseconds|minutes|sec)(_|$)/);
    }
    expect(text).toMatch(/^nodejs_eventloop_lag_seconds /m);
  });
});
