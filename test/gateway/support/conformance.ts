/** The official MCP conformance suite, run against the gateway in either role. */
import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { afterAll } from "vitest";
import { until } from "../../support/until.ts";
import { testGateway } from "./gateway.ts";

export const here = (name: string) => fileURLToPath(new URL(`./${name}`, import.meta.url));
const SUITE = fileURLToPath(
  new URL("../../../node_modules/@modelcontextprotocol/conformance/dist/index.js", import.meta.url),
);

interface Outcome {
  passed: number;
  failed: number;
  scenarios: Map<string, { passed: number; failed: number }>;
  not_scored: Set<string>;
  output: string;
}

/** Passes everything on as it is, with a credential added. */
export async function front(target: string, credential = "agent"): Promise<string> {
  const { port } = new URL(target);
  const server = createServer((request, response) => {
    const headers = { ...request.headers, authorization: `Bearer ${credential}` };
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

/** Runs what a revision requires of a server. */
export async function serverConformance(url: string, revision: string): Promise<Outcome> {
  const output = await runSuite("server", "--url", url, "--requirements", revision);
  const scenarios = new Map<string, { passed: number; failed: number }>();
  for (const [, name, passed, failed] of output.matchAll(/^[✓✗] ([\w-]+): (\d+) passed, (\d+) failed/gm)) {
    scenarios.set(name!, { passed: Number(passed), failed: Number(failed) });
  }
  const not_scored = new Set([...output.matchAll(/^ {2}[✓✗] ([\w-]+) \(/gm)].map(([, name]) => name!));
  const scored = [...scenarios].filter(([name]) => !not_scored.has(name)).map(([, counts]) => counts);
  const sum = (key: "passed" | "failed") => scored.reduce((all, one) => all + one[key], 0);
  return { passed: sum("passed"), failed: sum("failed"), scenarios, not_scored, output };
}

/**
 * The gateway in the role of a client, as one file among the built modules, whose threads it starts. A loader that reads
 * TypeScript would cost each scenario several seconds.
 */
export async function builtClient(): Promise<string> {
  const outfile = here(`../../../dist/shared/conformance-client-${process.pid}.js`);
  await build({
    entryPoints: [here("conformance-client.ts")],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    packages: "external",
    logLevel: "error",
  });
  afterAll(() => rmSync(outfile, { force: true }));
  return outfile;
}

/** Runs the suite, and returns what it says. */
export async function runSuite(...args: string[]): Promise<string> {
  const program = ["--import", here("conformance-shim.mjs"), SUITE, ...args];
  const child = spawn(process.execPath, program, { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      output += chunk;
    });
  }
  await new Promise((resolve) => child.once("close", resolve));
  return output;
}

/** All that the fixtures offer is declared, so that the suite's calls are decided like any agent's. */
export async function governedFixtures(era: "legacy" | "modern", config: Record<string, unknown> = {}) {
  const upstream = {
    name: "fixtures",
    command: process.execPath,
    args: [here("conformance-upstream.mjs")],
    env: { ERA: era },
    passthrough: ["resources", "prompts", "completions", "sampling", "elicitation", "roots"],
  };
  const probe = await testGateway({ upstreams: [upstream], mode: "observe", manifests: "[]" });
  const { gateway } = probe.running;
  await until(() => gateway.routes().size > 0, "the tools of the fixtures");
  const names = [...gateway.routes().keys()];
  await probe.running.stop();
  const manifests = names
    .map((tool) => `- {tool: ${tool}, effect: idempotent, permission: fixtures.use}\n`)
    .join("");
  return testGateway({ upstreams: [upstream], manifests, config });
}
