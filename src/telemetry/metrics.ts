/**
 * Prometheus metrics. A scrape reads state from the store (events, approvals, runs, halts, queues). Durations and
 * errors are counted as they happen, at the cost of a few memory writes.
 */
import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { FastHistogram } from "./histogram.ts";

type Awaitable<T> = T | Promise<T>;
type Counts = Readonly<Record<string, number>>;

/** Source of the state series. If a method fails, that scrape omits its series. */
export interface MetricsSource {
  ledgerEvents(): Awaitable<Counts>;
  approvals(): Awaitable<Counts>;
  halted(): Awaitable<boolean>;
  runs(): Awaitable<number>;
  /** Age of the oldest open approval request, or null if there is none. */
  oldestApprovalMs?(): Awaitable<number | null>;
  /** The number of undos that expire soon. */
  undosClosing?(): Awaitable<number>;
  /** The lag of the replica, or null while it is unknown. */
  replicaLagMs?(): Awaitable<number | null>;
  /** Waiting entries by queue: `notify:<channel>`, `trace`, `ledger`. */
  queues?(): Awaitable<Counts>;
  /** Side-channel deliveries by target and result, counted since the start. */
  deliveries?(): Awaitable<readonly { target: string; result: "ok" | "failed" | "dropped"; count: number }[]>;
}

interface MetricsOptions {
  readonly source: MetricsSource;
  /** Event names that always have a series, so that a rate over them has a start value. */
  readonly events: readonly string[];
  readonly approval_statuses: readonly string[];
  readonly version: string;
  /** Memory, CPU and event loop metrics of the process. On by default. */
  readonly process_metrics?: boolean;
}

export interface ServiceMetrics {
  readonly content_type: string;
  render(): Promise<string>;
  decision(decision: "allow" | "would_block" | "block", ms: number): void;
  ledgerAppend(ms: number): void;
  /** `route` is the route's pattern, never the path: paths would create a series for every run. */
  http(method: string, route: string, status: number, ms: number): void;
  storeError(operation: string): void;
}

const DECISION_BUCKETS = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1];
const APPEND_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
const HTTP_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
/** prom-client gauges whose names end in `_total`, which Prometheus reserves for counters. */
const MISNAMED = [
  "nodejs_active_handles_total",
  "nodejs_active_requests_total",
  "nodejs_active_resources_total",
];

export function createMetrics(options: MetricsOptions): ServiceMetrics {
  const registry = new Registry();
  addState(registry, options);
  if (options.process_metrics ?? true) {
    collectDefaultMetrics({ register: registry });
    for (const name of MISNAMED) registry.removeSingleMetric(name);
  }
  const decisions = new FastHistogram(
    {
      name: "svc_decision_duration_seconds",
      help: "Time from the arrival of a request to its durable decision",
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
      help: "Time to make a change and its ledger records durable",
      labels: [],
      buckets: APPEND_BUCKETS,
    },
    registry,
  ).at();
  const requests = new FastHistogram(
    {
      name: "svc_http_request_duration_seconds",
      help: "Time to answer an HTTP request",
      labels: ["method", "route", "status"],
      buckets: HTTP_BUCKETS,
    },
    registry,
  );
  const storeErrors = new Counter({
    name: "svc_store_errors_total",
    help: "Failed store operations",
    labelNames: ["operation"],
    registers: [registry],
  });
  return {
    content_type: registry.contentType,
    // prom-client writes an empty value as `Nan`, which the format does not allow.
    render: async () => (await registry.metrics()).replace(/ Nan$/gm, " NaN"),
    decision: (decision, ms) => byDecision[decision].observe(ms / 1_000),
    ledgerAppend: (ms) => appends.observe(ms / 1_000),
    http: (method, route, status, ms) => requests.at(method, route, String(status)).observe(ms / 1_000),
    storeError: (operation) => storeErrors.inc({ operation }),
  };
}

interface StateSeries {
  readonly name: string;
  readonly help: string;
  readonly label_names: readonly string[];
  /** True for a counter. By default, the series is a gauge. */
  readonly counter?: true;
  /** The method with the values. A source without it has no such series. */
  readonly of: keyof MetricsSource;
  read(source: Required<MetricsSource>, options: MetricsOptions): Promise<readonly Sample[]>;
}

