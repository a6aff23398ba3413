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

interface StateSeries {
  readonly name: string;
  readonly help: string;
  readonly label_names: readonly string[];
  /** A count that only grows; a gauge where it is left out. */
  readonly counter?: true;
  /** The series is absent where the source has no such method. */
  readonly of: keyof MetricsSource;
  read(source: Required<MetricsSource>, options: MetricsOptions): Promise<readonly Sample[]>;
}

type Sample = readonly [labels: Readonly<Record<string, string>>, value: number];

const labelled = (label: string, counts: Counts): Sample[] =>
  Object.entries(counts).map(([name, count]) => [{ [label]: name }, count]);
const zeros = (names: readonly string[]): Counts => Object.fromEntries(names.map((name) => [name, 0]));

/** What is asked of the source, by the name under which a scrape that failed is counted. */
const STATE: Readonly<Record<string, StateSeries>> = {
  ledger_events: {
    name: "svc_ledger_events_total",
    help: "Records on the ledger, by event",
    label_names: ["event"],
    counter: true,
    of: "ledgerEvents",
    read: async (source, { events }) =>
      labelled("event", { ...zeros(events), ...(await source.ledgerEvents()) }),
  },
  approvals: {
    name: "svc_approvals",
    help: "Approval requests, by status",
    label_names: ["status"],
    of: "approvals",
    read: async (source, { approval_statuses }) =>
      labelled("status", { ...zeros(approval_statuses), ...(await source.approvals()) }),
  },
  halted: {
    name: "svc_halted",
    help: "1 while any halt is in force, else 0",
    label_names: [],
    of: "halted",
    read: async (source) => [[{}, (await source.halted()) ? 1 : 0]],
  },
  runs: {
    name: "svc_runs",
    help: "Runs whose working data is kept",
    label_names: [],
    of: "runs",
    read: async (source) => [[{}, await source.runs()]],
  },
  undo_closing: {
    name: "svc_undo_closing",
    help: "Undos that stop working within the time that alerts.undo_closing sets",
    label_names: [],
    of: "undosClosing",
    read: async (source) => [[{}, await source.undosClosing()]],
  },
  replica_lag: {
    name: "svc_replica_lag_seconds",
    help: "How far the replica is behind that reads are sent to; NaN while that is not known",
    label_names: [],
    of: "replicaLagMs",
    read: async (source) => [[{}, ((await source.replicaLagMs()) ?? Number.NaN) / 1_000]],
  },
  oldest_approval: {
    name: "svc_oldest_approval_age_seconds",
    help: "How long the oldest open approval request has been waiting, 0 where none is open",
    label_names: [],
    of: "oldestApprovalMs",
    read: async (source) => [[{}, ((await source.oldestApprovalMs()) ?? 0) / 1_000]],
  },
  queues: {
    name: "svc_queue_depth",
    help: "Entries waiting in a queue of this process",
    label_names: ["queue"],
    of: "queues",
    read: async (source) => labelled("queue", await source.queues()),
  },
  deliveries: {
    name: "svc_deliveries_total",
    help: "Notifications, traces and anchors sent by this process, by target and result",
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
    help: "State series that could not be read for a scrape, by series",
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
    /** Reads, then sets in one go, so that two scrapes at once do not add up. */
    const collect = async () => {
      try {
        const samples = await read(options.source as Required<MetricsSource>, options);
        metric.reset();
        for (const [labels, value] of samples)
          if (metric instanceof Counter) metric.inc(labels, value);
          else metric.set(labels, value);
      } catch {
        // Absent, not zero: "not halted" must never be what a broken store looks like.
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
