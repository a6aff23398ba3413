/**
 * `npm run bench [-- suite ...] [--rounds n] [--seconds n]`: every suite measured side by side in one run.
 * Nothing here is a test: a goal that is missed is printed as missed.
 */
import { parseArgs } from "node:util";
import { print, type Row } from "./report.ts";

export interface BenchOptions {
  rounds: number;
  seconds: number;
  /** A checkout that the suite `agentdojo` reads. */
  from?: string | undefined;
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
  proxy: () => import("./proxy.ts"),
  snapshot: () => import("./snapshot.ts"),
  search: () => import("./search.ts"),
  simulate: () => import("./simulate.ts"),
  scale: () => import("./scale.ts"),
  idle: () => import("./idle.ts"),
  carries: () => import("./carries.ts"),
  agentdojo: () => import("./agentdojo.ts"),
};

const { suites, options } = asked();
const rows: Row[] = [];
for (const name of suites) {
  console.error(`measuring ${name} ...`);
  rows.push(...(await (await SUITES[name]!()).run(options)));
}
print(rows);
process.exit(0);

function asked(): { suites: string[]; options: BenchOptions } {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        rounds: { type: "string", default: "5" },
        seconds: { type: "string", default: "3" },
        from: { type: "string" },
      },
    });
    const unknown = positionals.find((name) => !Object.hasOwn(SUITES, name));
    if (unknown !== undefined) throw new Error(`no suite ${unknown}`);
    const options = { rounds: Number(values.rounds), seconds: Number(values.seconds), from: values.from };
    if (positionals.includes("agentdojo") && options.from === undefined)
      throw new Error("agentdojo: --from <checkout of the benchmark> is missing");
    if (!(options.rounds >= 1 && options.seconds > 0))
      throw new Error("--rounds and --seconds: a number above 0");
    return { suites: positionals.length === 0 ? Object.keys(SUITES) : positionals, options };
  } catch (error) {
    console.error(
      `${(error as Error).message}\nnpm run bench -- [suite ...] [--rounds n] [--seconds n]; suites: ${Object.keys(SUITES).join(", ")}`,
    );
    process.exit(1);
  }
}
