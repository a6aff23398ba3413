/**
 * The faults that have their own tests: disks that fail, fill up, freeze and lose their power, torn tails and
 * rot, databases that go away. They run unchanged; each reports how many trials it made, and a test that
 * fails is a row with its name.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StoreKind } from "../../src/store/open.ts";
import { TRIALS_FILE, type Trials } from "../../test/support/trials.ts";
import { newRow, type Row } from "./row.ts";

const ON_ALL = ["test/faults/server.test.ts", "test/faults/unrecordable.test.ts"];
const SYNCS = "test/faults/syncs.test.ts";
/** The bytes on disk changed. */
const ALTERED = [
  "src/store/journal/set-back.test.ts",
  "test/faults/set-back.test.ts",
  "test/faults/damaged.test.ts",
];
const TESTS: Record<StoreKind, readonly string[]> = {
  files: [
    ...ON_ALL,
    SYNCS,
    ...ALTERED,
    "src/store/files/faults.test.ts",
    "src/store/files/power.test.ts",
    "src/store/files/tail.test.ts",
    "src/store/files/place.test.ts",
    "src/store/journal/real-disk.test.ts",
    "test/contract/files.test.ts",
    "test/sim/rollback-kill.test.ts",
  ],
  sqlite: [
    ...ON_ALL,
    SYNCS,
    ...ALTERED,
    "src/store/sqlite/faults.test.ts",
    "src/store/journal/real-disk.test.ts",
    "test/contract/sqlite.test.ts",
    "test/sim/rollback-kill.test.ts",
  ],
  postgres: [
    ...ON_ALL,
    "test/contract/postgres-faults.test.ts",
    "test/contract/postgres.test.ts",
    "test/faults/postgres-set-back.test.ts",
    "test/faults/postgres-slow.test.ts",
  ],
};

/** What happens around a store, whichever it is. */
const SURROUNDINGS: readonly string[] = [
  "src/auth/key-file.test.ts",
  "src/child-process/run-command.test.ts",
  "test/gateway/upstreams.test.ts",
  "test/sim/rollback-commands.test.ts",
];

export interface CatalogueSizes {
  power_cuts: number;
  power_losses: number;
}

interface VitestReport {
  testResults: {
    name: string;
    message: string;
    assertionResults: { fullName: string; status: string; failureMessages: string[] }[];
  }[];
}

export async function catalogue(stores: readonly StoreKind[], sizes: CatalogueSizes): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "svc-trials-"));
  const trials = join(folder, "trials.jsonl");
  const report = join(folder, "report.json");
  try {
    await runTests([...new Set([...stores.flatMap((store) => TESTS[store]), ...SURROUNDINGS])], report, {
      [TRIALS_FILE]: trials,
      SVC_TEST_POWER_CUTS: String(sizes.power_cuts),
      SVC_TEST_POWER_LOSSES: String(sizes.power_losses),
    });
    const told = existsSync(trials) ? readFileSync(trials, "utf8").trim().split("\n") : [];
    return [
      ...sum(
        told.map((line) => JSON.parse(line) as Trials),
        stores,
      ),
      ...failures(report, stores[0]!),
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function runTests(files: string[], report: string, env: Record<string, string>): Promise<void> {
  const vitest = join(process.cwd(), "node_modules", "vitest", "vitest.mjs");
  const args = [vitest, "run", "--reporter=json", `--outputFile=${report}`, ...files];
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "ignore", "inherit"],
    env: { ...process.env, ...env },
  });
  await once(child, "exit");
}

function sum(told: readonly Trials[], stores: readonly StoreKind[]): Row[] {
  const rows = new Map<string, Row>();
  for (const { store, fault, trials } of told) {
    if (store !== "any" && !stores.includes(store)) continue;
    const key = `${store} ${fault}`;
    const row: Row = rows.get(key) ?? { ...newRow(store, fault), is_test: true };
    row.trials += trials;
    rows.set(key, row);
  }
  const place = ({ store }: Row) => (store === "any" ? stores.length : stores.indexOf(store));
  return [...rows.values()].sort((a, b) => place(a) - place(b));
}

function failures(report: string, store: StoreKind): Row[] {
  if (!existsSync(report)) return [{ ...newRow(store, "catalogue"), problems: ["the tests did not run"] }];
  const { testResults } = JSON.parse(readFileSync(report, "utf8")) as VitestReport;
  return testResults.flatMap(({ name, message, assertionResults }) => {
    const failed = assertionResults.filter(({ status }) => status === "failed");
    if (assertionResults.length === 0)
      return [{ ...newRow(store, name), problems: [message || "it did not run"] }];
    return failed.map(({ fullName, failureMessages }) => ({
      ...newRow(store, fullName),
      problems: [failureMessages.join("\n").slice(0, 2_000)],
    }));
  });
}
