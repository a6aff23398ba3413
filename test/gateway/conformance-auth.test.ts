/**
 * The authorization part of the official MCP conformance suite, in both roles. As a client, the gateway signs in to the
 * suite's tool servers with an admin's consent. As a server, it serves the suite under a token of a real issuer.
 * `npm run prove -- conformance` runs every scenario; here run one of each kind.
 */
import { readFileSync } from "node:fs";
import { describe, expect, it, vi } from "vitest";
import { parse } from "yaml";
import { authorizationServer } from "../support/authorization-server.ts";
import { verifies } from "../support/verifies.ts";
import {
  builtClient,
  front,
  governedFixtures,
  here,
  runSuite,
  serverConformance,
} from "./support/conformance.ts";
import { signedInClient } from "./support/mcp-sign-in.ts";

vi.setConfig({ testTimeout: 600_000 });

const ALL = process.env["SVC_PROVE_CONFORMANCE"] !== undefined;
const REVISIONS = ["2025-11-25", "2026-07-28"] as const;
const KINDS = ["auth/metadata-default", "auth/scope-step-up", "auth/iss-wrong-issuer"];

/** The authorization scenarios that a revision requires of clients. */
function required(revision: string): string[] {
  const file = here(`../../../node_modules/@modelcontextprotocol/conformance/requirements/${revision}.yaml`);
  const { client } = parse(readFileSync(file, "utf8")) as { client: string[] };
  return client.filter((name) => name.startsWith("auth/"));
}

const scenarios = REVISIONS.flatMap((revision) =>
  required(revision)
    .filter((name) => ALL || (revision === "2026-07-28" && KINDS.includes(name)))
    .map((name) => [revision, name] as const),
);

const servers = [["2025-11-25", "legacy"] as const, ...(ALL ? [["2026-07-28", "modern"] as const] : [])];

describe("as a client", async () => {
  const program = await builtClient();

  it.each(scenarios)("revision %s, %s", async (revision, name) => {
    verifies("beyond.upstream-oauth.conformance");
    const command = `${process.execPath} ${program}`;
    const given = ["--scenario", name, "--spec-version", revision, "--timeout", "120000"];
    const output = await runSuite("client", "--command", command, ...given);
    const [, passed, all, failed, warnings] =
      /Passed: (\d+)\/(\d+), (\d+) failed, (\d+) warnings/.exec(output) ?? [];
    const isClean = passed !== undefined && passed === all && failed === "0" && warnings === "0";
    expect([name, isClean, isClean ? "" : output]).toEqual([name, true, ""]);
    console.log(`conformance ${revision} ${name}: ${passed} checks passed`);
  });
});

describe("as a server", () => {
  it.each(servers)("revision %s", async (revision, era) => {
    verifies("beyond.oauth.conformance");
    const issuer = await authorizationServer();
    issuer.groups.set("ann", ["bots"]);
    const g = await governedFixtures(era, {
      oidc: { issuer: issuer.url, audience: "svc", role_map: { bots: "agent" } },
    });
    const { client, token } = await signedInClient(g.url, issuer, "ann");
    await client.close();
    const outcome = await serverConformance(await front(g.url, token), revision);
    expect([outcome.failed, outcome.failed === 0 ? "" : outcome.output]).toEqual([0, ""]);
    expect(outcome.passed).toBeGreaterThan(50);
    console.log(`conformance ${revision} signed in: ${outcome.passed} checks passed`);
  });
});
