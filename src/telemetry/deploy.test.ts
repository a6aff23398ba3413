/** The dashboard and the alert rules that are shipped name only series and events that exist. */
import { readFileSync } from "node:fs";
import { parser } from "@prometheus-io/lezer-promql";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { APPROVAL_STATUSES } from "../govern/approvals/approval.ts";
import { EVENT_NAMES } from "../ledger/events.ts";
import { createMetrics } from "./metrics.ts";

const read = (path: string) => readFileSync(new URL(`../../deploy/${path}`, import.meta.url), "utf8");

async function seriesNames(): Promise<Set<string>> {
  const metrics = createMetrics({
    source: {
      ledgerEvents: () => ({}),
      approvals: () => ({}),
      halted: () => false,
      runs: () => 0,
      oldestApprovalMs: () => null,
      queues: () => ({ trace: 0 }),
      deliveries: () => [],
    },
    events: EVENT_NAMES,
    approval_statuses: APPROVAL_STATUSES,
    version: "0",
  });
  const text = await metrics.render();
  const names = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].flatMap(([, name, type]) =>
    type === "histogram" ? [`${name}_bucket`, `${name}_count`, `${name}_sum`] : [name!],
  );
  // What Prometheus and the blackbox exporter add themselves.
  return new Set([...names, "up", "probe_success"]);
}

const expressions = {
  "prometheus/alerts.yml": () =>
    (parse(read("prometheus/alerts.yml")) as { groups: { rules: { expr: string }[] }[] }).groups.flatMap(
      (group) => group.rules.map((rule) => rule.expr),
    ),
  "grafana/dashboard.json": () => {
    const { panels } = JSON.parse(read("grafana/dashboard.json")) as {
      panels: { targets?: { expr: string }[] }[];
    };
    return panels.flatMap((panel) => panel.targets ?? []).map((target) => target.expr);
  },
};

/** Where Prometheus would say that it cannot read it; null where it can. What Grafana fills in is filled in. */
function faultOf(expr: string): string | null {
  const text = expr.replaceAll("$__rate_interval", "5m").replace(/\$\w+/g, "x");
  let fault: string | null = null;
  parser.parse(text).iterate({
    enter({ type, from }) {
      if (type.isError) fault ??= `${text.slice(0, from)}<here>${text.slice(from)}`;
    },
  });
  return fault;
}

describe.each(Object.entries(expressions))("deploy/%s", (_name, all) => {
  it("is PromQL throughout", () => {
    expect(
      all()
        .map(faultOf)
        .filter((fault) => fault !== null),
    ).toEqual([]);
    expect(faultOf(`${all()[0]} ==`)).toMatch(/== ?<here>$/);
  });

  it("names only series that exist", async () => {
    const known = await seriesNames();
    const used = all().flatMap(
      (expr) => expr.match(/\b(?:svc|process|nodejs|probe)_[a-z0-9_]+|\bup(?=\{)/g) ?? [],
    );
    expect(used.length).toBeGreaterThan(5);
    expect(used.filter((name) => !known.has(name))).toEqual([]);
  });

  it("names only events and statuses that exist", () => {
    const text = all().join("\n");
    const listed = (label: string) =>
      [...text.matchAll(new RegExp(`${label}=~?"([^"$]+)"`, "g"))].flatMap((match) => match[1]!.split("|"));
    for (const event of listed("event")) expect(EVENT_NAMES).toContain(event);
    for (const status of listed("status")) expect(APPROVAL_STATUSES).toContain(status);
  });
});

describe("the dashboard", () => {
  it("gives each panel its own id and place", () => {
    const { panels } = JSON.parse(read("grafana/dashboard.json")) as {
      panels: { id: number; gridPos: { x: number; y: number; w: number; h: number } }[];
    };
    expect(new Set(panels.map((panel) => panel.id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
  });
});
