/**
 * The Prometheus series. What the store knows (events, approvals, runs, halts, queues) is asked for when
 * a scraper asks; what happens on the way (durations, errors) is counted as it happens and costs a
 * few memory writes.
 */
import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { FastHistogram } from "./histogram.ts";

type Awaitable<T> = T | Promise<T>;
type Counts = Readonly<Record<string, number>>;

/** Where the state series come from. A method that fails leaves its series out of that scrape. */
export interface MetricsSource {
  ledgerEvents(): Awaitable<Counts>;
  approvals(): Awaitable<Counts>;
  halted(): Awaitable<boolean>;
  runs(): Awaitable<number>;
  /** How long the oldest open approval has been waiting; null where none is open. */
  oldestApprovalMs?(): Awaitable<number | null>;
  /** Undos that stop working soon. */
  undosClosing?(): Awaitable<number>;
  /** How far the replica is behind; null while that is not known. */
  replicaLagMs?(): Awaitable<number | null>;
  /** Entries waiting, by queue: `notify:<channel>`, `trace`, `ledger`. */
  queues?(): Awaitable<Counts>;
  /** What became of side-channel deliveries, by target and result, counted since the start. */
  deliveries?(): Awaitable<readonly { target: string; result: "ok" | "failed" | "dropped"; count: number }[]>;
}

interface MetricsOptions {
  readonly source: MetricsSource;
  /** Names that always have a series, so that a rate over them has a beginning. */
  readonly events: readonly string[];
  readonly approval_statuses: readonly string[];
  readonly version: string;
  /** Memory, CPU and event loop of the process; true unless said otherwise. */
  readonly process_metrics?: boolean;
}

export interface Metrics {
  readonly content_type: string;
  render(): Promise<string>;
  decision(decision: "allow" | "would_block" | "block", ms: number): void;
  ledgerAppend(ms: number): void;
  /** `route` is the route's pattern, never the path: a path would make a series for every run. */
  http(method: string, route: string, status: number, ms: number): void;
  storeError(operation: string): void;
}

const DECISION_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1];
const APPEND_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
const HTTP_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
/** Gauges of prom-client whose names end in `_total`, which Prometheus keeps for counters. */
const MISNAMED = [
  "nodejs_active_handles_total",
  "nodejs_active_requests_total",
  "nodejs_active_resources_total",
];

export function createMetrics(options: MetricsOptions): Metrics {
  const registry = new Registry();
  addState(registry, options);
  if (options.process_metrics ?? true) {
    collectDefaultMetrics({ register: registry });
    for (const name of MISNAMED) registry.removeSingleMetric(name);
  }
  const decisions = new FastHistogram(
    {
      name: "svc_decision_duration_seconds",
      help: "Time from an intent's arrival until its decision was durable, by decision",
      labels: ["decision"],
      buckets: DECISION_BUCKETS,
    },
    registry,
  );
  const byDecision = {
    allow: decisions.at("allow"),
    would_block: decisions.at("would_block"),
    block: decisions.at("block"),
  };
  const appends = new FastHistogram(
    {
      name: "svc_ledger_append_duration_seconds",
      help: "Time until a unit of work and its ledger records were durable",
      labels: [],
      buckets: APPEND_BUCKETS,
    },
    registry,
  ).at();
  const requests = new FastHistogram(
    {
      name: "svc_http_request_duration_seconds",
      help: "Time to answer an HTTP request, by route pattern",
      labels: ["method", "route", "status"],
      buckets: HTTP_BUCKETS,
    },
    registry,
  );
  const storeErrors = new Counter({
    name: "svc_store_errors_total",
    help: "Store operations that failed, by operation",
    labelNames: ["operation"],
    registers: [registry],
  });
  return {
    content_type: registry.contentType,
    // prom-client spells a figure that has no samples yet in a way that the format does not know.
    render: async () => (await registry.metrics()).replace(/ Nan$/gm, " NaN"),
    decision: (decision, ms) => byDecision[decision].observe(ms / 1_000),
    ledgerAppend: (ms) => appends.observe(ms / 1_000),
    http: (method, route, status, ms) => requests.at(method, route, String(status)).observe(ms / 1_000),
    storeError: (operation) => storeErrors.inc({ operation }),
  };
}

