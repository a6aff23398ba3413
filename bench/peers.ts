/**
 * Our place beside others, whatever it is: the same hundred rules in every policy engine, and the same MCP call through
 * every proxy, that the registry has and that run without an account. Engines that are no dependency of ours are installed
 * for the occasion into a folder that is deleted again.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decide } from "../src/engine/decide/decide.ts";
import { messageOf } from "../src/kernel/errors.ts";
import { factsFor, peerEngines, perSecond, policyOf } from "./decide.ts";
import { run as runGateway } from "./gateway.ts";
import type { BenchOptions } from "./main.ts";
import { alternate, median, type Row } from "./report.ts";

const RULES = 100;
const MEASURE_MS = 300;
/** A registry that does not answer is no reason not to measure the others. */
const INSTALL_MS = 120_000;
const toolOf = (i: number): string => (i === 0 ? "payments.refund" : `tool${i}.x`);
const CALL = { tool: "payments.refund", amount: 20 };

/** What each does beside answering; all that is said of us holds for the figure beside it. */
const DOES: Record<string, string> = {
  svc: "judges arguments, approvals, budgets; one decision, not yet recorded",
  "@cedar-policy/cedar-wasm": "judges arguments; records nothing",
  "json-rules-engine": "judges arguments; records nothing",
  casbin: "judges arguments by expressions; records nothing",
  "@casl/ability": "judges arguments by conditions; records nothing",
  "svc, files": "judged, two records each call, chained, durable before the answer",
  "svc, sqlite": "judged, two records each call, chained, durable before the answer",
  "mcp-proxy": "passes on; not judged, not recorded",
  supergateway: "passes on; not judged, not recorded",
  "no proxy at all": "straight into the tool server's pipe",
};

type Decision = () => unknown;
type Load = (name: string) => unknown;

interface Enforcer {
  enforce(...of: unknown[]): Promise<boolean>;
}

/** Each in the configuration that its own documentation begins with, made ready once. */
const INSTALLED: Record<string, { version: string; prepare(load: Load): Promise<Decision> | Decision }> = {
  casbin: {
    version: "5.51.1",
    async prepare(load) {
      const { newEnforcer, newModelFromString, StringAdapter } = load("casbin") as {
        newEnforcer(model: unknown, adapter: unknown): Promise<Enforcer>;
        newModelFromString(text: string): unknown;
        StringAdapter: new (text: string) => unknown;
      };
      const model = newModelFromString(`
[request_definition]
r = tool, args
[policy_definition]
p = tool, when, eft
[policy_effect]
e = !some(where (p.eft == deny))
[matchers]
m = r.tool == p.tool && eval(p.when)`);
      const rules = Array.from({ length: RULES }, (_, i) => `p, ${toolOf(i)}, r.args.amount > 500, deny`);
      const enforcer = await newEnforcer(model, new StringAdapter(rules.join("\n")));
      return () => enforcer.enforce(CALL.tool, { amount: CALL.amount });
    },
  },
  "@casl/ability": {
    version: "7.0.1",
    prepare(load) {
      const { createMongoAbility, subject } = load("@casl/ability") as {
        createMongoAbility(rules: object[]): { can(action: string, on: unknown): boolean };
        subject(type: string, of: object): unknown;
      };
      const denials = Array.from({ length: RULES }, (_, i) => ({
        inverted: true,
        action: "call",
        subject: "Tool",
        conditions: { tool: toolOf(i), amount: { $gt: 500 } },
      }));
      const ability = createMongoAbility([{ action: "call", subject: "Tool" }, ...denials]);
      return () => ability.can("call", subject("Tool", { ...CALL }));
    },
  },
};

async function awaitedPerSecond(decision: Decision): Promise<number> {
  const first = await decision();
  if (first !== true) throw new Error("a peer denies what the rules allow");
  const start = performance.now();
  let n = 0;
  for (; performance.now() - start < MEASURE_MS; n++) {
    const answer = decision();
    if (answer instanceof Promise) await answer;
  }
  return (n * 1_000) / (performance.now() - start);
}

async function installedEngines(folder: string): Promise<Record<string, () => Promise<number>>> {
  const engines: Record<string, () => Promise<number>> = {};
  const load = createRequire(join(folder, "peers.js"));
  for (const [name, { version, prepare }] of Object.entries(INSTALLED)) {
    try {
      const options = ["--no-audit", "--no-fund", "--ignore-scripts", "--silent", "--prefix", folder];
      execFileSync("npm", ["install", ...options, `${name}@${version}`], {
        stdio: "ignore",
        timeout: INSTALL_MS,
      });
      const decision = await prepare(load);
      engines[name] = () => awaitedPerSecond(decision);
    } catch {
      console.error(`${name} ${version} cannot be had here; not compared`);
    }
  }
  return engines;
}

/** The fastest first, each with what it does, and where we stand among them. */
function table(what: string, speeds: Record<string, number>): Row[] {
  const sorted = Object.entries(speeds).sort(([, a], [, b]) => b - a);
  const rows = sorted.map(
    ([name, value]): Row => ({
      suite: "peers",
      what: `${what} a second: ${name} (${DOES[name] ?? "unknown"})`,
      value,
      goal: null,
    }),
  );
  sorted.forEach(([name], i) => {
    if (!name.startsWith("svc")) return;
    const place = `${what}: place of ${name} among ${sorted.length} by speed`;
    rows.push({ suite: "peers", what: place, value: i + 1, goal: null });
  });
  return rows;
}

async function decisions(rounds: number): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "svc-bench-peers-"));
  try {
    const facts = factsFor(policyOf(RULES));
    const speeds = await alternate(rounds, {
      svc: () => perSecond(() => decide(facts)),
      ...(await peerEngines()),
      ...(await installedEngines(folder)),
    });
    const medians = Object.entries(speeds).map(([name, values]) => [name, median(values)]);
    return table("decisions with a hundred rules", Object.fromEntries(medians));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function calls(options: BenchOptions): Promise<Row[]> {
  const ours: Record<string, string> = {
    files: "svc, files",
    sqlite: "svc, sqlite",
    direct: "no proxy at all",
  };
  const speeds: Record<string, number> = {};
  for (const { what, value } of await runGateway(options)) {
    const name = /^calls\/s: (.*)$/.exec(what)?.[1];
    if (name !== undefined) speeds[ours[name] ?? name] = value;
  }
  return table("MCP calls", speeds);
}

export async function run(options: BenchOptions): Promise<Row[]> {
  const rows = await decisions(options.rounds);
  try {
    rows.push(...(await calls(options)));
  } catch (error) {
    console.error(`the proxies could not be measured: ${messageOf(error)}`);
  }
  return rows;
}
