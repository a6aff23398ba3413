/** Upstreams with each person's own consent: a real issuer, a real tool server that checks tokens, and the console. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { filesPlace, type MakePlace, postgresPlace, sqlitePlace } from "../contract/place.ts";
import { type AuthorizationServer, authorizationServer } from "../support/authorization-server.ts";
import { speak } from "../support/io.ts";
import { verifies } from "../support/verifies.ts";
import { consent, consentGateway, linkIn, pressConnect, signedIn, tokenKey } from "./support/consent.ts";
import { type AnyResult, ask, call, type GatewayTest, toolNames, until } from "./support/gateway.ts";
import { type OAuthUpstream, oauthUpstream } from "./support/oauth-upstream.ts";

let issuer: AuthorizationServer;
let up: OAuthUpstream;
let g: GatewayTest;
beforeAll(async () => {
  issuer = await authorizationServer();
  up = await oauthUpstream(issuer.url);
  g = await consentGateway(up.url, { config: { approvals: { wait: "20s" } } });
});

const KEYS = [
  { name: "bot", role: "agent" },
  { name: "bot2", role: "agent" },
  { name: "acme-bot", role: "agent", tenant: "acme" },
  { name: "acme-admin", role: "admin", tenant: "acme", tenant_only: true },
];
const textOf = (result: AnyResult): string => result.content[0].text;
const whoami = async (key: string, from = g) => call(await from.connect(key), "whoami");
const api = async (from: GatewayTest, key: string, method: string, path: string, body?: object) => {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const answer = await fetch(`${from.url}${path}`, { method, headers, ...sent });
  return { status: answer.status, body: (await answer.json()) as AnyResult };
};
/** Connects a key, by an admin. */
async function connect(from: GatewayTest, key: string, login: string, at = issuer): Promise<void> {
  await consent(await signedIn(from, "admin"), at, linkIn(await whoami(key, from))!, login);
}

describe("an agent without consent", () => {
  it("gets a link, and after the consent its call runs as the person who consented", async () => {
    verifies("beyond.upstream-oauth.link", "beyond.upstream-oauth.discovery");
    const first = await whoami("agent");
    expect([first.isError, textOf(first)]).toEqual([true, expect.stringContaining(linkIn(first)!)]);
    expect(up.tokens).toEqual([]);
    expect(await g.events()).toEqual([]);
    const asked = new URL(await pressConnect(await signedIn(g, "admin"), linkIn(await whoami("agent2"))!));
    expect(Object.fromEntries(asked.searchParams)).toMatchObject({
      response_type: "code",
      code_challenge_method: "S256",
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      state: expect.any(String),
      resource: up.url,
      scope: "tools.read offline_access",
    });
    await consent(await signedIn(g, "admin"), issuer, linkIn(first)!, "ann");
    const agent = await g.connect("agent");
    expect(textOf(await call(agent, "whoami"))).toBe("ann");
    expect(await toolNames(agent)).toEqual(["whoami", "write"]);
    const [record] = (await g.trail()).filter(({ event }) => event === "upstream_connected");
    expect(record).toMatchObject({
      actor: "admin",
      detail: expect.stringContaining("upstream guarded, principal key:agent, scopes tools.read"),
    });
  });

  it("gets a link from its own tool, too", async () => {
    const agent = await g.connect("agent2");
    const { structuredContent } = await call(agent, "svc.connect_upstream", { upstream: "guarded" });
    expect(structuredContent.url).toMatch(`${g.url}/console/upstreams/connect/`);
    expect((await call(agent, "svc.connect_upstream", { upstream: "other" })).isError).toBe(true);
  });

  it("has the page name the upstream, the scopes and the principal", async () => {
    verifies("beyond.upstream-oauth.page");
    const link = linkIn(await whoami("agent2"))!;
    const { status, text, headers } = await (await signedIn(g, "admin")).get(new URL(link).pathname);
    expect(status).toBe(200);
    // No other site can put the button under its own.
    expect(headers["content-security-policy"]).toContain("frame-ancestors 'none'");
    expect(headers["x-frame-options"]).toBe("DENY");
    for (const word of [
      "Connect guarded",
      "agent2",
      "tools.read",
      new URL(issuer.url).host,
      "Agents of others will use this account",
    ])
      expect(text).toContain(word);
  });
});

