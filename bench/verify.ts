/** Verifying a ledger against hashing the very same bytes with openssl, in one run. */
import { execFileSync } from "node:child_process";
import { createWriteStream, mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { allCores } from "../src/evidence/chain/pool.ts";
import { verifyLedgerFile } from "../src/evidence/verify-ledger.ts";
import { EMPTY_HEAD, type LedgerHead, sealRecord } from "../src/ledger/record.ts";
import { cpuOf, endedChildrenMs, ownMs } from "./cpu.ts";
import type { BenchOptions } from "./main.ts";
import { median, type Row } from "./report.ts";

const RECORDS = Number(process.env["SVC_BENCH_RECORDS"] ?? 1_000_000);
const FOUR = 4;

async function writeLedger(file: string): Promise<void> {
  const out = createWriteStream(file);
  let head: LedgerHead = EMPTY_HEAD;
  for (let i = 0; i < RECORDS; i++) {
    const { record, line } = sealRecord(
      {
        ts_ms: 1_790_000_000_000 + i,
        event: "intended",
        actor: "billing-bot",
        run_id: `run_${Math.floor(i / 10)}`,
        run_seq: i % 10,
        step: i % 10,
        tool: "payments.refund",
        reason: "duplicate charge",
        effect: "irreversible",
        args_hash: `sha256:${"a".repeat(64)}`,
        scope_seal: `sha256:${"b".repeat(64)}`,
        manifest_version: "1",
      },
      head,
    );
    head = { records: record.seq + 1, hash: record.hash };
    if (!out.write(`${line}\n`)) await new Promise<void>((resolve) => out.once("drain", resolve));
  }
  await new Promise<void>((resolve) => out.end(resolve));
}

/** Processor and wall-clock time of a piece of work, in milliseconds. */
interface Cost {
  cpu: number;
  wall: number;
}

function openssl(file: string): Cost {
  const [cpu, start] = [endedChildrenMs(), performance.now()];
  execFileSync("openssl", ["dgst", "-sha256", file]);
  return { cpu: endedChildrenMs() - cpu, wall: performance.now() - start };
}

const mainThreadMs = (): number => (cpuOf([process.pid])?.main ?? 0) / 1_000;

async function svc(file: string, threads: number): Promise<Cost & { main: number }> {
  const [cpu, main, start] = [ownMs(), mainThreadMs(), performance.now()];
  const { first_bad } = await verifyLedgerFile(file, { threads });
  if (first_bad !== null) throw new Error("the benchmark's own ledger does not verify");
  return { cpu: ownMs() - cpu, main: mainThreadMs() - main, wall: performance.now() - start };
}

export async function run({ rounds }: BenchOptions): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "svc-bench-"));
  const file = join(folder, "ledger.jsonl");
  try {
    await writeLedger(file);
    const one: number[] = [];
    const cores: number[] = [];
    const four: number[] = [];
    const cost: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const peer = openssl(file);
      const alone = await svc(file, 0);
      const shared = await svc(file, allCores());
      const wide = await svc(file, FOUR);
      one.push(peer.cpu / alone.cpu);
      cores.push(peer.wall / shared.wall);
      // As if nothing of the main thread's work overlapped with that of the others.
      four.push(peer.cpu / (wide.main + (wide.cpu - wide.main) / FOUR));
      cost.push((alone.cpu * 1_000) / RECORDS);
    }
    const what = `${RECORDS.toLocaleString("en")} records against openssl dgst -sha256`;
    const row = (how: string, values: number[], at_least: number): Row => ({
      suite: "verify",
      what: `${what}: ${how}`,
      value: median(values),
      goal: { at_least },
    });
    return [
      row("one thread, processor time", one, 0.3),
      row(`${availableParallelism()} cores, wall clock`, cores, 0.5),
      row("four cores, computed from processor time", four, 0.5),
      { suite: "verify", what: "a record, one thread", value: median(cost), unit: " µs", goal: null },
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
