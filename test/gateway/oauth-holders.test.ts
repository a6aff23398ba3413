/** Who a connection belongs to when keys are made again and people move: its tenant follows, and no account does. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { Client as Browser } from "../console/support/client.ts";
import { type AuthorizationServer, authorizationServer } from "../support/authorization-server.ts";
import { freePort } from "../support/ports.ts";
import { verifies } from "../support/verifies.ts";
import { consent, consentGateway, linkIn, pressConnect, signedIn } from "./support/consent.ts";
import { type AnyResult, call, type GatewayTest } from "./support/gateway.ts";
import { signedInClient } from "./support/mcp-sign-in.ts";
import { type OAuthUpstream, oauthUpstream } from "./support/oauth-upstream.ts";

const KEYS = [
  { name: "bot", role: "agent", tenant: "acme", tenant_only: true },
  { name: "acme-admin", role: "admin", tenant: "acme", tenant_only: true },
  { name: "globex-admin", role: "admin", tenant: "globex", tenant_only: true },
];
let issuer: AuthorizationServer;
/** The organisation's own issuer, at which people sign in to the gateway and its console. */
let people: AuthorizationServer;
let port: number;
let up: OAuthUpstream;
beforeAll(async () => {
  port = await freePort();
  issuer = await authorizationServer();
  const groupsOf = (sub: string) => people.groups.get(sub) ?? [];
  people = await authorizationServer({
    configuration: {
      claims: { openid: ["sub", "groups"] },
      conformIdTokenClaims: false,
      findAccount: (_: unknown, sub: string) => ({
        accountId: sub,
        claims: () => ({ sub, groups: groupsOf(sub) }),
      }),
      clients: [
        {
          client_id: "console",
          token_endpoint_auth_method: "none",
          application_type: "native",
          redirect_uris: [`http://127.0.0.1:${port}/console/login/callback`],
        },
      ],
    },
  });
  up = await oauthUpstream(issuer.url);
});

const pathOf = (link: string) => new URL(link).pathname;
const whoami = async (g: GatewayTest, key: string) => call(await g.connect(key), "whoami");
async function names(g: GatewayTest, key: string): Promise<string[]> {
  const answer = await fetch(`${g.url}/v1/upstreams`, { headers: { authorization: `Bearer ${key}` } });
  return ((await answer.json()) as AnyResult).connections.map(({ name }: AnyResult) => name);
}

/** Makes the key again in another tenant, with another secret, past the API. */
async function remake(g: GatewayTest, name: string, secret: string, tenant: string): Promise<void> {
  const file = join(g.folder, "keys.json");
  const entries = JSON.parse(readFileSync(file, "utf8")) as AnyResult[];
  const changed = entries.map((entry) =>
    entry.name === name ? { ...entry, tenant, key_sha256: sha256Hex(secret) } : entry,
  );
  writeFileSync(file, JSON.stringify(changed));
  await g.service.reload();
}

describe("a key that is made again in another tenant", () => {
  it("gets its own link, and nobody of the earlier tenant finishes a sign-in for it", async () => {
    verifies("beyond.upstream-oauth.remade");
    const g = await consentGateway(up.url, { keys: KEYS });
    const first = linkIn(await whoami(g, "bot"))!;
    const acme = await signedIn(g, "acme-admin");
    const begun = await pressConnect(acme, first);
    await remake(g, "bot", "bot-again", "globex");
    const second = linkIn(await whoami(g, "bot-again"))!;
    expect(second).not.toBe(first);
    const back = await issuer.signIn(begun, "mallory");
    const before = issuer.asked.filter((path) => path === "/token").length;
    expect((await acme.get(back.pathname + back.search)).status).toBe(400);
    expect(issuer.asked.filter((path) => path === "/token")).toHaveLength(before);
    expect((await acme.get(pathOf(second))).status).toBe(403);
    await consent(await signedIn(g, "globex-admin"), issuer, second, "bea");
    expect((await whoami(g, "bot-again")).content[0].text).toBe("bea");
    expect([await names(g, "acme-admin"), await names(g, "globex-admin")]).toEqual([[], ["bot"]]);
  });

  it("does not use the account of the earlier one, whose tokens are revoked at once", async () => {
    const g = await consentGateway(up.url, { keys: KEYS });
    await consent(await signedIn(g, "acme-admin"), issuer, linkIn(await whoami(g, "bot"))!, "ann");
    await remake(g, "bot", "bot-again", "globex");
    issuer.asked.length = 0;
    const second = linkIn(await whoami(g, "bot-again"))!;
    expect(issuer.asked).toContain("/token/revocation");
    await consent(await signedIn(g, "globex-admin"), issuer, second, "bea");
    expect((await whoami(g, "bot-again")).content[0].text).toBe("bea");
    const ended = (await g.trail()).filter(({ event }) => event === "upstream_revoked");
    expect(ended).toMatchObject([{ actor: "svc", tenant: "acme" }]);
  });
});

describe("a person who moves to another tenant", () => {
  it("takes the connection along", async () => {
    verifies("beyond.upstream-oauth.moved");
    people.groups.set("ann", ["acme"]);
    const origin = `http://127.0.0.1:${port}`;
    const g = await consentGateway(up.url, {
      keys: KEYS,
      config: {
        listen: { host: "127.0.0.1", port },
        console_url: origin,
        oidc: {
          issuer: people.url,
          audience: "svc",
          client_id: "console",
          role_map: { acme: "agent", globex: "agent" },
          tenant_map: { acme: "acme", globex: "globex" },
        },
      },
    });
    const ann = await signedInClient(g.url, people, "ann");
    const link = linkIn(await call(ann.client, "whoami"))!;
    const browser = new Browser(g.url);
    const away = await browser.get(`/console/login/issuer?next=${encodeURIComponent(pathOf(link))}`);
    const home = await people.signIn(away.to!, "ann");
    await browser.get(home.pathname + home.search);
    await consent(browser, issuer, link, "ann-there");
    expect((await call(ann.client, "whoami")).content[0].text).toBe("ann-there");
    expect([await names(g, "acme-admin"), await names(g, "globex-admin")]).toEqual([["ann"], []]);
    people.groups.set("ann", ["globex"]);
    const moved = await signedInClient(g.url, people, "ann");
    expect((await call(moved.client, "whoami")).content[0].text).toBe("ann-there");
    expect([await names(g, "acme-admin"), await names(g, "globex-admin")]).toEqual([[], ["ann"]]);
  });
});
