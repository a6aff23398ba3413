/**
 * Our rank among others, good or bad: the same hundred rules in every policy engine, and the same MCP call through
 * every proxy, that the registry has and that run without an account. Packages that aren't our dependencies are
 * installed for this run into a directory that is deleted again.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decideCall } from "../src/govern/decide/decide.ts";
import { factsFor, peerEngines, perSecond, policyOf } from "./decide.ts";
import type { BenchOptions } from "./main.ts";
import { installedEngines } from "./peer-engines.ts";
import { type CallFigures, callsOverHttp, callsOverPipe } from "./peer-proxies.ts";
import { alternate, median, type Row } from "./report.ts";

const RULES = 100;

/**
 * The work on a call before its answer: evaluated by rules, recorded, each record bound to the one before, and on
 * disk. The statement about us holds for the figure next to it.
 */
const DEEDS = ["judged", "recorded", "chained", "durable"] as const;
type Deed = (typeof DEEDS)[number];

const ENGINES: Record<string, Deed[]> = {
  svc: ["judged"],
  "@cedar-policy/cedar-wasm": ["judged"],
  "json-rules-engine": ["judged"],
  casbin: ["judged"],
  "@casl/ability": ["judged"],
  oso: ["judged"],
  "@microsoft/agent-governance-sdk": ["judged"],
  "@microsoft/agent-governance-sdk, audit log on": ["judged", "recorded", "chained"],
};
const PROXIES: Record<string, Deed[]> = {
  "svc, files": ["judged", "recorded", "chained", "durable"],
  "svc, sqlite": ["judged", "recorded", "chained", "durable"],
  "@civic/passthrough-mcp-server": ["judged", "recorded"],
  "@fiberplane/mcp-gateway": ["recorded"],
  "mcp-flight-recorder": ["recorded"],
  "mcp-proxy": [],
  supergateway: [],
  "no proxy at all": [],
};

const said = (deeds: readonly Deed[] = []): string =>
  DEEDS.map((deed) => `${deed} ${deeds.includes(deed) ? "yes" : "no"}`).join(", ");

/** The fastest first, each with what it does, and where we stand. */
function table(what: string, figures: Record<string, number[]>, does: Record<string, Deed[]>): Row[] {
  const sorted = Object.entries(figures)
    .map(([name, values]) => [name, median(values)] as const)
    .sort(([, a], [, b]) => b - a);
  const rows = sorted.map(
    ([name, value]): Row => ({
      suite: "peers",
      what: `${what} a second: ${name} (${said(does[name])})`,
      value,
      goal: null,
    }),
  );
  sorted.forEach(([name], i) => {
    if (name !== "svc" && !name.startsWith("svc,")) return;
    rows.push({
      suite: "peers",
      what: `${what}: place of ${name} among ${sorted.length} by speed`,
      value: i + 1,
      goal: null,
    });
  });
  return rows;
}

function calls(how: string, figures: CallFigures): Row[] {
  const rows = table(`MCP calls over ${how}`, figures.throughput, PROXIES);
  for (const [name, values] of Object.entries(figures.latency))
    rows.push({
      suite: "peers",
      what: `one MCP call over ${how}: ${name}`,
      value: median(values),
      unit: " ms",
      goal: null,
    });
  return rows;
}

export async function run(options: BenchOptions): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "svc-bench-peers-"));
  try {
    const facts = factsFor(policyOf(RULES));
    const decisions = await alternate(options.rounds, {
      svc: () => perSecond(() => decideCall(facts)),
      ...(await peerEngines()),
      ...(await installedEngines(folder)),
    });
    return [
      ...table("decisions with a hundred rules", decisions, ENGINES),
      ...calls("HTTP", await callsOverHttp(folder, options)),
      ...calls("a pipe", await callsOverPipe(folder, options)),
    ];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
