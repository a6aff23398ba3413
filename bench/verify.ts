/** Verifying a ledger against hashing the very same bytes with openssl, in one run. */
import { execFileSync } from "node:child_process";
import { createWriteStream, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { verifyLedgerFile } from "../src/evidence/verify-ledger.ts";
import { EMPTY_HEAD, type Head, sealRecord } from "../src/ledger/record.ts";
import type { BenchOptions } from "./main.ts";
import { alternate, type Row, ratio } from "./report.ts";

const RECORDS = Number(process.env["SVC_BENCH_RECORDS"] ?? 1_000_000);

async function writeLedger(file: string): Promise<void> {
  const out = createWriteStream(file);
  let head: Head = EMPTY_HEAD;
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

export async function run({ rounds }: BenchOptions): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "svc-bench-"));
  const file = join(folder, "ledger.jsonl");
  try {
    await writeLedger(file);
    const speeds = await alternate(rounds, {
      openssl: () => {
        const start = performance.now();
        execFileSync("openssl", ["dgst", "-sha256", file]);
        return (RECORDS * 1_000) / (performance.now() - start);
      },
      svc: async () => {
        const start = performance.now();
        const { first_bad } = await verifyLedgerFile(file);
        if (first_bad !== null) throw new Error("the benchmark's own ledger does not verify");
        return (RECORDS * 1_000) / (performance.now() - start);
      },
    });
    const what = `${RECORDS.toLocaleString("en")} records: speed against openssl dgst -sha256`;
    return [{ suite: "verify", what, value: ratio(speeds.svc, speeds.openssl), goal: { at_least: 0.5 } }];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