function addState(registry: Registry, options: MetricsOptions): void {
  const { source } = options;
  const registers = [registry];
  const failures = new Counter({
    name: "svc_scrape_errors_total",
    help: "State series that could not be read for a scrape, by series",
    labelNames: ["series"],
    registers,
  });
  /** A collect function: reads, then sets in one go, so that two scrapes at once do not add up. */
  const fill = async <T>(
    metric: { reset(): void; remove(labels: object): void },
    series: string,
    read: () => Awaitable<T>,
    set: (value: T) => void,
  ) => {
    try {
      const value = await read();
      metric.reset();
      set(value);
    } catch {
      // Absent, not zero: "not halted" must never be what a broken store looks like.
      metric.reset();
      metric.remove({});
      failures.inc({ series });
    }
  };
  const known = (names: readonly string[], counts: Counts): [string, number][] =>
    Object.entries({ ...Object.fromEntries(names.map((name) => [name, 0])), ...counts });

  new Gauge({ name: "svc_build_info", help: "The running version", labelNames: ["version"], registers }).set(
    { version: options.version },
    1,
  );
  new Counter({
    name: "svc_ledger_events_total",
    help: "Records on the ledger, by event",
    labelNames: ["event"],
    registers,
    collect() {
      return fill(this, "ledger_events", source.ledgerEvents.bind(source), (counts) => {
        for (const [event, count] of known(options.events, counts)) this.inc({ event }, count);
      });
    },
  });
  new Gauge({
    name: "svc_approvals",
    help: "Approval requests, by status",
    labelNames: ["status"],
    registers,
    collect() {
      return fill(this, "approvals", source.approvals.bind(source), (counts) => {
        for (const [status, count] of known(options.approval_statuses, counts)) this.set({ status }, count);
      });
    },
  });
  new Gauge({
    name: "svc_halted",
    help: "1 while any halt is in force, else 0",
    registers,
    collect() {
      return fill(this, "halted", source.halted.bind(source), (halted) => this.set(halted ? 1 : 0));
    },
  });
  new Gauge({
    name: "svc_runs",
    help: "Runs whose working data is kept",
    registers,
    collect() {
      return fill(this, "runs", source.runs.bind(source), (runs) => this.set(runs));
    },
  });
  addOptionalState(registry, source, fill);
}

type Fill = <T>(
  metric: { reset(): void; remove(labels: object): void },
  series: string,
  read: () => Awaitable<T>,
  set: (value: T) => void,
) => Promise<void>;

function addOptionalState(registry: Registry, source: MetricsSource, fill: Fill): void {
  const registers = [registry];
  const { oldestApprovalMs, undosClosing, replicaLagMs, queues, deliveries } = source;
  if (undosClosing !== undefined) {
    new Gauge({
      name: "svc_undo_closing",
      help: "Undos that stop working within the time that alerts.undo_closing sets",
      registers,
      collect() {
        return fill(this, "undo_closing", undosClosing.bind(source), (undos) => this.set(undos));
      },
    });
  }
  if (replicaLagMs !== undefined) {
    new Gauge({
      name: "svc_replica_lag_seconds",
      help: "How far the replica is behind that reads are sent to; NaN while that is not known",
      registers,
      collect() {
        return fill(this, "replica_lag", replicaLagMs.bind(source), (ms) =>
          this.set(ms === null ? Number.NaN : ms / 1_000),
        );
      },
    });
  }
  if (oldestApprovalMs !== undefined) {
    new Gauge({
      name: "svc_oldest_approval_age_seconds",
      help: "How long the oldest open approval request has been waiting, 0 where none is open",
      registers,
      collect() {
        return fill(this, "oldest_approval", oldestApprovalMs.bind(source), (ms) =>
          this.set((ms ?? 0) / 1_000),
        );
      },
    });
  }
  if (queues !== undefined) {
    new Gauge({
      name: "svc_queue_depth",
      help: "Entries waiting in a queue of this process",
      labelNames: ["queue"],
      registers,
      collect() {
        return fill(this, "queues", queues.bind(source), (depths) => {
          for (const [queue, depth] of Object.entries(depths)) this.set({ queue }, depth);
        });
      },
    });
  }
  if (deliveries !== undefined) {
    new Counter({
      name: "svc_deliveries_total",
      help: "Notifications, traces and anchors sent by this process, by target and result",
      labelNames: ["target", "result"],
      registers,
      collect() {
        return fill(this, "deliveries", deliveries.bind(source), (all) => {
          for (const { target, result, count } of all) this.inc({ target, result }, count);
        });
      },
    });
  }
}
