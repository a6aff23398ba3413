/**
 * `npm run bench [-- suite ...] [--rounds n] [--seconds n]`: every suite measured side by side in one run.
 * Nothing here is a test: a goal that is missed is printed as missed.
 */
import { parseArgs } from "node:util";
import { print, type Row } from "./report.ts";

export interface BenchOptions {
  rounds: number;
  seconds: number;
}

type Suite = (options: BenchOptions) => Promise<Row[]>;

const SUITES: Record<string, () => Promise<{ run: Suite }>> = {
  decide: () => import("./decide.ts"),
  append: () => import("./append.ts"),
  http: () => import("./http.ts"),
  database: () => import("./database.ts"),
  growth: () => import("./growth.ts"),
  verify: () => import("./verify.ts"),
  rollback: () => import("./rollback.ts"),
  gateway: () => import("./gateway.ts"),
  peers: () => import("./peers.ts"),
  start: () => import("./start.ts"),
  hook: () => import("./hook.ts"),
  search: () => import("./search.ts"),
  simulate: () => import("./simulate.ts"),
  scale: () => import("./scale.ts"),
  idle: () => import("./idle.ts"),
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: "string", default: "5" }, seconds: { type: "string", default: "3" } },
});
const options = { rounds: Number(values.rounds), seconds: Number(values.seconds) };
const chosen = positionals.length === 0 ? Object.keys(SUITES) : positionals;
const rows: Row[] = [];
for (const name of chosen) {
  const load = SUITES[name];
  if (load === undefined) {
    console.error(`no suite ${name}; there are ${Object.keys(SUITES).join(", ")}`);
    process.exit(1);
  }
  console.error(`measuring ${name} ...`);
  rows.push(...(await (await load()).run(options)));
}
print(rows);
process.exit(0);
