/**
 * `npm run fault -- --cluster [--minutes n --seed n --lanes n --pause ms --disk size --only-fault name
 * --porcupine <checkout> --histories file --asynchronous --json]`: breaks the nodes of a real cluster (deploy/ha) under load, for as long
 * as requested, and checks the result. Needs root and the programs of deploy/ha/cluster.sh, and Go for the checker.
 * With `--asynchronous`, the database does not wait for a standby: such a run must report losses.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { seeded } from "../../../test/support/env.ts";
import { until } from "../../../test/support/until.ts";
import { pause } from "../bench.ts";
import { Client } from "./client.ts";
import { ROOT } from "./config.ts";
import { CLUSTER_FAULTS } from "./faults.ts";
import { Load } from "./load.ts";
import { addressOf, Cluster, SERVERS } from "./nodes.ts";
import { type ClusterRow, isCleanReport, type Report, reportText } from "./report.ts";
import { Checker, ledgerHistory, positionsOf, readLedger } from "./verdict.ts";

const SHORTEST_MS = 2_000;
const LONGEST_MS = 25_000;
const RECOVERY_MS = 120_000;
/** After the run, open requests get this long. */
const LAST_ANSWERS_MS = 60_000;

/** From its own place, because it is not compiled. */
async function ensureProgram(name: string): Promise<void> {
  const { ensureProgram } = await import(pathToFileURL(join(ROOT, "scripts", "programs.mjs")).href);
  await ensureProgram(name);
}

interface ClusterRun {
  minutes: number;
  seed: number;
  lanes: number;
  pause_ms: number;
  disk: string;
  faults: string[];
  porcupine: string | undefined;
  /** Where the histories are written, for a person who looks for the cause of a verdict. */
  histories: string | undefined;
  synchronous: boolean;
  json: boolean;
}

export async function clusterMain(args: string[]): Promise<number> {
  const options = readOptions(args);
  if (process.getuid?.() !== 0) {
    console.error("The cluster needs root: each node has a network namespace and a disk of its own.");
    return 1;
  }
  for (const name of ["curl", "patroni", "etcd-server", "haproxy", "golang-go"] as const)
    await ensureProgram(name);
  const checker = new Checker(options.porcupine);
  const cluster = new Cluster({ disk: options.disk, synchronous: options.synchronous });
  // If the run ends early, the cluster is removed.
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.once(signal, () => void cluster.close().finally(() => process.exit(1)));
  try {
    const report = await runCluster(cluster, checker, options);
    console.log(options.json ? JSON.stringify(report) : reportText(report));
    if (isCleanReport(report)) return 0;
    console.error(`the logs of all nodes are in ${cluster.keepLogs()}`);
    return 1;
  } finally {
    await cluster.close();
    checker.close();
  }
}

function readOptions(args: string[]): ClusterRun {
  const { values } = parseArgs({
    args,
    options: {
      cluster: { type: "boolean" },
      minutes: { type: "string", default: "10" },
      seed: { type: "string", default: "1" },
      lanes: { type: "string", default: "5" },
      pause: { type: "string", default: "200" },
      disk: { type: "string", default: "1500m" },
      "only-fault": { type: "string", multiple: true, default: Object.keys(CLUSTER_FAULTS) },
      porcupine: { type: "string" },
      histories: { type: "string" },
      asynchronous: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
    },
  });
  const unknown = values["only-fault"].filter((name) => !Object.hasOwn(CLUSTER_FAULTS, name));
  if (unknown.length > 0)
    throw new Error(`--only-fault: one of\n  ${Object.keys(CLUSTER_FAULTS).join("\n  ")}`);
  return {
    minutes: Number(values.minutes),
    seed: Number(values.seed),
    lanes: Number(values.lanes),
    pause_ms: Number(values.pause),
    disk: values.disk,
    faults: values["only-fault"],
    porcupine: values.porcupine,
    histories: values.histories,
    synchronous: !values.asynchronous,
    json: values.json,
  };
}

