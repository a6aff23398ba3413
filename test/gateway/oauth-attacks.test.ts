/** Somebody who lies to people, issuers and tool servers to get at tokens of others. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AuthorizationServer, authorizationServer } from "../support/authorization-server.ts";
import { verifies } from "../support/verifies.ts";
import { consent, consentGateway, linkIn, pressConnect, signedIn } from "./support/consent.ts";
import {
  type AnyResult,
  call,
  fakeUpstream,
  type GatewayTest,
  testGateway,
  toolNames,
} from "./support/gateway.ts";
import { type OAuthUpstream, oauthUpstream } from "./support/oauth-upstream.ts";

const KEYS = [
  { name: "bot", role: "agent" },
  { name: "other", role: "agent" },
  { name: "person", role: ["agent", "auditor"] },
  { name: "acme-bot", role: "agent", tenant: "acme" },
  { name: "globex-bot", role: "agent", tenant: "globex", tenant_only: true },
  { name: "acme-admin", role: "admin", tenant: "acme", tenant_only: true },
  { name: "globex-admin", role: "admin", tenant: "globex", tenant_only: true },
];
let issuer: AuthorizationServer;
let up: OAuthUpstream;
let g: GatewayTest;
beforeAll(async () => {
  issuer = await authorizationServer();
  up = await oauthUpstream(issuer.url);
  g = await consentGateway(up.url, { keys: KEYS });
});

const textOf = (result: AnyResult): string => result.content[0].text;
const whoami = async (key: string, from = g) => call(await from.connect(key), "whoami");
const linkFor = async (key: string, from = g) => linkIn(await whoami(key, from))!;
const pathOf = (link: string | URL) => {
  const { pathname, search } = new URL(link);
  return pathname + search;
};
const redeemed = () => issuer.asked.filter((path) => path === "/token").length;

/** A server that answers with what the test sets, and keeps what it was asked. */
async function stub(): Promise<{
  url: string;
  asked: string[];
  answers: Map<string, object>;
  bodies: string[];
}> {
  const made = { url: "", asked: [] as string[], answers: new Map<string, object>(), bodies: [] as string[] };
  const server: Server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    made.asked.push(request.url!);
    made.bodies.push(text);
    const found = made.answers.get(request.url!.split("?", 1)[0]!);
    response
      .writeHead(found === undefined ? 404 : 200, { "content-type": "application/json" })
      .end(JSON.stringify(found ?? {}));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  made.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  return made;
}

/** The metadata of an issuer at this address. */
const metadataOf = (url: string, more: object = {}) => ({
  issuer: url,
  authorization_endpoint: `${url}/auth`,
  token_endpoint: `${url}/token`,
  registration_endpoint: `${url}/register`,
  response_types_supported: ["code"],
  code_challenge_methods_supported: ["S256"],
  ...more,
});
const METADATA = "/.well-known/oauth-authorization-server";

describe("a link", () => {
  it("is of no use to anybody else, or without a sign-in", async () => {
    verifies("beyond.upstream-oauth.link-person");
    const link = await linkFor("person");
    for (const key of ["admin", "operator", "acme-admin"]) {
      const seen = await (await signedIn(g, key)).get(pathOf(link));
      // An admin connects an account for a key's agent. An admin bound to a tenant has no rights in others.
      expect([key, seen.status]).toEqual([key, key === "admin" ? 200 : 403]);
    }
    expect((await (await signedIn(g, "person")).get(pathOf(link))).status).toBe(200);
    const nobody = await fetch(link, { redirect: "manual" });
    expect([nobody.status, nobody.headers.get("location")]).toEqual([
      303,
      expect.stringContaining("/console/login?next="),
    ]);
  });

  it("works once, and only if it is pressed in the session, with its form field", async () => {
    verifies("beyond.upstream-oauth.link-once");
    const link = await linkFor("bot");
    const browser = await signedIn(g, "admin");
    // A chat program opens links, which uses nothing up. A form of another site has no field of the session.
    for (let n = 0; n < 3; n++) expect((await browser.get(pathOf(link))).status).toBe(200);
    expect((await browser.post(pathOf(link), {})).status).toBe(403);
    await pressConnect(browser, link);
    expect((await browser.get(pathOf(link))).status).toBe(409);
    expect((await browser.submit(pathOf(link))).status).toBe(409);
    expect((await browser.get(`${pathOf(link)}0`)).status).toBe(409);
  });

  it("ends after ten minutes", async () => {
    const link = await linkFor("bot");
    const [row] = (await g.service.core.store.list("upstream_consents", { limit: 100 })).filter(
      ({ doc }) => doc.name === "bot",
    );
    const { expires_ms } = row!.doc.link!;
    expect(expires_ms - g.service.core.env.now()).toBeLessThanOrEqual(600_000);
    await g.service.core.store.transact({
      run: (tx) =>
        tx.put("upstream_consents", row!.key, { ...row!.doc, link: { ...row!.doc.link!, expires_ms: 1 } }),
    });
    expect((await (await signedIn(g, "admin")).get(pathOf(link))).status).toBe(409);
  });
});

