/** An MCP client in which a person has signed in to the gateway, with the SDK's own OAuth client. */
import {
  Client,
  type OAuthClientProvider,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import type { AuthorizationServer } from "../../support/authorization-server.ts";

const CALLBACK = "http://127.0.0.1:9/callback";

/** The client's memory, as a program that uses the SDK keeps it. */
class Memory implements OAuthClientProvider {
  readonly redirectUrl = CALLBACK;
  readonly clientMetadata = { redirect_uris: [CALLBACK], client_name: "c", scope: "openid tools.read" };
  asked: URL | undefined;
  // biome-ignore lint/suspicious/noExplicitAny: what the SDK stores is its own
  private readonly kept = new Map<string, any>();
  clientInformation = () => this.kept.get("client");
  saveClientInformation = (value: unknown) => void this.kept.set("client", value);
  tokens = () => this.kept.get("tokens");
  saveTokens = (value: unknown) => void this.kept.set("tokens", value);
  codeVerifier = () => this.kept.get("verifier");
  saveCodeVerifier = (value: string) => void this.kept.set("verifier", value);
  discoveryState = () => this.kept.get("discovery");
  saveDiscoveryState = (value: unknown) => void this.kept.set("discovery", value);
  redirectToAuthorization(url: URL): void {
    this.asked = url;
  }
}

export async function signedInClient(
  gateway: string,
  issuer: Pick<AuthorizationServer, "signIn">,
  login: string,
): Promise<{ client: Client; token: string }> {
  const memory = new Memory();
  const transport = () =>
    new StreamableHTTPClientTransport(new URL(`${gateway}/mcp`), { authProvider: memory });
  const first = transport();
  const refused = await new Client({ name: "c", version: "1" })
    .connect(first)
    .catch((error: unknown) => error);
  if (memory.asked === undefined) throw refused;
  await first.finishAuth((await issuer.signIn(memory.asked, login)).searchParams);
  const client = new Client({ name: "c", version: "1" });
  await client.connect(transport());
  return { client, token: memory.tokens().access_token };
}