describe("a client that waits", () => {
  it("of 2026-07-28 is asked to open the link, and its call is made after the consent", async () => {
    verifies("beyond.upstream-oauth.waited");
    const w = await consentGateway(up.url, { keys: KEYS, config: { approvals: { wait: "20s" } } });
    const client = await w.connect("bot", {
      mode: "modern",
      client: { capabilities: { elicitation: { url: {} } }, inputRequired: { autoFulfill: false } },
    });
    const first = await call(client, "whoami", {}, undefined, { allowInputRequired: true });
    expect(first).toMatchObject({
      resultType: "input_required",
      inputRequests: { connect: { method: "elicitation/create", params: { mode: "url" } } },
    });
    const answer = (action: string) =>
      ask(
        client,
        "tools/call",
        { name: "whoami", arguments: {}, inputResponses: { connect: { action } } },
        { allowInputRequired: true },
      );
    const declined = await answer("decline");
    expect([declined.isError, linkIn(declined)]).toEqual([true, first.inputRequests.connect.params.url]);
    // The client accepts on its own. Only the consent counts.
    const accepted = answer("accept");
    await consent(await signedIn(w, "admin"), issuer, first.inputRequests.connect.params.url, "bea");
    expect(textOf(await accepted)).toBe("bea");
  });

  it("of 2025-11-25 is asked while its call is open", async () => {
    const w = await consentGateway(up.url, { keys: KEYS, config: { approvals: { wait: "20s" } } });
    const asked: AnyResult[] = [];
    let consented: Promise<unknown> = Promise.resolve();
    const client = await w.connect("bot", {
      client: { capabilities: { elicitation: { url: {} } } },
      prepare: (one) =>
        one.setRequestHandler("elicitation/create", async ({ params }: AnyResult) => {
          asked.push(params);
          consented = signedIn(w, "admin").then((browser) => consent(browser, issuer, params.url, "cid"));
          return { action: "accept" };
        }),
    });
    expect(textOf(await call(client, "whoami"))).toBe("cid");
    await consented;
    expect(asked).toMatchObject([
      { mode: "url", url: expect.stringContaining("/console/upstreams/connect/") },
    ]);
  });
});