describe("the callback", () => {
  it("is refused in another session, twice, changed, or without a sign-in, and its code is not redeemed", async () => {
    verifies("beyond.upstream-oauth.callback");
    const [mine, theirs] = [await signedIn(g, "admin"), await signedIn(g, "admin")];
    const back = await issuer.signIn(await pressConnect(mine, await linkFor("bot")), "eve");
    const before = redeemed();
    // An attacker makes another person open the callback of the attacker's sign-in.
    expect((await theirs.get(pathOf(back))).status).toBe(400);
    theirs.cookies.set(
      [...mine.cookies.keys()].find((name) => name.includes("_connect_"))!,
      `${"0".repeat(64)}.${"0".repeat(64)}`,
    );
    expect((await theirs.get(pathOf(back))).status).toBe(400);
    expect((await fetch(back)).status).toBe(400);
    const state = back.searchParams.get("state")!;
    for (const other of [
      state.replace(/.$/, "x"),
      `${state}0`,
      "",
      "x",
      `${"0".repeat(32)}.${"0".repeat(64)}`,
    ]) {
      const changed = new URL(back);
      changed.searchParams.set("state", other);
      expect((await mine.get(pathOf(changed))).status).toBe(400);
    }
    expect(redeemed()).toBe(before);
    const cookie = new Map(mine.cookies);
    expect((await mine.get(pathOf(back))).status).toBe(200);
    for (const [name, value] of cookie) mine.cookies.set(name, value);
    // The code is replayed, with the cookie.
    expect((await mine.get(pathOf(back))).status).toBe(400);
    expect(redeemed()).toBe(before + 1);
  });

  it("is refused once the person has signed out, or may not consent any more", async () => {
    const browser = await signedIn(g, "admin");
    const back = await issuer.signIn(await pressConnect(browser, await linkFor("other")), "eve");
    await browser.submit("/console/logout");
    expect((await browser.get(pathOf(back))).status).toBe(400);
  });

  it("with a code of another sign-in, or an error of the issuer, connects nobody", async () => {
    const browser = await signedIn(g, "admin");
    const first = await issuer.signIn(await pressConnect(browser, await linkFor("other")), "ann");
    const second = await issuer.signIn(await pressConnect(browser, await linkFor("other")), "eve");
    const mixed = new URL(second);
    mixed.searchParams.set("code", first.searchParams.get("code")!);
    // PKCE: the code was made for the other verifier.
    expect((await browser.get(pathOf(mixed))).status).toBeGreaterThanOrEqual(400);
    const third = new URL(await issuer.signIn(await pressConnect(browser, await linkFor("other")), "eve"));
    third.searchParams.delete("code");
    third.searchParams.set("error", "<script>alert(1)</script>");
    const refused = await browser.get(pathOf(third));
    expect([refused.status, refused.text.includes("<script>alert")]).toEqual([403, false]);
    expect(linkIn(await whoami("other"))).toBeDefined();
  });

  it("of another issuer is refused before its code is redeemed", async () => {
    verifies("beyond.upstream-oauth.mix-up");
    for (const change of [
      (url: URL) => url.searchParams.set("iss", "https://evil.example"),
      (url: URL) => url.searchParams.delete("iss"),
      (url: URL) => {
        url.pathname = `/oauth/callback/${"0".repeat(16)}`;
      },
      (url: URL) => {
        url.pathname = "/oauth/callback";
      },
    ]) {
      const browser = await signedIn(g, "admin");
      const back = await issuer.signIn(await pressConnect(browser, await linkFor("other")), "ann");
      const before = redeemed();
      change(back);
      const { status, text } = await browser.get(pathOf(back));
      expect([status, text.includes("another issuer"), redeemed()]).toEqual([400, true, before]);
    }
  });

  it("redirects nowhere", async () => {
    const browser = await signedIn(g, "admin");
    const back = await issuer.signIn(await pressConnect(browser, await linkFor("other")), "ann");
    for (const name of ["next", "redirect", "redirect_uri", "return_to"])
      back.searchParams.set(name, "https://evil.example");
    const { status, headers, text } = await browser.get(pathOf(back));
    expect([status, headers.location, text.includes("evil.example")]).toEqual([200, undefined, false]);
    expect(headers["referrer-policy"]).toBe("no-referrer");
    const page = await browser.get(`/console/upstreams/connect/${encodeURIComponent("//evil.example")}`);
    expect([page.status, page.headers.location]).toEqual([409, undefined]);
  });
});

