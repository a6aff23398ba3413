/** Upstreams with each person's own consent: a real issuer, a real tool server that checks tokens, and the console. */
import { beforeAll, describe, expect, it } from "vitest";
import { type AuthorizationServer, authorizationServer } from "../support/authorization-server.ts";
import { verifies } from "../support/verifies.ts";
import { consent, consentGateway, linkIn, pressConnect, signedIn } from "./support/consent.ts";
import { call, type GatewayTest, toolNames } from "./support/gateway.ts";
import { type OAuthUpstream, oauthUpstream } from "./support/oauth-upstream.ts";

let issuer: AuthorizationServer;
let up: OAuthUpstream;
let g: GatewayTest;
beforeAll(async () => {
  issuer = await authorizationServer();
  up = await oauthUpstream(issuer.url);
  g = await consentGateway(up.url);
});

const whoami = async (key: string, from = g) => call(await from.connect(key), "whoami");
// biome-ignore lint/suspicious/noExplicitAny: results are looked into freely
const textOf = (result: any): string => result.content[0].text;

/** Connects a key as the admin, and returns what its agent then sees. */
async function connected(key: string, login: string, from = g) {
  const link = linkIn(await whoami(key, from))!;
  await consent(await signedIn(from, "admin"), issuer, link, login);
}

describe("an agent without consent", () => {
  it("gets a link, and after the consent its call runs as the person who consented", async () => {
    verifies("beyond.upstream-oauth.link", "beyond.upstream-oauth.discovery");
    const first = await whoami("agent");
    expect([first.isError, textOf(first)]).toEqual([true, expect.stringContaining(linkIn(first)!)]);
    expect(up.tokens).toEqual([]);
    const browser = await signedIn(g, "admin");
    await consent(browser, issuer, linkIn(first)!, "ann");
    const agent = await g.connect("agent");
    expect(textOf(await call(agent, "whoami"))).toBe("ann");
    expect(await toolNames(agent)).toEqual(["whoami", "write"]);
    const [record] = (await g.trail()).filter(({ event }) => event === "upstream_connected");
    expect(record).toMatchObject({
      actor: "admin",
      detail: expect.stringContaining("upstream guarded, principal key:agent, scopes tools.read"),
    });
  });

  it("shows on the page which upstream, which scopes and for whom", async () => {
    verifies("beyond.upstream-oauth.page");
    const link = linkIn(await whoami("agent2"))!;
    const { status, text } = await (await signedIn(g, "admin")).get(new URL(link).pathname);
    expect(status).toBe(200);
    for (const word of ["Connect guarded", "agent2", "tools.read", new URL(issuer.url).host])
      expect(text).toContain(word);
  });
});
