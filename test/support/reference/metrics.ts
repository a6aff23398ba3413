/** Reference page of the metrics, read from the text of a scrape. */
import { createMetrics } from "../../../src/telemetry/metrics.ts";
import { codeSpan, generatedNote, markdownTable } from "./markdown.ts";

/** Series of prom-client about the process and the runtime. */
const IS_RUNTIME = /^(process|nodejs)_/;

interface MetricFacts {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  readonly labels: readonly string[];
}

/** Returns every metric of a server. Each has at least one sample, so that its labels show. */
async function allMetrics(): Promise<MetricFacts[]> {
  const metrics = createMetrics({
    source: {
      ledgerEvents: () => ({ intended: 1 }),
      approvals: () => ({ pending: 1 }),
      halted: () => false,
      runs: () => 1,
      oldestApprovalMs: () => 1,
      undosClosing: () => 1,
      replicaLagMs: () => 1,
      queues: () => ({ ledger: 1 }),
      deliveries: () => [{ target: "notify:ops", result: "ok", count: 1 }],
    },
    events: [],
    approval_statuses: [],
    version: "0.0.0",
  });
  metrics.decision("allow", 1);
  metrics.ledgerAppend(1);
  metrics.http("GET", "/v1/runs", 200, 1);
  metrics.storeError("transact");
  const text = await metrics.render();
  return [...text.matchAll(/^# HELP (\S+) (.*)\n# TYPE \S+ (\w+)$/gm)].map(([, name, help, type]) => ({
    name: name!,
    help: help!,
    type: type!,
    labels: labelsOf(text, name!),
  }));
}

function labelsOf(text: string, name: string): string[] {
  const samples = [...text.matchAll(new RegExp(`^${name}(?:_bucket|_sum|_count)?\\{(.*)\\} `, "gm"))];
  const names = samples.flatMap(([, labels]) => [...labels!.matchAll(/(\w+)="/g)].map(([, label]) => label!));
  return [...new Set([...names, ...(name === "svc_scrape_errors_total" ? ["series"] : [])])].filter(
    (label) => label !== "le",
  );
}

const LABELS: readonly (readonly [label: string, values: string])[] = [
  ["decision", "`allow`, `would_block` or `block`"],
  ["event", "name of a [ledger event](records.md#events)"],
  ["method, route, status", "HTTP method, route pattern such as `/v1/runs/{id}`, HTTP status"],
  ["operation", "store operation that failed"],
  ["queue", "`notify:<channel>`, `trace` or `ledger`"],
  ["result", "`ok`, `failed` or `dropped`"],
  ["series", "metric that a scrape could not read, without its prefix"],
  ["status", "status of an approval request, such as `pending`"],
  ["target", "destination, such as `notify:<channel>`"],
  ["version", "version of the running server"],
];

export async function metricsPage(): Promise<string> {
  const all = await allMetrics();
  const rows = (of: readonly MetricFacts[]): string[][] =>
    of.map(({ name, type, labels, help }) => [codeSpan(name), type, labels.map(codeSpan).join(", "), help]);
  const heads = ["Name", "Type", "Labels", "Meaning"];
  return `# Metrics

${generatedNote("src/telemetry/metrics.ts")}

Scrape \`GET /metrics\` on every server. It returns the Prometheus text format and needs the auditor role, unless you set
\`metrics_public\`. How to collect metrics: [monitor Takeback](../operations/monitor.md).

## Service

${markdownTable(heads, rows(all.filter(({ name }) => !IS_RUNTIME.test(name))))}
A histogram also has \`_bucket\`, \`_sum\` and \`_count\` series. Times are in seconds.

These series describe the store, so every server reports the same value: \`svc_ledger_events_total\`, \`svc_approvals\`,
\`svc_halted\`, \`svc_runs\`, \`svc_undo_closing\` and \`svc_oldest_approval_age_seconds\`. Use \`max\` over servers. All other
series describe one process.

If the store does not answer, its series are absent from the scrape and \`svc_scrape_errors_total\` grows.

## Labels

${markdownTable(
  ["Label", "Values"],
  LABELS.map(([label, values]) => [label.split(", ").map(codeSpan).join(", "), values]),
)}
## Process and runtime

Servers on Linux also report these series of the process and of Node.js.

${markdownTable(
  ["Name", "Type", "Meaning"],
  all.filter(({ name }) => IS_RUNTIME.test(name)).map(({ name, type, help }) => [codeSpan(name), type, help]),
)}`;
}