describe("a tool server", () => {
  const guarded = async (metadata: Record<string, unknown>, config = {}) => {
    const mine = await oauthUpstream(issuer.url);
    mine.metadata = metadata;
    const from = await consentGateway(mine.url, { keys: KEYS, config });
    return {
      mine,
      from,
      page: async () => (await signedIn(from, "admin")).get(pathOf(await linkFor("bot", from))),
    };
  };

  it("cannot lead the gateway elsewhere by its documents", async () => {
    verifies("beyond.upstream-oauth.guarded");
    const inside = await stub();
    const evil = await stub();
    const cases: [string, () => Promise<{ status: number; text: string }>][] = [
      [
        "plain http elsewhere",
        async () => (await guarded({ authorization_servers: ["http://10.0.0.1"] })).page(),
      ],
      [
        "cloud metadata",
        async () => (await guarded({ authorization_servers: ["http://169.254.169.254/latest"] })).page(),
      ],
      ["a file", async () => (await guarded({ authorization_servers: ["file:///etc/passwd"] })).page()],
      ["another resource", async () => (await guarded({ resource: "https://other.example/mcp" })).page()],
      [
        "credentials in a URL",
        async () => (await guarded({ authorization_servers: ["http://a:b@127.0.0.1:1"] })).page(),
      ],
      [
        "another issuer in the metadata",
        async () => {
          evil.answers.set(METADATA, metadataOf("https://honest.example"));
          return (await guarded({ authorization_servers: [evil.url] })).page();
        },
      ],
      [
        "a token endpoint inside",
        async () => {
          evil.answers.set(METADATA, metadataOf(evil.url, { token_endpoint: "http://192.168.0.1/token" }));
          return (await guarded({ authorization_servers: [evil.url] })).page();
        },
      ],
      [
        "a script as the address of the issuer",
        async () => {
          evil.answers.set(METADATA, metadataOf(evil.url, { authorization_endpoint: "javascript:alert(1)" }));
          return (await guarded({ authorization_servers: [evil.url] })).page();
        },
      ],
    ];
    for (const [name, run] of cases) {
      const { status, text } = await run();
      expect([name, status]).toEqual([name, 502]);
      expect(text).not.toContain("javascript:");
    }
    expect(inside.asked).toEqual([]);
  });

  it("does not get a token by a redirect, and an allow list holds for its issuer, too", async () => {
    const elsewhere = await stub();
    const { mine, from } = await guarded({});
    await consent(await signedIn(from, "admin"), issuer, await linkFor("bot", from), "ann");
    const agent = await from.connect("bot");
    expect(textOf(await call(agent, "whoami"))).toBe("ann");
    mine.redirect = `${elsewhere.url}/steal`;
    expect(textOf(await call(agent, "whoami"))).toContain("redirect, which is not followed");
    expect(elsewhere.asked).toEqual([]);
    const closed = await guarded(
      { authorization_servers: ["http://localhost:1"] },
      { egress: { allow: ["127.0.0.1"] } },
    );
    expect((await closed.page()).status).toBe(502);
  });

  it("on a public address cannot name one in a private network", async () => {
    const { UpstreamOAuth } = await import("../../src/auth/upstream-oauth.ts");
    const { createEgress } = await import("../../src/egress/egress.ts");
    const lookup = async () => [{ address: "93.184.216.34", family: 4 }];
    const strict = createEgress({ block_private: true }, { lookup });
    const asked: string[] = [];
    const document = {
      resource: "https://tools.example.com/mcp",
      authorization_servers: ["https://10.0.0.1"],
    };
    // The public server answers; every other address goes to the real guard.
    const guard = {
      ...strict,
      check: (url: string) => strict.check(url),
      request: async (url: string) => {
        asked.push(url);
        if (!url.startsWith("https://tools.example.com/")) return strict.request(url);
        const isDocument = url.includes("well-known");
        return {
          status: isDocument ? 200 : 401,
          headers: { "content-type": "application/json" },
          body: Buffer.from(isDocument ? JSON.stringify(document) : ""),
        };
      },
    };
    const auth = {
      type: "oauth",
      per: "principal",
      scopes: null,
      issuer: null,
      client_id: null,
      client_secret: null,
    };
    const spec = { name: "tools", url: document.resource, headers: {}, auth };
    const open = { request: () => Promise.reject(new Error("the plain egress was used")) };
    const oauth = new UpstreamOAuth(spec as never, open as never, guard as never);
    await expect(oauth.discover()).rejects.toThrow("10.0.0.1");
    expect(asked.at(-1)).toMatch(/^https:\/\/10\.0\.0\.1\//);
    await strict.close();
  });

  it("without PKCE, without registration, or with an endless answer connects nobody", async () => {
    const evil = await stub();
    const { from, page } = await guarded({ authorization_servers: [evil.url] });
    evil.answers.set(METADATA, metadataOf(evil.url, { code_challenge_methods_supported: undefined }));
    evil.answers.set("/register", { client_id: "c", redirect_uris: ["http://127.0.0.1/"] });
    const press = async () => (await signedIn(from, "admin")).submit(pathOf(await linkFor("bot", from)));
    expect((await press()).text).toContain("does not support PKCE");
    evil.answers.set(METADATA, metadataOf(evil.url, { more: "x".repeat(300_000) }));
    expect((await page()).status).toBeGreaterThanOrEqual(400);
    const other = await stub();
    other.answers.set(METADATA, metadataOf(other.url, { registration_endpoint: undefined }));
    const second = await guarded({ authorization_servers: [other.url] });
    const pressed = await (await signedIn(second.from, "admin")).submit(
      pathOf(await linkFor("bot", second.from)),
    );
    expect(pressed.text).toContain("registers no clients automatically");
  });
});

describe("the gateway", () => {
  it("registers once for any number of links, and does not repeat a refused registration at once", async () => {
    verifies("beyond.upstream-oauth.registration");
    issuer.asked.length = 0;
    const mine = await oauthUpstream(issuer.url);
    const from = await consentGateway(mine.url, { keys: KEYS });
    for (let n = 0; n < 20; n++) await linkFor("bot", from);
    expect(issuer.asked).toEqual([]);
    for (let n = 0; n < 5; n++) await pressConnect(await signedIn(from, "admin"), await linkFor("bot", from));
    expect(issuer.asked.filter((path) => path === "/reg")).toHaveLength(1);
    expect(await from.service.core.store.count("upstream_consents")).toBe(1);
    const evil = await stub();
    evil.answers.set(METADATA, metadataOf(evil.url));
    const second = await oauthUpstream(issuer.url);
    second.metadata = { authorization_servers: [evil.url] };
    const refused = await consentGateway(second.url, { keys: KEYS });
    for (let n = 0; n < 3; n++)
      await (await signedIn(refused, "admin")).submit(pathOf(await linkFor("bot", refused)));
    expect(evil.asked.filter((path) => path === "/register")).toHaveLength(1);
  });

  it("gives a configured client's secret to its configured issuer only", async () => {
    verifies("beyond.upstream-oauth.configured-client");
    const evil = await stub();
    evil.answers.set(METADATA, metadataOf(evil.url));
    const mine = await oauthUpstream(issuer.url);
    mine.metadata = { authorization_servers: [evil.url] };
    const auth = { issuer: issuer.url, client_id: "known", client_secret: "the-secret-of-the-client" };
    const from = await consentGateway(mine.url, { keys: KEYS, auth });
    const seen = await (await signedIn(from, "admin")).get(pathOf(await linkFor("bot", from)));
    expect([seen.status, seen.text.includes("does not name the expected issuer")]).toEqual([502, true]);
    expect(evil.bodies.join()).not.toContain("the-secret");
    await expect(consentGateway(mine.url, { auth: { client_id: "known" } })).rejects.toThrow("needs issuer");
  });

  it("describes itself to issuers that accept a document", async () => {
    verifies("beyond.upstream-oauth.client-document");
    const { UpstreamOAuth, issuerMark } = await import("../../src/auth/upstream-oauth.ts");
    const mark = issuerMark(issuer.url);
    const document = await fetch(`${g.url}/oauth/client/${mark}`);
    expect([document.status, await document.json()]).toEqual([
      200,
      {
        client_id: `${g.url}/oauth/client/${mark}`,
        client_name: "Takeback gateway",
        redirect_uris: [`${g.url}/oauth/callback/${mark}`],
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        token_endpoint_auth_method: "none",
      },
    ]);
    expect((await fetch(`${g.url}/oauth/client/x`)).status).toBe(404);
    const [spec] = g.service.settings.upstreams;
    const oauth = new UpstreamOAuth(spec as never, g.service.egress, g.service.strictEgress);
    const found = { metadata: { client_id_metadata_document_supported: true } } as never;
    const url = `https://gov.example.com/oauth/client/${mark}`;
    expect(await oauth.knownClient(found, url)).toMatchObject({ client_id: url });
    expect(await oauth.knownClient(found, url.replace("https", "http"))).toBeNull();
    expect(await oauth.knownClient({ metadata: {} } as never, url)).toBeNull();
  });

  it("keeps tokens, codes and secrets out of records, logs, answers and pages", async () => {
    verifies("beyond.upstream-oauth.no-leak");
    const mine = await oauthUpstream(issuer.url);
    const from = await consentGateway(mine.url, { keys: KEYS });
    const browser = await signedIn(from, "admin");
    const back = await consent(browser, issuer, await linkFor("bot", from), "ann");
    const agent = await from.connect("bot");
    const results = [await call(agent, "whoami"), await call(agent, "write", { text: "x" })];
    mine.refused.add(mine.tokens.at(-1)!);
    results.push(await call(agent, "whoami"));
    const code = new URL(back, from.url).searchParams.get("code")!;
    const api = await fetch(`${from.url}/v1/upstreams`, { headers: { authorization: "Bearer admin" } });
    const shown = [
      ...from.logged,
      ...(await from.service.core.store.records({ limit: 1_000 })),
      JSON.stringify(results),
      await api.text(),
      (await browser.get("/console/upstreams")).text,
      (await browser.get("/console/settings")).text,
      JSON.stringify(await from.service.core.store.list("upstream_consents", { limit: 10 })),
    ].join("\n");
    for (const secret of [code, ...mine.tokens]) expect(shown).not.toContain(secret);
  });

  it("separates tenants", async () => {
    verifies("beyond.upstream-oauth.tenants");
    const mine = await oauthUpstream(issuer.url);
    const from = await consentGateway(mine.url, { keys: KEYS });
    const [ours, theirs] = [await linkFor("acme-bot", from), await linkFor("globex-bot", from)];
    const acme = await signedIn(from, "acme-admin");
    expect((await acme.get(pathOf(theirs))).status).toBe(403);
    await consent(acme, issuer, ours, "ann");
    // Another tenant sees no connection, and none of its tools.
    const globex = await signedIn(from, "globex-admin");
    expect((await globex.get("/console/upstreams")).text).not.toContain("acme-bot");
    expect(await toolNames(await from.connect("acme-bot"))).toEqual(["whoami", "write"]);
    expect(await toolNames(await from.connect("globex-bot"))).toEqual([]);
    const list = async (key: string) => {
      const answer = await fetch(`${from.url}/v1/upstreams`, { headers: { authorization: `Bearer ${key}` } });
      return ((await answer.json()) as AnyResult).connections as { id: string }[];
    };
    const [connection] = await list("acme-admin");
    expect(await list("globex-admin")).toEqual([]);
    const revoke = async (key: string) =>
      (
        await fetch(`${from.url}/v1/upstreams/connections/${connection!.id}`, {
          method: "DELETE",
          headers: { authorization: `Bearer ${key}` },
        })
      ).status;
    expect(await revoke("globex-admin")).toBe(404);
    expect(
      (
        await fetch(`${from.url}/v1/upstreams/rotate`, {
          method: "POST",
          headers: { authorization: "Bearer acme-admin" },
        })
      ).status,
    ).toBe(403);
    expect(await revoke("acme-admin")).toBe(200);
  });

  it("without such upstreams offers no tool, stores nothing and has no callback", async () => {
    verifies("beyond.upstream-oauth.off");
    const plain = await testGateway({ upstreams: [fakeUpstream()], config: { console: "login" } });
    const agent = await plain.connect("agent");
    await call(agent, "echo", { text: "x" });
    const { tools } = await agent.listTools();
    expect(tools.map(({ name }) => name)).not.toContain("svc.connect_upstream");
    expect(await plain.service.core.store.count("upstream_consents")).toBe(0);
    expect((await fetch(`${plain.url}/oauth/callback?state=x&code=y`)).status).toBe(400);
    expect((await fetch(`${plain.url}/oauth/client/${"0".repeat(16)}`)).status).toBe(404);
    const link = await fetch(`${plain.url}/v1/upstreams/fake/link`, {
      method: "POST",
      headers: { authorization: "Bearer agent" },
    });
    expect(link.status).toBe(404);
  });
});
