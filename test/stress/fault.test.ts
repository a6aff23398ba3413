/** A small fault run, as anybody would start it: real processes, every store, and nothing but zeros. */
import { describe, expect, it } from "vitest";
import { intentUnit } from "../../src/govern/decide/intent.ts";
import type { StateStore } from "../../src/govern/port/store.ts";
import { newRun, openRunUnit } from "../../src/govern/runs/open-run.ts";
import { MemoryStore } from "../../src/store/memory/store.ts";
import { auditStore } from "../../stress/fault/audit.ts";
import { AGENT, engineOn, PLAIN } from "../../stress/fault/engine.ts";
import type { Ack } from "../../stress/fault/protocol.ts";
import { sized } from "../support/long.ts";
import { verifies } from "../support/verifies.ts";
import { runProof } from "./run-proof.ts";

const fault = (...args: string[]) => runProof("fault", args);

const SIZES = {
  kills: 2,
  approvals: 12,
  grants: 12,
  outcomes: 12,
  halts: 1,
  containments: 1,
  "contained-runs": 1,
  clocks: 1,
  outages: 1,
};
const { kills, approvals, outages, ...others } = SIZES;
/** Bounded: every fault on one store, on the other stores the faults that are about the store. */
const STORES = {
  files: { kills, approvals, ...others },
  sqlite: sized<Partial<typeof SIZES>>({ kills, approvals }, { kills, approvals, ...others }),
  postgres: sized<Partial<typeof SIZES>>({ kills, approvals, outages }, SIZES),
};
/** Those that take their time, in a separate test. */
const SLOW = { "set-backs": 1, "slow-commits": 1 };
const zeros = { lost: 0, forks: 0, broken_chains: 0, bare_allows: 0, half_units: 0, problems: [] };

/** Runs these sizes of everything that has one, and no other. */
async function processes(sizes: Record<string, number>, ...more: string[]) {
  const none = Object.fromEntries(Object.keys({ ...SIZES, ...SLOW }).map((name) => [name, 0]));
  const counts = Object.entries({ ...none, ...sizes }).flatMap(([name, n]) => [`--${name}`, String(n)]);
  const { code, out, err } = await fault("--only", "processes", "--json", ...counts, ...more);
  const rows = JSON.parse(out) as Record<string, unknown>[];
  for (const row of rows) expect(row, err).toMatchObject(zeros);
  for (const row of rows) expect(row["trials"], JSON.stringify(row)).toBeGreaterThan(0);
  for (const row of rows) expect(row["answers"], JSON.stringify(row)).toBeGreaterThan(0);
  expect(code).toBe(0);
  return rows;
}

describe("npm run fault", () => {
  it.each(Object.entries(STORES))(
    "kills, contests, halts, contains, turns clocks and takes databases away on %s, and finds nothing wrong",
    {
      timeout: 300_000,
    },
    async (store, sizes) => {
      verifies("beyond.grant.last-use", "beyond.contain.halt-first", "beyond.contain.many");
      const rows = await processes(sizes, "--store", store);
      expect(rows.map((row) => row["store"])).toEqual(Object.keys(sizes).map(() => store));
    },
  );

  it("sets databases back and makes them slow, and finds nothing wrong", { timeout: 300_000 }, async () => {
    expect(await processes(SLOW, "--store", "postgres")).toHaveLength(2);
  });

  it("names the problem of its options", async () => {
    expect(await fault("--kills", "many")).toMatchObject({ code: 1, err: "--kills: a whole number\n" });
    expect((await fault("--store", "paper")).err).toContain("--store: one of files, sqlite, postgres");
  });
});

describe("the audit after a fault", () => {
  /** Three calls that were answered, on a store whose ledger is shown through `distort`. */
  async function audited(distort: (lines: string[]) => string[]) {
    const store = new MemoryStore();
    const core = engineOn(store);
    await store.transact(openRunUnit(newRun(core, AGENT, { run_id: "r", permissions: ["p"] })));
    const acks: Ack[] = [];
    for (let i = 0; i < 3; i++) {
      const input = { tool: PLAIN, args: {}, reason: "audit", depends_on: [] };
      const { records } = await store.transact(intentUnit(core, AGENT, "r", input));
      const { seq, hash, step } = records[0]!;
      acks.push({ kind: "allow", seq, hash, run_id: "r", step: step!, asked: 0 });
    }
    const shown: Pick<StateStore, "head" | "records" | "list"> = {
      head: () => store.head(),
      records: async (query) => distort(await store.records(query)),
      list: (table, query) => store.list(table, query),
    };
    return (await auditStore(shown as StateStore, acks)).findings;
  }

  const whole = { lost: 0, forks: 0, broken_chains: 0, bare_allows: 0, half_units: 0 };

  it("finds nothing where nothing is wrong", async () => {
    expect(await audited((lines) => lines)).toEqual(whole);
  });

  it("finds a record that is gone: lost, an allow without it, and a step that nobody recorded", async () => {
    const found = await audited((lines) => lines.slice(0, 2));
    expect(found).toMatchObject({ ...whole, lost: 1, bare_allows: 1, half_units: 2 });
  });

  it("finds two records at one place", async () => {
    const found = await audited(([first, second, third]) => [first!, second!, second!, third!]);
    expect(found).toMatchObject({ forks: 1, broken_chains: 1 });
  });

  it("finds a record that was changed", async () => {
    const found = await audited((lines) =>
      lines.map((line) => line.replace('"reason":"audit"', '"reason":"x"')),
    );
    expect(found).toMatchObject({ ...whole, broken_chains: 1 });
  });
});
