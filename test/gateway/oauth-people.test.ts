/** People of an issuer: consent with their own session, and exchange of their tokens. */
import { decodeJwt } from "jose";
import { beforeAll, describe, expect, it } from "vitest";
import { Client as Browser } from "../console/support/client.ts";
import { type AuthorizationServer, authorizationServer } from "../support/authorization-server.ts";
import { freePort } from "../support/ports.ts";
import { verifies } from "../support/verifies.ts";
import { consent, GUARDED_MANIFESTS, linkIn, tokenKey } from "./support/consent.ts";
import { type AnyResult, call, testGateway, toolNames } from "./support/gateway.ts";
import { signedInClient } from "./support/mcp-sign-in.ts";
import { type OAuthUpstream, oauthUpstream } from "./support/oauth-upstream.ts";

const EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const GROUPS: Record<string, string[]> = { ann: ["bots"], bob: ["bots"], olga: ["ops"] };

let port: number;
let issuer: AuthorizationServer;
let up: OAuthUpstream;
const exchanged: AnyResult[] = [];
beforeAll(async () => {
  port = await freePort();
  issuer = await authorizationServer({
    configuration: {
      claims: { openid: ["sub", "groups"] },
      conformIdTokenClaims: false,
      findAccount: (_: unknown, sub: string) => ({
        accountId: sub,
        claims: () => ({ sub, groups: GROUPS[sub] ?? [] }),
      }),
      clients: [
        {
          client_id: "console",
          token_endpoint_auth_method: "none",
          application_type: "native",
          redirect_uris: [`http://127.0.0.1:${port}/console/login/callback`],
        },
        {
          client_id: "gateway",
          client_secret: "the-secret-of-the-gateway",
          grant_types: [EXCHANGE],
          redirect_uris: [],
          response_types: [],
        },
      ],
    },
    prepare(provider, sign) {
      provider.registerGrantType(
        EXCHANGE,
        async (ctx: AnyResult) => {
          const { subject_token, subject_token_type, resource } = ctx.oidc.params;
          exchanged.push({ subject_token, subject_token_type, resource, client: ctx.oidc.client.clientId });
          const { sub } = decodeJwt(subject_token);
          // Two tokens of one second differ by their id.
          const jti = String(exchanged.length);
          const access_token = await sign({ sub, aud: resource, scope: "tools.read", jti });
          ctx.body = { access_token, token_type: "Bearer", expires_in: 300, issued_token_type: "x" };
        },
        ["subject_token", "subject_token_type", "resource", "scope"],
      );
    },
  });
  for (const [name, groups] of Object.entries(GROUPS)) issuer.groups.set(name, groups);
  up = await oauthUpstream(issuer.url);
});

const oidc = () => ({
  issuer: issuer.url,
  audience: "svc",
  client_id: "console",
  role_map: { bots: "agent", ops: "operator" },
});
const textOf = (result: AnyResult): string => result.content[0].text;

describe("a person of the issuer", () => {
  it("consents for their own agent, and sees nothing else of the console", async () => {
    verifies("beyond.upstream-oauth.link-person");
    const g = await testGateway({
      upstreams: [{ name: "guarded", url: up.url, auth: { type: "oauth" } }],
      manifests: GUARDED_MANIFESTS,
      config: {
        listen: { host: "127.0.0.1", port },
        console: "login",
        console_url: `http://127.0.0.1:${port}`,
        token_key: tokenKey(),
        oidc: oidc(),
      },
    });
    const { client } = await signedInClient(g.url, issuer, "ann");
    const link = linkIn(await call(client, "whoami"))!;
    const { pathname } = new URL(link);
    const signIn = async (browser: Browser, login: string) => {
      const away = await browser.get(`/console/login/issuer?next=${encodeURIComponent(pathname)}`);
      const back = await issuer.signIn(away.to!, login);
      return browser.get(back.pathname + back.search);
    };
    // Another person of the issuer follows the link.
    const bob = new Browser(g.url);
    expect((await signIn(bob, "bob")).status).toBe(200);
    expect((await bob.get(pathname)).status).toBe(403);
    const ann = new Browser(g.url);
    expect((await ann.get(pathname)).to).toContain("/console/login?next=");
    expect((await signIn(ann, "ann")).text).toContain(pathname);
    expect((await ann.get(pathname)).text).toContain("your agents");
    for (const page of ["/console", "/console/runs", "/console/upstreams", "/console/keys"])
      expect((await ann.get(page)).to).toContain("/console/login");
    // Without the link, an agent cannot sign in at all.
    const agent = new Browser(g.url);
    const away = await agent.get("/console/login/issuer?next=/console/runs");
    const back = await issuer.signIn(away.to!, "ann");
    expect((await agent.get(back.pathname + back.search)).status).toBe(403);
    await consent(ann, issuer, link, "ann-at-the-server");
    expect(textOf(await call(client, "whoami"))).toBe("ann-at-the-server");
    const { client: other } = await signedInClient(g.url, issuer, "bob");
    expect(linkIn(await call(other, "whoami"))).toBeDefined();
    await g.running.stop();
  });
});

