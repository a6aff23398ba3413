/**
 * Tool servers by other authors that demand OAuth, behind the gateway: an agent's first call gets a link, an admin
 * consents, and the call runs.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { consentGateway, linkIn, pressConnect, signedIn } from "../gateway/support/consent.ts";
import { call } from "../gateway/support/gateway.ts";
import { authorizationServer } from "../support/authorization-server.ts";
import { ROOT } from "../support/files.ts";
import { freePort } from "../support/ports.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";
import { PROVES_ALL_CLIENTS } from "./support/chosen.ts";
import { fastMcpPython } from "./support/fastmcp.ts";

const EXAMPLE = "node_modules/@modelcontextprotocol/sdk/dist/esm/examples/server/simpleStreamableHttp.js";
const FASTMCP_TOOL = `
@mcp.tool
def greet(name: str) -> str:
    return f"Hello, {name}!"

mcp.run(transport="http", port=port)
`;
/** A server with its own issuer, which grants everything. */
const FASTMCP_OWN = `
import sys
from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions

port = int(sys.argv[1])
mcp = FastMCP("greeter", auth=InMemoryOAuthProvider(
    base_url=f"http://127.0.0.1:{port}",
    client_registration_options=ClientRegistrationOptions(enabled=True),
    revocation_options=RevocationOptions(enabled=True),
))
${FASTMCP_TOOL}`;
/** A server that checks tokens of another issuer. */
const FASTMCP_REMOTE = `
import sys
from fastmcp import FastMCP
from fastmcp.server.auth import RemoteAuthProvider
from fastmcp.server.auth.providers.jwt import JWTVerifier

port, issuer = int(sys.argv[1]), sys.argv[2]
base = f"http://127.0.0.1:{port}"
mcp = FastMCP("greeter", auth=RemoteAuthProvider(
    token_verifier=JWTVerifier(jwks_uri=issuer + "/jwks", issuer=issuer, audience=base + "/mcp"),
    authorization_servers=[issuer],
    base_url=base,
    scopes_supported=["tools.read"],
))
${FASTMCP_TOOL}`;

interface GuardedServer {
  title: string;
  large: boolean;
  /** Starts the server, and returns its endpoint. */
  start(issuer: string): Promise<string>;
}

const children: ChildProcess[] = [];
afterAll(() => {
  for (const child of children) child.kill("SIGKILL");
});

async function started(command: string[], port: number, env: Record<string, string> = {}): Promise<void> {
  const [program, ...args] = command;
  const child = spawn(program!, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  children.push(child);
  let text = "";
  for (const stream of [child.stdout, child.stderr])
    stream!.on("data", (part: Buffer) => {
      text += part.toString();
    });
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}: ${text}`);
    const answer = await fetch(`http://127.0.0.1:${port}/mcp`, { method: "POST" }).catch(() => null);
    return answer !== null;
  }, "the tool server");
}

async function startPython(script: string, issuer: string): Promise<string> {
  const file = join(tempDir("guarded"), "server.py");
  writeFileSync(file, script);
  const port = await freePort();
  await started([await fastMcpPython(), file, String(port), issuer], port);
  return `http://127.0.0.1:${port}/mcp`;
}

const SERVERS: readonly GuardedServer[] = [
  {
    title: "example of MCP SDK 1, with its own issuer",
    large: false,
    async start() {
      const [port, auth] = [await freePort(), await freePort()];
      const env = { MCP_PORT: String(port), MCP_AUTH_PORT: String(auth) };
      await started([process.execPath, join(ROOT, EXAMPLE), "--oauth"], port, env);
      return `http://localhost:${port}/mcp`;
    },
  },
  {
    title: "FastMCP, with its own issuer",
    large: true,
    start: (issuer) => startPython(FASTMCP_OWN, issuer),
  },
  {
    title: "FastMCP, with tokens of oidc-provider",
    large: true,
    start: (issuer) => startPython(FASTMCP_REMOTE, issuer),
  },
];

const MAX_HOPS = 5;

/** Follows an issuer that asks nothing, up to the address of the gateway. */
async function followed(start: string, origin: string): Promise<URL> {
  let at = new URL(start);
  for (let hop = 0; hop < MAX_HOPS && at.origin !== origin; hop++) {
    const answer = await fetch(at, { redirect: "manual" });
    const next = answer.headers.get("location");
    if (next === null) throw new Error(`the issuer answered ${answer.status}: ${await answer.text()}`);
    at = new URL(next, at);
  }
  return at;
}

describe("a tool server that demands a sign-in", () => {
  const chosen = SERVERS.filter(({ large }) => !large || PROVES_ALL_CLIENTS);
  it.each(chosen)("$title", async ({ start }) => {
    verifies("beyond.upstream-oauth.servers");
    const issuer = await authorizationServer();
    const g = await consentGateway(await start(issuer.url), {
      manifests: "- {tool: greet, effect: read, permission: guarded.read}\n",
    });
    const agent = await g.connect("agent");
    const link = linkIn(await call(agent, "greet", { name: "Ann" }))!;
    expect(await g.events()).toEqual([]);
    const admin = await signedIn(g, "admin");
    const asked = await pressConnect(admin, link);
    const isProvider = new URL(asked).origin === issuer.url;
    const back = isProvider ? await issuer.signIn(asked, "ann") : await followed(asked, g.url);
    const { status, text } = await admin.get(back.pathname + back.search);
    expect([status, status === 200 ? "" : text]).toEqual([200, ""]);
    const greeted = await call(agent, "greet", { name: "Ann" });
    expect(greeted.content).toEqual([{ type: "text", text: "Hello, Ann!" }]);
    const listed = await fetch(`${g.url}/v1/upstreams`, { headers: { authorization: "Bearer admin" } });
    const [connection] = ((await listed.json()) as { connections: { id: string }[] }).connections;
    const revoked = await fetch(`${g.url}/v1/upstreams/connections/${connection!.id}`, {
      method: "DELETE",
      headers: { authorization: "Bearer admin" },
    });
    expect(revoked.status).toBe(200);
    expect(linkIn(await call(agent, "greet", { name: "Ann" }))).toBeDefined();
    expect((await g.events()).filter((event) => event.startsWith("upstream"))).toEqual([
      "upstream_connected",
      "upstream_revoked",
    ]);
  });
});