describe("tokens", () => {
  it("belong to one principal, and no caller's token is passed on", async () => {
    verifies("beyond.upstream-oauth.own-token");
    const w = await consentGateway(up.url, { keys: KEYS });
    await connect(w, "bot", "ann");
    up.tokens.length = 0;
    const agents = [await w.connect("bot"), await w.connect("bot2")] as const;
    expect(textOf(await call(agents[0], "whoami"))).toBe("ann");
    expect(linkIn(await call(agents[1], "whoami"))).toBeDefined();
    await connect(w, "bot2", "bob");
    const answers = await Promise.all(
      Array.from({ length: 10 }, async (_, n) => textOf(await call(agents[n % 2]!, "whoami"))),
    );
    expect(answers).toEqual(Array.from({ length: 10 }, (_, n) => (n % 2 === 0 ? "ann" : "bob")));
    expect(up.tokens.every((token) => token.split(".").length === 3)).toBe(true);
    expect(up.tokens).not.toContain("bot");
  });

  it("are refreshed before they expire, once for concurrent calls, and after a refusal", async () => {
    verifies("beyond.upstream-oauth.refresh");
    const short = await authorizationServer({ ttl_s: 30 });
    const mine = await oauthUpstream(short.url);
    const w = await consentGateway(mine.url, { keys: KEYS });
    await connect(w, "bot", "ann", short);
    const agent = await w.connect("bot");
    // Every token is due at once, because it lasts less than the time before its expiry at which it is refreshed.
    const refreshes = () => short.asked.filter((path) => path === "/token").length;
    expect(textOf(await call(agent, "whoami"))).toBe("ann");
    const before = refreshes();
    await Promise.all(Array.from({ length: 8 }, () => call(agent, "whoami")));
    expect(refreshes()).toBeGreaterThan(before);
    mine.refused.add(mine.tokens.at(-1)!);
    expect(textOf(await call(agent, "whoami"))).toBe("ann");
    expect((await w.trail()).filter(({ event }) => event === "upstream_revoked")).toEqual([]);
  });

  it("that the issuer refuses to refresh end the consent, and the next call gets a link", async () => {
    const short = await authorizationServer({ ttl_s: 30 });
    const mine = await oauthUpstream(short.url);
    const w = await consentGateway(mine.url, { keys: KEYS });
    await connect(w, "bot", "ann", short);
    short.revokeAll();
    const agent = await w.connect("bot");
    const results = [await call(agent, "whoami"), await call(agent, "whoami")];
    expect(results.every(({ isError }) => isError)).toBe(true);
    expect(linkIn(results[1])).toBeDefined();
    expect((await w.trail()).filter(({ event }) => event === "upstream_revoked")).toMatchObject([
      { actor: "svc", detail: expect.stringContaining("the issuer ended it") },
    ]);
  });

  it("with too few scopes lead to a link that asks for more", async () => {
    verifies("beyond.upstream-oauth.step-up");
    const w = await consentGateway(up.url, { keys: KEYS });
    await connect(w, "bot", "ann");
    const agent = await w.connect("bot");
    const refused = await call(agent, "write", { text: "x" });
    expect(textOf(refused)).toContain("it needs further access (tools.write)");
    expect(textOf(await call(agent, "whoami"))).toBe("ann");
    const link = linkIn(await call(agent, "write", { text: "x" }))!;
    const asked = await pressConnect(await signedIn(w, "admin"), link);
    expect(new URL(asked).searchParams.get("scope")!.split(" ").sort()).toEqual([
      "offline_access",
      "tools.read",
      "tools.write",
    ]);
    const again = linkIn(await call(agent, "write", { text: "x" }))!;
    await consent(await signedIn(w, "admin"), issuer, again, "ann");
    expect(textOf(await call(agent, "write", { text: "x" }))).toBe("ann wrote x");
  });

  it("of the service come from an admin's consent, and serve everybody", async () => {
    verifies("beyond.upstream-oauth.service");
    const w = await consentGateway(up.url, { keys: KEYS, auth: { per: "service" } });
    expect(await toolNames(await w.connect("bot"))).toEqual([]);
    for (const key of ["bot", "operator", "acme-admin"])
      expect((await api(w, key, "POST", "/v1/upstreams/guarded/link")).status).toBe(403);
    const { body } = await api(w, "admin", "POST", "/v1/upstreams/guarded/link");
    const tenants = await signedIn(w, "acme-admin");
    expect((await tenants.get(new URL(body.url).pathname)).status).toBe(403);
    await consent(await signedIn(w, "admin"), issuer, body.url, "robot");
    await until(async () => (await toolNames(await w.connect("bot"))).includes("whoami"), "the tools");
    expect(textOf(await whoami("bot", w))).toBe("robot");
    expect(textOf(await whoami("bot2", w))).toBe("robot");
  });
});

