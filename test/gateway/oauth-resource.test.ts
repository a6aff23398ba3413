/** Signing in to the gateway by OAuth, with the MCP SDK's own client at a real issuer. */
import {
  Client,
  type OAuthClientProvider,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import { request } from "undici";
import { beforeAll, describe, expect, it } from "vitest";
import { type AuthorizationServer, authorizationServer } from "../support/authorization-server.ts";
import { verifies } from "../support/verifies.ts";
import { call, type GatewayTest, testGateway, toolNames } from "./support/gateway.ts";

const CALLBACK = "http://127.0.0.1:9/callback";
const METADATA = "/.well-known/oauth-protected-resource";

let issuer: AuthorizationServer;
let g: GatewayTest;
beforeAll(async () => {
  issuer = await authorizationServer();
  issuer.groups.set("ann", ["bots"]);
  issuer.groups.set("olga", ["ops"]);
  issuer.groups.set("sam", []);
  g = await testGateway({
    config: {
      oidc: { issuer: issuer.url, audience: "svc", role_map: { bots: "agent", ops: "operator" } },
    },
  });
});

/** The client's memory, as a program that uses the SDK keeps it. */
class Memory implements OAuthClientProvider {
  readonly redirectUrl = CALLBACK;
  readonly clientMetadata = {
    redirect_uris: [CALLBACK],
    client_name: "a client",
    scope: "openid tools.read",
  };
  asked: URL | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: what the SDK stores is its own
  private readonly kept = new Map<string, any>();
  clientInformation = () => this.kept.get("client");
  saveClientInformation = (client: unknown) => this.keep("client", client);
  tokens = () => this.kept.get("tokens");
  saveTokens = (tokens: unknown) => this.keep("tokens", tokens);
  codeVerifier = () => this.kept.get("verifier");
  saveCodeVerifier = (verifier: string) => this.keep("verifier", verifier);
  discoveryState = () => this.kept.get("discovery");
  saveDiscoveryState = (state: unknown) => this.keep("discovery", state);
  redirectToAuthorization(url: URL): void {
    this.asked = url;
  }
  private keep(name: string, value: unknown): void {
    this.kept.set(name, value);
  }
}

/** Signs a person in, given nothing but the endpoint's URL, and returns the client and its token. */
async function signIn(login: string, path = "/mcp", base = g.url) {
  const memory = new Memory();
  const transport = () =>
    new StreamableHTTPClientTransport(new URL(`${base}${path}`), { authProvider: memory });
  const first = transport();
  const client = () => new Client({ name: "oauth-client", version: "1" });
  await expect(client().connect(first)).rejects.toThrow();
  const back = await issuer.signIn(memory.asked!, login);
  await first.finishAuth(back.searchParams);
  const connected = client();
  await connected.connect(transport());
  return { client: connected, token: memory.tokens()!.access_token as string };
}

/** Signs in for a token without connecting with it: for the endpoint, or for another resource. */
async function tokenFor(login: string, path = "/mcp", resource?: string): Promise<string> {
  const memory: Memory & OAuthClientProvider = new Memory();
  if (resource !== undefined) memory.validateResourceURL = async () => new URL(resource);
  const transport = new StreamableHTTPClientTransport(new URL(`${g.url}${path}`), { authProvider: memory });
  await expect(new Client({ name: "c", version: "1" }).connect(transport)).rejects.toThrow();
  await transport.finishAuth((await issuer.signIn(memory.asked!, login)).searchParams);
  return memory.tokens()!.access_token;
}

function post(path: string, token: string | null, base = g.url): Promise<Response> {
  return fetch(`${base}${path}`, {
    method: "POST",
    headers: {
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "initialize",
      params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
    }),
  });
}

describe("a client that knows the URL alone", () => {
  it("signs in at the organisation's issuer and works", async () => {
    verifies("beyond.oauth.sdk-client");
    const { client } = await signIn("ann");
    expect(await toolNames(client)).toContain("echo");
    expect((await call(client, "echo", { text: "hello" })).isError).not.toBe(true);
    const [opened] = await g.service.core.store.records({ limit: 1 });
    expect(JSON.parse(opened!)).toMatchObject({ actor: "ann" });
    await client.close();
  });

  it("signs in at the operator endpoint, too", async () => {
    const { client } = await signIn("olga", "/operator/mcp");
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain("svc.list_runs");
    await client.close();
  });
});

