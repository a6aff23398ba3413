/**
 * A tool server of the MCP SDK that checks tokens: signed by the issuer, for this resource and with the scope that the
 * tool needs. It answers who the token belongs to, and keeps what it saw.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { afterAll } from "vitest";
import { z } from "zod";

export interface OAuthUpstream {
  url: string;
  /** Bearer tokens of the requests, in order. */
  tokens: string[];
  /** Paths of all requests. */
  asked: string[];
  /** Changes the metadata document. */
  metadata: Record<string, unknown>;
  /** Changes the challenge of a 401. */
  challenge: string | null;
  /** Tokens that are refused although they are valid. */
  refused: Set<string>;
  /** An address for all requests with a token instead of an answer. */
  redirect: string | null;
}

export async function oauthUpstream(issuer: string): Promise<OAuthUpstream> {
  const keys = createRemoteJWKSet(new URL(`${issuer}/jwks`));
  const server: Server = createServer((request, response) => void handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const up: OAuthUpstream = {
    url: `${base}/mcp`,
    tokens: [],
    asked: [],
    metadata: {},
    challenge: null,
    refused: new Set(),
    redirect: null,
  };
  const METADATA = "/.well-known/oauth-protected-resource/mcp";
  afterAll(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });

  const refuse = (response: ServerResponse, status: number, challenge: string) =>
    void response.writeHead(status, { "www-authenticate": challenge }).end("refused");

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    up.asked.push(request.url!);
    if (request.url === METADATA) {
      const document = {
        resource: up.url,
        authorization_servers: [issuer],
        scopes_supported: ["tools.read"],
        ...up.metadata,
      };
      return void response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify(document));
    }
    if (request.url !== "/mcp") return void response.writeHead(404).end();
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
    const challenge = up.challenge ?? `Bearer resource_metadata="${base}${METADATA}"`;
    if (token === undefined) return refuse(response, 401, challenge);
    up.tokens.push(token);
    if (up.redirect !== null) return void response.writeHead(307, { location: up.redirect }).end();
    let holder: { sub: string; scopes: string[] };
    try {
      const { payload } = await jwtVerify(token, keys, { issuer, audience: up.url });
      if (up.refused.has(token)) throw new Error("revoked");
      holder = { sub: payload.sub!, scopes: String(payload["scope"] ?? "").split(" ") };
    } catch {
      return refuse(response, 401, `${challenge}, error="invalid_token"`);
    }
    let text = "";
    for await (const chunk of request) text += chunk;
    const body = text === "" ? undefined : JSON.parse(text);
    if (
      body?.method === "tools/call" &&
      body.params.name === "write" &&
      !holder.scopes.includes("tools.write")
    )
      return refuse(response, 403, 'Bearer error="insufficient_scope", scope="tools.write"');
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
    const mcp = toolsFor(holder.sub);
    // biome-ignore lint/suspicious/noExplicitAny: the SDK's own types disagree on optional members
    await mcp.connect(transport as any);
    await transport.handleRequest(request, response, body);
  }
  return up;
}

function toolsFor(sub: string): McpServer {
  const mcp = new McpServer({ name: "guarded", version: "1" });
  const answer = (text: string) => ({ content: [{ type: "text" as const, text }] });
  mcp.registerTool("whoami", { description: "who is asking", inputSchema: {} }, async () => answer(sub));
  mcp.registerTool("write", { description: "write", inputSchema: { text: z.string() } }, async ({ text }) =>
    answer(`${sub} wrote ${text}`),
  );
  return mcp;
}
