/**
 * One containment of many runs: as many as trials are asked for, each with ten times as many steps. The answer comes,
 * every step is undone once and newest first over all runs, each run has a bundle that verifies, and so does the ledger.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { verifyBundle } from "../../src/evidence/bundles/verify-bundle.ts";
import { readTrustedKeys, writeKeyFiles } from "../../src/evidence/key-files.ts";
import { intentUnit } from "../../src/govern/decide/intent.ts";
import { outcomeUnit } from "../../src/govern/decide/outcome.ts";
import { newRun, openRunUnit } from "../../src/govern/runs/open-run.ts";
import type { ContainReport } from "../../src/operations/contain/report.ts";
import type { Bench } from "./bench.ts";
import { ended, serverAt } from "./containments.ts";
import { AGENT } from "./engine.ts";
import { newRow, type Row } from "./row.ts";

const STEPS_A_RUN = 10;
const MANIFESTS =
  "- {tool: make, effect: compensable, permission: p, compensation: {tool: unmake, args: {n: $args.n}}}\n";

type Server = Awaited<ReturnType<typeof serverAt>>;

export async function containedRuns(bench: Bench): Promise<Row> {
  const row = newRow(bench.store, "runs in one containment");
  const runs = Array.from({ length: bench.count }, (_, i) => `run-${i}`);
  const folder = mkdtempSync(join(tmpdir(), "svc-proof-"));
  const place = await bench.places.make(bench.store);
  try {
    const { private_file, public_file } = await writeKeyFiles(join(folder, "evidence"));
    writeFileSync(join(folder, "manifests.yaml"), MANIFESTS);
    const server = await serverAt(place, {
      SVC_MANIFESTS: join(folder, "manifests.yaml"),
      SVC_SIGNING_KEY: private_file,
      SVC_DATA: place.data || folder,
    });
    try {
      const made = await makeCalls(server, runs, bench.count * STEPS_A_RUN);
      const report = await containAll(server, row, made);
      await judge(server, row, report, { runs, made, public_file });
    } finally {
      await server.close();
    }
  } finally {
    await place.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
  return row;
}

/** The calls of all runs concurrently; returns their records in the order of the ledger. */
async function makeCalls({ app }: Server, runs: readonly string[], steps: number): Promise<string[]> {
  const { core } = app;
  const made: { name: string; seq: number }[] = [];
  const work = async (run_id: string): Promise<void> => {
    await core.store.transact(openRunUnit(newRun(core, AGENT, { run_id, permissions: ["p"] })));
    for (let step = 0; step < steps; step++) {
      const name = `${run_id}/${step}`;
      const input = { tool: "make", args: { n: name }, reason: "load", depends_on: [] };
      await core.store.transact(intentUnit(core, AGENT, run_id, input));
      const outcome = { status: "succeeded" as const, result: null };
      const { records } = await core.store.transact(outcomeUnit(core, AGENT, run_id, step, outcome));
      made.push({ name, seq: records[0]!.seq });
    }
  };
  await Promise.all(runs.map(work));
  return made.sort((a, b) => a.seq - b.seq).map(({ name }) => name);
}

async function containAll(server: Server, row: Row, made: readonly string[]): Promise<ContainReport> {
  const { app, store, call } = server;
  const standing = [...made];
  const undone = new Set<string>();
  app.jobTools = {
    compensator: async ({ args, idempotency_key }) => {
      // An undo that was interrupted is asked for again under its key, and takes effect once.
      if (undone.has(idempotency_key)) return;
      undone.add(idempotency_key);
      const { n } = args as { n: string };
      const newest = standing.pop();
      if (newest !== n) row.problems.push(`${n} was undone where ${newest ?? "nothing"} was the newest`);
    },
  };
  const began = performance.now();
  const body = { actor: AGENT.name, reason: "drill", confirm: true };
  const answer = await call("POST", "/v1/contain", body);
  const answered = performance.now() - began;
  if (answer.statusCode !== 202) throw new Error(`contain: ${answer.statusCode} ${answer.body}`);
  const { report } = await ended(store, (answer.json() as { job: { id: string } }).job.id);
  const took = performance.now() - began;
  if (standing.length > 0) row.problems.push(`${standing.length} calls still stand`);
  const seconds = (ms: number) => (ms / 1_000).toFixed(1);
  console.error(
    `${row.store}: ${made.length} steps contained in ${seconds(took)} s, answered after ${seconds(answered)} s`,
  );
  return report as unknown as ContainReport;
}

async function judge(
  { call }: Server,
  row: Row,
  report: ContainReport,
  { runs, made, public_file }: { runs: readonly string[]; made: readonly string[]; public_file: string },
): Promise<void> {
  if (!report.complete || report.undone !== made.length || report.runs.length !== runs.length)
    row.problems.push(`the report tells of ${report.undone} undone of ${made.length}`);
  const trusted = readTrustedKeys([public_file]);
  for (const { run_id, bundle } of report.runs) {
    const verdict = bundle === null ? null : await verifyBundle(bundle, trusted);
    if (verdict?.ok !== true) row.problems.push(`no bundle of ${run_id} that verifies`);
  }
  const verified = await call("GET", "/v1/ledger/verify");
  if ((verified.json() as { ok?: boolean }).ok !== true) row.problems.push(`the ledger: ${verified.body}`);
  row.trials = runs.length;
  row.answers = made.length;
}
