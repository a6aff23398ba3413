/**
 * `npm run fault [-- --kills n --approvals n --grants n --outcomes n --halts n --containments n --contained-runs n
 * --clocks n --outages n --set-backs n --slow-commits n
 * --power-cuts n --power-losses n --store files|sqlite|postgres --only processes|catalogue --seed s --json]`: breaks
 * real processes and counts the damage. Exits 1 if a count is not zero, or a fault hit nothing.
 * `npm run fault -- --cluster`: see stress/fault/cluster/main.ts; `-- --upgrade`: see upgrade.ts next to it.
 */
import { parseArgs } from "node:util";
import { STORE_KINDS, type StoreKind } from "../../src/store/open.ts";
import { seeded } from "../../test/support/env.ts";
import { approvals } from "./approvals.ts";
import { type Fault, WRITERS } from "./bench.ts";
import { catalogue } from "./catalogue.ts";
import { clocks } from "./clocks.ts";
import { clusterMain } from "./cluster/main.ts";
import { upgradeMain } from "./cluster/upgrade.ts";
import { containedRuns } from "./contained-runs.ts";
import { containments } from "./containments.ts";
import { grants } from "./grants.ts";
import { halts } from "./halts.ts";
import { kills } from "./kills.ts";
import { outages } from "./outages.ts";
import { outcomes } from "./outcomes.ts";
import { Places } from "./places.ts";
import { isClean, newRow, type Row } from "./row.ts";
import { setBacks } from "./set-backs.ts";
import { slowCommits } from "./slow-commits.ts";
import { table } from "./table.ts";
import { Crew } from "./writer.ts";

/** Faults over real processes: how many trials by default, and for which stores. */
const FAULTS: Record<string, { run: Fault; count: number; stores: readonly StoreKind[] }> = {
  kills: { run: kills, count: 60, stores: STORE_KINDS },
  approvals: { run: approvals, count: 300, stores: STORE_KINDS },
  grants: { run: grants, count: 200, stores: STORE_KINDS },
  outcomes: { run: outcomes, count: 200, stores: STORE_KINDS },
  halts: { run: halts, count: 30, stores: STORE_KINDS },
  containments: { run: containments, count: 10, stores: STORE_KINDS },
  "contained-runs": { run: containedRuns, count: 4, stores: STORE_KINDS },
  clocks: { run: clocks, count: 20, stores: STORE_KINDS },
  outages: { run: outages, count: 8, stores: ["postgres"] },
  "set-backs": { run: setBacks, count: 4, stores: ["postgres"] },
  "slow-commits": { run: slowCommits, count: 4, stores: ["postgres"] },
};
const SIZES = { "power-cuts": 80, "power-losses": 3 };
const PARTS = ["processes", "catalogue"];

export async function main(args: string[]): Promise<number> {
  if (args.includes("--cluster")) return clusterMain(args);
  if (args.includes("--upgrade")) return upgradeMain(args);
  const options = readOptions(args);
  if (typeof options === "string") {
    console.error(options);
    return 1;
  }
  const rows = options.parts.includes("processes") ? await overProcesses(options) : [];
  if (options.parts.includes("catalogue")) {
    const { stores, count } = options;
    const sizes = { power_cuts: count("power-cuts"), power_losses: count("power-losses") };
    rows.push(...(await catalogue(stores, sizes)));
  }
  console.log(options.json ? JSON.stringify(rows) : table(rows));
  return rows.length > 0 && rows.every(isClean) ? 0 : 1;
}

interface Options {
  stores: StoreKind[];
  parts: string[];
  seed: number;
  json: boolean;
  count(name: string): number;
}

function readOptions(args: string[]): Options | string {
  const defaults: Record<string, number> = { ...SIZES };
  for (const [name, { count }] of Object.entries(FAULTS)) defaults[name] = count;
  const numbers = Object.fromEntries(
    Object.entries({ ...defaults, seed: 1 }).map(([name, value]) => [
      name,
      { type: "string", default: String(value) } as const,
    ]),
  );
  try {
    const { values } = parseArgs({
      args,
      options: {
        ...numbers,
        store: { type: "string", multiple: true, default: [...STORE_KINDS] },
        only: { type: "string", multiple: true, default: PARTS },
        json: { type: "boolean", default: false },
      },
    });
    const { store, only, json, ...counts } = values as Record<string, unknown>;
    for (const [name, value] of Object.entries(counts))
      if (!/^\d{1,9}$/.test(String(value))) return `--${name}: a whole number`;
    const stores = store as StoreKind[];
    if (stores.some((name) => !STORE_KINDS.includes(name)))
      return `--store: one of ${STORE_KINDS.join(", ")}`;
    const parts = only as string[];
    if (parts.some((name) => !PARTS.includes(name))) return `--only: one of ${PARTS.join(", ")}`;
    const count = (name: string): number => Number(counts[name]);
    return { stores, parts, seed: count("seed"), json: json === true, count };
  } catch (error) {
    return (error as Error).message;
  }
}

async function overProcesses({ stores, seed, count }: Options): Promise<Row[]> {
  const places = new Places();
  const crew = new Crew(WRITERS);
  const rows: Row[] = [];
  try {
    for (const store of stores) {
      for (const [name, fault] of Object.entries(FAULTS)) {
        if (count(name) === 0 || !fault.stores.includes(store)) continue;
        const began = performance.now();
        const bench = { store, crew, places, random: seeded(seed), count: count(name) };
        const row = await fault.run(bench).catch((error: Error) => broken(store, name, error));
        rows.push(row);
        const seconds = ((performance.now() - began) / 1_000).toFixed(1);
        console.error(`${store}: ${row.fault}, ${row.trials} trials in ${seconds} s`);
      }
    }
  } finally {
    await crew.close();
    await places.close();
  }
  return rows;
}

function broken(store: StoreKind, name: string, error: Error): Row {
  return { ...newRow(store, name), problems: [error.stack ?? error.message] };
}
