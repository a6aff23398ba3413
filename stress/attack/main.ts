/**
 * `npm run attack [-- area.. --inputs n --seed s --area
 * table|heavy|authority|upstreams|http|paths|json|manifests|policies|configs|bundles|mcp --only pattern --stall-ms n
 * --json]`: every attack of the table against a real process, the costliest inputs for every operation and form (or the
 * cases of the largest data whose names match `--only`), every surface under a key whose authority changes, upstreams
 * that turn, then mutated inputs by the hundred thousand against the parsers, the HTTP surface and the MCP gateway.
 * Exits 1 on any finding, and says how to see it again.
 */
import { parseArgs } from "node:util";
import fc from "fast-check";
import { turnRoles } from "./authority.ts";
import { runBatches } from "./batches.ts";
import { runHeavy } from "./heavy.ts";
import { fuzzMcp } from "./mcp.ts";
import { PARSERS, type Parser } from "./parsers.ts";
import { asBytes, bodies, noise, paths } from "./requests.ts";
import { type AreaRow, isClean, newRow, noteTime } from "./row.ts";
import { PERMISSIONS } from "./samples.ts";
import { runTable } from "./table.ts";
import { Target } from "./target.ts";
import { turnUpstreams } from "./turning.ts";

/** What each area gets of the inputs. */
const SHARES: Readonly<Record<string, number>> = {
  authority: 0.03,
  upstreams: 0.001,
  http: 0.12,
  paths: 0.1,
  mcp: 0.03,
  json: 0.55,
  manifests: 0.05,
  policies: 0.03,
  configs: 0.03,
  bundles: 0.06,
};
/** Each move of an upstream that turns takes a while; fewer than these would show little. */
const FEWEST_TURNS = 25;
const AREAS = ["table", "heavy", ...Object.keys(SHARES)];

export async function main(args: string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      inputs: { type: "string", default: "20000" },
      seed: { type: "string", default: "1" },
      area: { type: "string", multiple: true, default: [] },
      only: { type: "string" },
      json: { type: "boolean", default: false },
      "stall-ms": { type: "string" },
    },
  });
  if (![values.inputs, values.seed, values["stall-ms"] ?? "0"].every((text) => /^\d{1,9}$/.test(text)))
    return refuse("--inputs, --seed and --stall-ms: whole numbers");
  const named = [...values.area, ...positionals];
  if (named.some((name) => !AREAS.includes(name))) return refuse(`--area: one of ${AREAS.join(", ")}`);
  const wanted = named.length === 0 ? AREAS : named;
  const seed = Number(values.seed);
  const only = values.only === undefined ? undefined : new RegExp(values.only);
  const rows: AreaRow[] = [];
  for (const area of AREAS.filter((name) => wanted.includes(name))) {
    const share = area === "heavy" || wanted.length === 1 ? 1 : (SHARES[area] ?? 0);
    const count = Math.ceil(Number(values.inputs) * share);
    console.error(
      `${area}${area === "table" ? "" : `: ${count.toLocaleString("en-US")} inputs, seed ${seed}`}`,
    );
    rows.push(heldUp(await runArea(area, count, seed, only), Number(values["stall-ms"] ?? stallOf(area))));
  }
  console.log(values.json ? JSON.stringify(rows) : show(rows));
  return rows.every(isClean) ? 0 : 1;
}

/** How long one input may hold the event loop: the largest that the limits allow may not be noticed by others. */
const stallOf = (area: string): number => (area === "heavy" ? 100 : 250);

/** An area in which a decision had to wait longer for one input than it may. */
function heldUp(row: AreaRow, stall_ms: number): AreaRow {
  if (row.slowest_ms <= stall_ms) return row;
  const problem = `${row.slowest}: ${Math.round(row.slowest_ms)} ms of work at a stretch, more than ${stall_ms}`;
  return { ...row, problems: [...row.problems, problem] };
}

function runArea(area: string, count: number, seed: number, only?: RegExp): Promise<AreaRow> {
  if (area === "table") return runTable();
  if (area === "authority") return turnRoles(count, seed);
  if (area === "heavy") return runHeavy(count, seed, only);
  if (area === "upstreams") return turnUpstreams(Math.max(count, FEWEST_TURNS), seed);
  if (area === "http" || area === "paths") return fuzzHttp(area, count, seed);
  if (area === "mcp") return fuzzMcp(count, seed);
  return fuzzParser(area, count, seed);
}