describe("the metadata", () => {
  it.each(["/mcp", "/operator/mcp"])("of %s is open and names the issuer", async (path) => {
    verifies("beyond.oauth.metadata");
    const answer = await fetch(`${g.url}${METADATA}${path}`);
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({
      resource: `${g.url}${path}`,
      authorization_servers: [issuer.url],
      bearer_methods_supported: ["header"],
    });
  });

  it("names the scopes to ask for, if the settings do", async () => {
    verifies("beyond.oauth.scopes");
    const scoped = await testGateway({
      config: {
        oidc: {
          issuer: issuer.url,
          audience: "svc",
          role_map: { bots: "agent" },
          scopes: "openid tools.read",
        },
      },
    });
    expect(await (await fetch(`${scoped.url}${METADATA}/mcp`)).json()).toMatchObject({
      scopes_supported: ["openid", "tools.read"],
    });
    await scoped.running.stop();
    await expect(testGateway({ config: { oidc: { scopes: ['a"b'] } } })).rejects.toThrow("is not a scope");
  });

  it("of a gateway with a public URL names that URL, and tokens for it or the audience are accepted", async () => {
    verifies("beyond.oauth.gateway-url", "beyond.oauth.audience");
    const behind = await testGateway({
      config: {
        gateway_url: "https://gateway.example.com/",
        oidc: { issuer: issuer.url, audience: "https://api.example.com/v1", role_map: { bots: "agent" } },
      },
    });
    const metadata = await (await fetch(`${behind.url}${METADATA}/mcp`)).json();
    expect(metadata).toMatchObject({ resource: "https://gateway.example.com/mcp" });
    const refused = await post("/mcp", null, behind.url);
    expect(refused.headers.get("www-authenticate")).toBe(
      `Bearer resource_metadata="https://gateway.example.com${METADATA}/mcp"`,
    );
    expect((await post("/mcp", await tokenFor("ann"), behind.url)).status).toBe(401);
    const used = async (resource: string) =>
      (await post("/mcp", await tokenFor("ann", "/mcp", resource), behind.url)).status;
    expect(await used("https://gateway.example.com/mcp")).toBe(200);
    expect(await used("https://api.example.com/v1")).toBe(200);
    for (const resource of ["https://gateway.example.com/operator/mcp", "https://api.example.com/v2"])
      expect(await used(resource)).toBe(401);
  });
});

describe("a client on this machine", () => {
  it("signs in under the name that it uses, and not under another port's", async () => {
    const named = g.url.replace("127.0.0.1", "localhost");
    const { client, token } = await signIn("ann", "/mcp", named);
    expect(await toolNames(client)).toContain("echo");
    await client.close();
    const metadata = async (host: string) => {
      const answer = await request(`${g.url}${METADATA}/mcp`, { headers: { host } });
      return ((await answer.body.json()) as { resource: string }).resource;
    };
    const { port } = new URL(g.url);
    expect(await metadata(`localhost:${port}`)).toBe(`${named}/mcp`);
    for (const host of ["localhost:1", "evil.example.com", `evil.example.com:${port}`])
      expect(await metadata(host)).toBe(`${g.url}/mcp`);
    // A token for one name is not a token for the other.
    expect((await post("/mcp", token)).status).toBe(401);
    expect((await post("/mcp", token, named)).status).toBe(200);
  });
});

describe("a refusal", () => {
  it("of a caller without a credential says where to sign in", async () => {
    verifies("beyond.oauth.challenge-401");
    for (const path of ["/mcp", "/operator/mcp"]) {
      const { status, headers } = await post(path, null);
      expect(status).toBe(401);
      expect(headers.get("www-authenticate")).toBe(`Bearer resource_metadata="${g.url}${METADATA}${path}"`);
    }
    const invalid = await post("/mcp", "no-such-key");
    expect(invalid.headers.get("www-authenticate")).toContain('error="invalid_token"');
  });

  it("of a person without the role names the scope as the reason", async () => {
    verifies("beyond.oauth.challenge-403");
    for (const login of ["olga", "sam"]) {
      const { status, headers } = await post("/mcp", await tokenFor(login));
      expect(status).toBe(403);
      expect(headers.get("www-authenticate")).toBe(
        `Bearer error="insufficient_scope", resource_metadata="${g.url}${METADATA}/mcp"`,
      );
    }
  });

  it("for another origin sends nobody to the issuer", async () => {
    const answer = await fetch(`${g.url}/mcp`, {
      method: "POST",
      headers: { origin: "https://evil.example" },
    });
    expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([403, null]);
  });

  it("without OIDC stays as it is, and has no metadata", async () => {
    verifies("beyond.oauth.without-oidc");
    const plain = await testGateway();
    for (const path of ["/mcp", "/operator/mcp"]) {
      expect((await post(path, null, plain.url)).headers.get("www-authenticate")).toBe("Bearer");
      expect((await fetch(`${plain.url}${METADATA}${path}`)).status).toBe(404);
    }
    expect((await post("/mcp", "auditor", plain.url)).headers.get("www-authenticate")).toBe(null);
  });
});

describe("somebody who lies with a token", () => {
  it("does not use one that was issued for another resource", async () => {
    verifies("beyond.oauth.audience");
    const agents = await tokenFor("ann");
    expect((await post("/mcp", agents)).status).toBe(200);
    // A token for the agents' endpoint works at the agents' endpoint only, not for operators or the API.
    expect((await post("/operator/mcp", agents)).status).toBe(401);
    const api = await fetch(`${g.url}/v1/runs`, { headers: { authorization: `Bearer ${agents}` } });
    expect(api.status).toBe(401);
    expect(api.headers.get("www-authenticate")).toBe("Bearer");
    // The endpoint doesn't accept it again because another endpoint has seen it before.
    expect((await post("/mcp", agents)).status).toBe(200);
    const operators = await tokenFor("olga", "/operator/mcp");
    expect((await post("/operator/mcp", operators)).status).toBe(200);
    expect((await post("/mcp", operators)).status).toBe(401);
  });

  it("does not use one with a changed claim or another signature", async () => {
    const [header, payload] = (await tokenFor("sam")).split(".");
    const claims = JSON.parse(Buffer.from(payload!, "base64url").toString());
    const forged = Buffer.from(JSON.stringify({ ...claims, groups: ["bots"] })).toString("base64url");
    const signature = (await tokenFor("ann")).split(".")[2];
    expect((await post("/mcp", `${header}.${forged}.${signature}`)).status).toBe(401);
    const none = Buffer.from('{"alg":"none","typ":"at+jwt"}').toString("base64url");
    expect((await post("/mcp", `${none}.${forged}.`)).status).toBe(401);
  });
});