describe("a consent ends", () => {
  it.each(["delete", "disable"])("when an admin does %s the key", async (how) => {
    verifies("beyond.upstream-oauth.key-ended");
    const w = await consentGateway(up.url, { keys: KEYS });
    await connect(w, "bot", "ann");
    const held = up.tokens.at(-1);
    issuer.asked.length = 0;
    const { body } = await api(w, "admin", "GET", "/v1/keys");
    const { index } = body.keys.find(({ name }: { name: string }) => name === "bot");
    const { status } =
      how === "delete"
        ? await api(w, "admin", "DELETE", `/v1/keys/${index}`)
        : await api(w, "admin", "PATCH", `/v1/keys/${index}`, { disabled: true });
    expect(status).toBe(200);
    expect(issuer.asked).toContain("/token/revocation");
    const ended = (await w.trail()).filter(({ event }) => event === "upstream_revoked");
    expect(ended).toMatchObject([{ actor: "admin", detail: expect.stringContaining("principal key:bot") }]);
    expect(await w.service.core.store.count("upstream_consents")).toBe(0);
    expect(held).toBeDefined();
  });

  it("and a new key of the same name does not inherit it", async () => {
    const w = await consentGateway(up.url, { keys: KEYS });
    await connect(w, "bot", "ann");
    // The file is edited by hand, past the API.
    const file = join(w.folder, "keys.json");
    const entries = JSON.parse(readFileSync(file, "utf8"));
    for (const entry of entries)
      if (entry.name === "bot") entry.key_sha256 = entries[0].key_sha256.replace(/^../, "00");
    writeFileSync(file, JSON.stringify(entries));
    await w.service.reload();
    const { body } = await api(w, "admin", "GET", "/v1/keys");
    expect(body.keys.some(({ name }: { name: string }) => name === "bot")).toBe(true);
    const principal = { id: "key:bot" };
    const { missingConsent } = await import("../../src/operations/upstreams/upstream-access.ts");
    const [spec] = w.service.settings.upstreams;
    expect(await missingConsent(w.service, spec!, principal.id, null)).toEqual({ scopes: [] });
  });

  it("by the command, the API and the console, which list who is connected", async () => {
    verifies("beyond.upstream-oauth.list");
    const w = await consentGateway(up.url, { keys: KEYS });
    const env = { SVC_SERVER: w.url, SVC_TOKEN: "admin" };
    expect((await speak(["upstreams", "list"], { env, cwd: w.folder })).err).toContain("nobody is connected");
    const link = (
      await speak(["upstreams", "connect", "guarded"], { env: { ...env, SVC_TOKEN: "bot" }, cwd: w.folder })
    ).out.trim();
    await consent(await signedIn(w, "admin"), issuer, link, "ann");
    await connect(w, "bot2", "bob");
    const listed = await speak(["upstreams", "list"], { env, cwd: w.folder });
    expect(listed.out).toMatch(/ups_[0-9a-f]{32} +guarded +bot +- +tools\.read /);
    const own = await api(w, "bot", "GET", "/v1/upstreams");
    expect(own.body.connections.map(({ name }: { name: string }) => name)).toEqual(["bot"]);
    const { id } = own.body.connections[0];
    expect((await api(w, "bot2", "DELETE", `/v1/upstreams/connections/${id}`)).status).toBe(404);
    expect((await api(w, "operator", "DELETE", `/v1/upstreams/connections/${id}`)).status).toBe(404);
    const revoked = await speak(["upstreams", "revoke", id], { env, cwd: w.folder });
    expect([revoked.code, revoked.out]).toEqual([0, "disconnected bot from guarded\n"]);
    expect(linkIn(await whoami("bot", w))).toBeDefined();
    const browser = await signedIn(w, "admin");
    const page = (await browser.get("/console/upstreams")).text;
    expect(page).toContain("bot2");
    const action = /action="(\/console\/upstreams\/ups_[0-9a-f]+\/revoke)"/.exec(page)![1]!;
    expect((await browser.submit(action)).status).toBe(400);
    expect((await browser.submit(action, { confirm: "yes" })).status).toBe(303);
    expect((await browser.get("/console/upstreams")).text).toContain("Nobody is connected");
    expect(linkIn(await whoami("bot2", w))).toBeDefined();
  });
});