type Sample = readonly [labels: Readonly<Record<string, string>>, value: number];

const labelled = (label: string, counts: Counts): Sample[] =>
  Object.entries(counts).map(([name, count]) => [{ [label]: name }, count]);
const zeros = (names: readonly string[]): Counts => Object.fromEntries(names.map((name) => [name, 0]));

/** State series by the name that counts their failed scrapes. */
const STATE: Readonly<Record<string, StateSeries>> = {
  ledger_events: {
    name: "svc_ledger_events_total",
    help: "Records on the ledger",
    label_names: ["event"],
    counter: true,
    of: "ledgerEvents",
    read: async (source, { events }) =>
      labelled("event", { ...zeros(events), ...(await source.ledgerEvents()) }),
  },
  approvals: {
    name: "svc_approvals",
    help: "Approval requests in the store",
    label_names: ["status"],
    of: "approvals",
    read: async (source, { approval_statuses }) =>
      labelled("status", { ...zeros(approval_statuses), ...(await source.approvals()) }),
  },
  halted: {
    name: "svc_halted",
    help: "1 while any halt is active, else 0",
    label_names: [],
    of: "halted",
    read: async (source) => [[{}, (await source.halted()) ? 1 : 0]],
  },
  runs: {
    name: "svc_runs",
    help: "Runs with working data in the store",
    label_names: [],
    of: "runs",
    read: async (source) => [[{}, await source.runs()]],
  },
  undo_closing: {
    name: "svc_undo_closing",
    help: "Undos that expire within alerts.undo_closing",
    label_names: [],
    of: "undosClosing",
    read: async (source) => [[{}, await source.undosClosing()]],
  },
  replica_lag: {
    name: "svc_replica_lag_seconds",
    help: "Lag of the read replica; NaN while unknown",
    label_names: [],
    of: "replicaLagMs",
    read: async (source) => [[{}, ((await source.replicaLagMs()) ?? Number.NaN) / 1_000]],
  },
  oldest_approval: {
    name: "svc_oldest_approval_age_seconds",
    help: "Age of the oldest open approval request; 0 without one",
    label_names: [],
    of: "oldestApprovalMs",
    read: async (source) => [[{}, ((await source.oldestApprovalMs()) ?? 0) / 1_000]],
  },
  queues: {
    name: "svc_queue_depth",
    help: "Waiting entries in a queue of this process",
    label_names: ["queue"],
    of: "queues",
    read: async (source) => labelled("queue", await source.queues()),
  },
  deliveries: {
    name: "svc_deliveries_total",
    help: "Notifications, traces and anchors sent by this process",
    label_names: ["target", "result"],
    counter: true,
    of: "deliveries",
    read: async (source) =>
      (await source.deliveries()).map(({ target, result, count }) => [{ target, result }, count]),
  },
};

function addState(registry: Registry, options: MetricsOptions): void {
  const registers = [registry];
  const failures = new Counter({
    name: "svc_scrape_errors_total",
    help: "Failed reads of a store series for a scrape",
    labelNames: ["series"],
    registers,
  });
  new Gauge({ name: "svc_build_info", help: "The running version", labelNames: ["version"], registers }).set(
    { version: options.version },
    1,
  );
  for (const [series, { name, help, label_names, counter, of, read }] of Object.entries(STATE)) {
    if (options.source[of] === undefined) continue;
    const described = { name, help, labelNames: [...label_names], registers };
    /** Reads all values before it sets any, so that concurrent scrapes do not add up. */
    const collect = async () => {
      try {
        const samples = await read(options.source as Required<MetricsSource>, options);
        metric.reset();
        for (const [labels, value] of samples)
          if (metric instanceof Counter) metric.inc(labels, value);
          else metric.set(labels, value);
      } catch {
        // Absent instead of zero: a broken store must not look like "not halted".
        metric.reset();
        metric.remove({});
        failures.inc({ series });
      }
    };
    const metric = counter
      ? new Counter<string>({ ...described, collect })
      : new Gauge<string>({ ...described, collect });
  }
}