describe("exchange", () => {
  it("gives each caller their own token, from the configured issuer", async () => {
    verifies("beyond.upstream-exchange.caller");
    const auth = { type: "exchange", client_id: "gateway", client_secret: "the-secret-of-the-gateway" };
    const g = await testGateway({
      upstreams: [{ name: "guarded", url: up.url, auth }],
      manifests: GUARDED_MANIFESTS,
      config: { oidc: { issuer: issuer.url, audience: "svc", role_map: { bots: "agent" } } },
    });
    up.tokens.length = 0;
    const [ann, bob] = [
      await signedInClient(g.url, issuer, "ann"),
      await signedInClient(g.url, issuer, "bob"),
    ];
    expect(await toolNames(ann.client)).toEqual(["whoami", "write"]);
    const answers: string[] = [];
    for (const { client } of [ann, bob, ann, bob]) answers.push(textOf(await call(client, "whoami")));
    expect(answers).toEqual(["ann", "bob", "ann", "bob"]);
    // Once for each caller, for this resource; and the caller's token itself went to the issuer alone.
    expect(exchanged).toHaveLength(2);
    expect(exchanged[0]).toMatchObject({ subject_token: ann.token, resource: up.url, client: "gateway" });
    expect(up.tokens).not.toContain(ann.token);
    const { store } = g.service.core;
    expect(await store.count("upstream_consents")).toBe(0);
    expect(g.logged.join("\n")).not.toContain(ann.token);
    up.refused.add(up.tokens.find((token) => decodeJwt(token).sub === "ann")!);
    expect(textOf(await call(ann.client, "whoami"))).toBe("ann");
    expect(exchanged).toHaveLength(3);
  });

  it("needs the caller's token, so a key gets an error that names it", async () => {
    verifies("beyond.upstream-exchange.key");
    const auth = { type: "exchange", client_id: "gateway", client_secret: "wrong" };
    const g = await testGateway({
      upstreams: [{ name: "guarded", url: up.url, namespace: true, auth }],
      manifests: GUARDED_MANIFESTS.replaceAll("tool: ", "tool: guarded."),
      config: { oidc: { issuer: issuer.url, audience: "svc", role_map: { bots: "agent" } } },
    });
    up.tokens.length = 0;
    const agent = await g.connect("agent");
    expect(await toolNames(agent)).toEqual([]);
    const refused = await call(agent, "guarded.whoami");
    expect([refused.isError, textOf(refused)]).toEqual([
      true,
      expect.stringContaining("needs the caller's own token"),
    ]);
    const { client } = await signedInClient(g.url, issuer, "ann");
    const wrong = await call(client, "guarded.whoami");
    expect(textOf(wrong)).toContain("did not exchange the caller's token");
    expect(up.tokens).toEqual([]);
    await expect(testGateway({ upstreams: [{ name: "guarded", url: up.url, auth }] })).rejects.toThrow(
      "set oidc.issuer",
    );
  });
});