describe("at rest", () => {
  it("tokens are encrypted, bound to their place, and readable only with the key", async () => {
    verifies("beyond.upstream-oauth.at-rest");
    const w = await consentGateway(up.url, { keys: KEYS });
    await connect(w, "bot", "ann");
    await whoami("bot", w);
    await connect(w, "bot2", "bob");
    const rows = await w.service.core.store.list("upstream_consents", { limit: 10 });
    const stored = JSON.stringify([rows, await w.service.core.store.get("meta", "upstream_clients")]);
    for (const secret of up.tokens) expect(stored).not.toContain(secret);
    expect(stored).not.toMatch(/refresh_token|client_secret/);
    // Somebody who can write to the store moves ann's tokens to another agent.
    const [ann, bob] = ["bot", "bot2"].map((name) => rows.find(({ doc }) => doc.name === name)!);
    await w.service.core.store.transact({
      run: (tx) => tx.put("upstream_consents", bob!.key, { ...bob!.doc, tokens: ann!.doc.tokens }),
    });
    const stolen = await whoami("bot2", w);
    expect([stolen.isError, textOf(stolen)]).toEqual([true, expect.not.stringContaining("ann")]);
  });

  it("everything is encrypted again after a change of the key", async () => {
    verifies("beyond.upstream-oauth.rotate", "beyond.upstream-oauth.stores");
    const [old, next] = [tokenKey(), tokenKey()];
    const w = await consentGateway(up.url, { keys: KEYS, config: { token_key: old } });
    await connect(w, "bot", "ann");
    const { store } = w.service.core;
    const onKeys = (keys: Record<string, unknown>) =>
      consentGateway(up.url, { keys: KEYS, store: store as never, config: keys });
    const both = await onKeys({ token_key: next, token_key_previous: old });
    expect(textOf(await whoami("bot", both))).toBe("ann");
    const env = { SVC_SERVER: both.url, SVC_TOKEN: "admin" };
    expect((await speak(["upstreams", "rotate"], { env, cwd: both.folder })).out).toContain(
      "encrypted 2 stored",
    );
    expect((await speak(["upstreams", "rotate"], { env, cwd: both.folder })).out).toContain(
      "encrypted 0 stored",
    );
    expect(textOf(await whoami("bot", await onKeys({ token_key: next })))).toBe("ann");
    const lost = await whoami("bot", await onKeys({ token_key: old }));
    expect([lost.isError, textOf(lost)]).toEqual([true, expect.stringContaining("another token_key")]);
  });

  it.each([
    ["files", filesPlace],
    ["sqlite", sqlitePlace],
    ["postgres", postgresPlace],
  ] as [string, MakePlace][])("a connection on the %s store survives a restart", async (_kind, make) => {
    const place = await make();
    const config = { token_key: tokenKey() };
    const first = await consentGateway(up.url, { keys: KEYS, store: (await place.open()) as never, config });
    await connect(first, "bot", "ann");
    expect(textOf(await whoami("bot", first))).toBe("ann");
    await first.running.stop();
    const second = await consentGateway(up.url, { keys: KEYS, store: (await place.open()) as never, config });
    expect(textOf(await whoami("bot", second))).toBe("ann");
    await second.running.stop();
    await place.dispose();
  });

  it("a missing, short or unreadable key is a load error", async () => {
    verifies("beyond.upstream-oauth.key-required");
    const bad = join(g.folder, "short");
    writeFileSync(bad, "not 32 bytes");
    const zero = join(g.folder, "zero");
    writeFileSync(zero, Buffer.alloc(32));
    for (const [token_key, says] of [
      [null, "needs token_key (SVC_TOKEN_KEY)"],
      [bad, "must hold exactly 32 random bytes"],
      [zero, "must hold exactly 32 random bytes"],
      [join(g.folder, "absent"), "cannot be read (ENOENT)"],
    ] as const)
      await expect(
        consentGateway(up.url, { config: { token_key } as Record<string, unknown> }),
      ).rejects.toThrow(says);
    await expect(consentGateway(up.url, { config: { console: "open" } })).rejects.toThrow(
      "set `console: login`",
    );
  });
});