async function fuzzHttp(area: "http" | "paths", count: number, seed: number): Promise<AreaRow> {
  const target = await Target.start("server");
  try {
    const body = JSON.stringify({ run_id: "fuzzed", permissions: PERMISSIONS });
    await target.send(asBytes({ key: "agent", method: "POST", path: "/v1/runs", body }));
    const path = "/v1/runs/fuzzed/intents";
    const garbage = noise.map((bytes) => asBytes({ key: "agent", method: "POST", path, body: bytes }));
    const inputs =
      area === "paths"
        ? paths("fuzzed")
        : fc.oneof({ weight: 9, arbitrary: bodies("fuzzed") }, { weight: 1, arbitrary: garbage });
    return await runBatches({ area, target, inputs, count, seed });
  } finally {
    await target.stop();
  }
}

const CHUNK = 1_000;

/** On a finding fast-check looks for the shortest input that shows it. */
async function fuzzParser(area: string, count: number, seed: number): Promise<AreaRow> {
  const row = newRow(area);
  const parser = await PARSERS[area]!();
  const began = performance.now();
  try {
    for (let batch = 0; row.inputs < count && row.problems.length === 0; batch++) {
      const numRuns = Math.min(CHUNK, count - row.inputs);
      const found = await checkChunk(parser, row, { seed: seed + batch, numRuns });
      if (found !== undefined) row.problems.push(`seed ${seed + batch}: ${found}`);
    }
  } finally {
    parser.close?.();
  }
  row.seconds = (performance.now() - began) / 1_000;
  return row;
}

async function checkChunk(
  parser: Parser,
  row: AreaRow,
  options: { seed: number; numRuns: number },
): Promise<string | undefined> {
  const property = fc.asyncProperty(parser.inputs, async (input) => {
    const start = performance.now();
    if (await parser.attempt(input)) row.accepted++;
    const took = performance.now() - start;
    if (took > row.slowest_ms)
      noteTime(row, await ownTime(parser, input, took), `the input ${JSON.stringify(input.slice(0, 600))}`);
    row.inputs++;
  });
  const { failed, counterexample, errorInstance } = await fc.check(property, {
    ...options,
    endOnFailure: false,
  });
  if (!failed) return undefined;
  return `${(errorInstance as Error)?.stack ?? errorInstance}; the shortest input: ${JSON.stringify(counterexample)}`;
}

/** Of what took long, once more: how much of it was our own work and not that of others on the machine. */
async function ownTime(parser: Parser, input: string, took: number): Promise<number> {
  const cpu = process.cpuUsage();
  await parser.attempt(input);
  const { user, system } = process.cpuUsage(cpu);
  return Math.min(took, (user + system) / 1_000);
}

const COLUMNS: readonly [string, (row: AreaRow) => string][] = [
  ["area", ({ area }) => area],
  ["inputs", ({ inputs }) => inputs.toLocaleString("en-US")],
  ["accepted", ({ accepted }) => accepted.toLocaleString("en-US")],
  ["sent again", ({ resent }) => resent.toLocaleString("en-US")],
  ["a second", ({ inputs, seconds }) => Math.round(inputs / seconds).toLocaleString("en-US")],
  ["slowest ms", ({ slowest_ms }) => slowest_ms.toFixed(0)],
  ["", (row) => (isClean(row) ? "ok" : "FAILED")],
];

function show(rows: readonly AreaRow[]): string {
  const cells = [COLUMNS.map(([head]) => head), ...rows.map((row) => COLUMNS.map(([, cell]) => cell(row)))];
  const widths = COLUMNS.map((_, i) => Math.max(...cells.map((line) => line[i]!.length)));
  const lines = cells.map((line) =>
    line.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!))).join("  "),
  );
  const total = rows.reduce((sum, { inputs }) => sum + inputs, 0).toLocaleString("en-US");
  const problems = rows.flatMap(({ area, problems }) => problems.map((problem) => `${area}: ${problem}`));
  return [...lines, `${total} inputs`, ...problems].join("\n");
}

function refuse(message: string): number {
  console.error(message);
  return 1;
}
