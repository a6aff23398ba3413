/**
 * The official MCP conformance suite against the gateway, in enforce mode, with the suite's fixtures behind
 * it: every scenario that a revision requires. The suite sends no credential, so a front adds one.
 */
import { spawn } from "node:child_process";
import { createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it, vi } from "vitest";
import { testGateway } from "./support/gateway.ts";

vi.setConfig({ testTimeout: 300_000 });

const here = (name: string) => fileURLToPath(new URL(`./support/${name}`, import.meta.url));
const SUITE = fileURLToPath(
  new URL("../../node_modules/@modelcontextprotocol/conformance/dist/index.js", import.meta.url),
);

interface Outcome {
  passed: number;
  failed: number;
  scenarios: Map<string, { passed: number; failed: number }>;
  not_scored: Set<string>;
  output: string;
}

/** Passes everything on as it is, with the agent's credential added. */
async function front(target: string): Promise<string> {
  const { port } = new URL(target);
  const server = createServer((request, response) => {
    const headers = { ...request.headers, authorization: "Bearer agent" };
    const sent = httpRequest(
      { host: "127.0.0.1", port, path: request.url, method: request.method, headers },
      (answer) => {
        response.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(response);
      },
    );
    sent.on("error", () => response.destroy());
    response.on("close", () => sent.destroy());
    request.pipe(sent);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

async function conformance(url: string, revision: string): Promise<Outcome> {
  const args = [
    "--import",
    here("conformance-shim.mjs"),
    SUITE,
    "server",
    "--url",
    url,
    "--requirements",
    revision,
  ];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      output += chunk;
    });
  }
  await new Promise((resolve) => child.once("close", resolve));
  const scenarios = new Map<string, { passed: number; failed: number }>();
  for (const [, name, passed, failed] of output.matchAll(/^[✓✗] ([\w-]+): (\d+) passed, (\d+) failed/gm)) {
    scenarios.set(name!, { passed: Number(passed), failed: Number(failed) });
  }
  const not_scored = new Set([...output.matchAll(/^ {2}[✓✗] ([\w-]+) \(/gm)].map(([, name]) => name!));
  const scored = [...scenarios].filter(([name]) => !not_scored.has(name)).map(([, counts]) => counts);
  const sum = (key: "passed" | "failed") => scored.reduce((all, one) => all + one[key], 0);
  return { passed: sum("passed"), failed: sum("failed"), scenarios, not_scored, output };
}

/** All that the fixtures offer is declared, so that the suite's calls are decided like any agent's. */
async function governedFixtures(era: "legacy" | "modern") {
  const upstream = {
    name: "fixtures",
    command: process.execPath,
    args: [here("conformance-upstream.mjs")],
    env: { ERA: era },
    passthrough: ["resources", "prompts", "completions", "sampling", "elicitation", "roots"],
  };
  const probe = await testGateway({ upstreams: [upstream], mode: "observe", manifests: "[]" });
  const names = [...probe.running.gateway.routes().keys()];
  await probe.running.stop();
  const manifests = names
    .map((tool) => `- {tool: ${tool}, effect: idempotent, permission: fixtures.use}\n`)
    .join("");
  return testGateway({ upstreams: [upstream], manifests });
}

describe("the MCP conformance suite", () => {
  it.each([
    ["2025-11-25", "legacy", 30, 69],
    ["2026-07-28", "modern", 37, 120],
  ] as const)("revision %s", async (revision, era, scenarios, checks) => {
    const g = await governedFixtures(era);
    const outcome = await conformance(await front(g.url), revision);
    const failing = [...outcome.scenarios]
      .filter(([name, { failed }]) => failed > 0 && !outcome.not_scored.has(name))
      .map(([name]) => name);
    if (failing.length > 0) console.error(outcome.output);
    expect(failing).toEqual([]);
    expect(outcome.failed).toBe(0);
    expect(outcome.scenarios.size - outcome.not_scored.size).toBeGreaterThanOrEqual(scenarios);
    expect(outcome.passed).toBeGreaterThanOrEqual(checks);
    console.log(
      `conformance ${revision}: ${outcome.passed} checks of ${outcome.scenarios.size - outcome.not_scored.size} scenarios passed`,
    );
    // The suite's calls were governed: each has its records.
    expect((await g.events()).filter((event) => event === "intended").length).toBeGreaterThan(10);
  });
});