async function runCluster(cluster: Cluster, checker: Checker, options: ClusterRun): Promise<Report> {
  const random = seeded(options.seed);
  console.error("starting the cluster");
  await cluster.run(["up"]);
  await cluster.whole(RECOVERY_MS);
  // Both servers, each directly and through both balancers.
  const places = SERVERS.flatMap((node) => [8787, 8000].map((port) => `http://${addressOf(node)}:${port}`));
  const client = new Client(places);
  const load = new Load(client, options.lanes, options.pause_ms, random);
  const began = performance.now();
  const rows = new Map<string, ClusterRow>();
  const windows: { from: number; row: ClusterRow }[] = [];
  const problems: string[] = [];
  await until(() => client.answers.length > 0, "a first answer");
  let queue: string[] = [];
  while (performance.now() - began < options.minutes * 60_000 && problems.length === 0) {
    if (queue.length === 0) queue = shuffled(options.faults, random);
    const fault = queue.pop()!;
    const row = rows.get(fault) ?? { fault, trials: 0, answers: 0, longest_gap_ms: 0, lost: 0 };
    rows.set(fault, row);
    windows.push({ from: performance.now(), row });
    await breakOnce({ cluster, client, random, row, problems });
  }
  const minutes = (performance.now() - began) / 60_000;
  const grace = setTimeout(() => {
    client.ends = true;
  }, LAST_ANSWERS_MS);
  await load.stop();
  clearTimeout(grace);
  console.error("reading the ledger");
  const ledger = await readLedger(cluster);
  const positions = positionsOf(ledger.records, client.answers);
  for (const [i, answer] of client.answers.entries()) {
    const window = windows.findLast(({ from }) => from <= answer.answered);
    if (window === undefined) continue;
    window.row.answers++;
    if (positions[i] === undefined) window.row.lost++;
  }
  console.error(`checking ${load.operations.length} operations`);
  const operations = [...load.operations, ...ledgerHistory(client.answers, positions)];
  if (options.histories !== undefined)
    writeFileSync(options.histories, operations.map((each) => `${JSON.stringify(each)}\n`).join(""));
  return {
    rows: [...rows.values()],
    minutes,
    findings: { ...ledger.findings, lost: positions.filter((seq) => seq === undefined).length },
    records: ledger.records.length,
    refused: client.refused,
    abandoned: load.abandoned,
    checked: checker.check(operations),
    believed_lies: checker.believedLies(operations),
    problems: [...problems, ...ledger.problems, ...client.problems.slice(0, 5)],
  };
}

interface Trial {
  cluster: Cluster;
  client: Client;
  random: () => number;
  row: ClusterRow;
  problems: string[];
}

async function breakOnce({ cluster, client, random, row, problems }: Trial): Promise<void> {
  const [primary, waited, other] = await cluster.roles();
  const lasting = SHORTEST_MS + random() * (LONGEST_MS - SHORTEST_MS);
  client.longest_gap_ms = 0;
  const began = performance.now();
  const place = { cluster, primary: primary!, waited: waited!, other: other!, random };
  try {
    await CLUSTER_FAULTS[row.fault]!(place, () => pause(lasting));
    row.trials++;
    const over = performance.now();
    await until(() => client.newest > over, "an answer after the fault", RECOVERY_MS);
    await recover(cluster);
  } catch (error) {
    problems.push(`${row.fault}: ${(error as Error).message}`);
  }
  row.longest_gap_ms = Math.max(row.longest_gap_ms, client.longest_gap_ms);
  const seconds = (ms: number): string => (ms / 1_000).toFixed(1);
  console.error(
    `${row.fault}: ${seconds(performance.now() - began)} s, longest without an answer ${seconds(client.longest_gap_ms)} s`,
  );
}

/** A standby that cannot follow any more is copied again, as an operator would. */
async function recover(cluster: Cluster): Promise<void> {
  try {
    await cluster.whole(RECOVERY_MS);
  } catch {
    for (const { name, state } of await cluster.members())
      if (state !== "running" && state !== "streaming") await cluster.run(["reinit", name]);
    await cluster.whole(RECOVERY_MS);
  }
}

function shuffled<T>(from: readonly T[], random: () => number): T[] {
  return from
    .map((value) => ({ value, order: random() }))
    .sort((a, b) => a.order - b.order)
    .map(({ value }) => value);
}
