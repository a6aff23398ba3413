/** Signing in at a real OpenID Connect issuer, in a real browser and by hand; and everything that must not get in. */
import { OAuth2Server } from "oauth2-mock-server";
import type { Locator } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { describeSettings } from "../../src/config/describe.ts";
import { freePort } from "../support/ports.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";
import { Browsing, inaccessible, scrollsSideways } from "./support/browsing.ts";
import { standInChat } from "./support/chat.ts";
import { Client, type Seen } from "./support/client.ts";
import { type ConsoleServer, consoleServer, shiftedEnv } from "./support/server.ts";

const issuer = new OAuth2Server();
const env = shiftedEnv();
const running: ConsoleServer[] = [];
/** What the issuer puts into its tokens, and what it was asked to redeem. */
let claims: Record<string, unknown> = {};
const redeemed: { authorization: string | undefined; body: Record<string, string> }[] = [];
const tokens: string[] = [];
let server: ConsoleServer;

async function started(config: string, port?: number): Promise<ConsoleServer> {
  const one = await consoleServer({ env, config, ...(port === undefined ? {} : { port }) });
  running.push(one);
  return one;
}
const oidc = (more: string) =>
  `oidc: {issuer: "${issuer.issuer.url}", role_map: {ops: operator, bots: agent}, ${more}}\n`;

beforeAll(async () => {
  await issuer.issuer.keys.generate("ES256");
  await issuer.start(0, "127.0.0.1");
  issuer.service.on("beforeTokenSigning", (token) => Object.assign(token.payload, claims));
  issuer.service.on("beforeResponse", (response, request) => {
    const { headers, body } = request as unknown as {
      headers: { authorization?: string };
      body: Record<string, string>;
    };
    redeemed.push({ authorization: headers.authorization, body });
    tokens.push(...Object.values(response.body as object).filter((text) => String(text).length > 30));
  });
  server = await started(`console: login\n${oidc("client_id: web")}`);
});
beforeEach(() => {
  claims = { groups: ["ops"] };
});
afterAll(async () => {
  await Promise.all(running.map((one) => one.close()));
  await issuer.stop();
});

/** As a browser goes to the issuer: what the console asked it for, and where the issuer sends the browser back. */
async function atIssuer(client: Client, next = "/console/runs") {
  const away = await client.get(`/console/login/issuer?next=${encodeURIComponent(next)}`);
  expect(away.status).toBe(303);
  return { asked: new URL(away.to!), back: await backFrom(away.to!) };
}

async function backFrom(address: string): Promise<string> {
  const response = await fetch(address, { redirect: "manual" });
  const { pathname, search } = new URL(response.headers.get("location")!);
  return pathname + search;
}

async function refusedWith(seen: Seen, status: number, words: string, client: Client): Promise<void> {
  expect([seen.status, seen.text.includes(words)], seen.text).toEqual([status, true]);
  expect(seen.text).toContain('href="/console/login"');
  expect((await client.get("/console")).to).toContain("/console/login");
}

/** The request that the chat service sends for a tap that only opened a URL. */
const OPENED = { action: "svc_open", status: 200, text: '{"text":""}' };
const NOT_BEGUN = "not started in this browser";

describe("in a browser", () => {
  it(`leads a phone from a chat message to a decision in three taps, and in two the next time ${verifies("beyond.chat.walk", "beyond.chat.card-first")}`, async () => {
    const port = await freePort();
    const origin = `http://127.0.0.1:${port}`;
    const signing_secret = "s3cret-of-the-app";
    const chat = await standInChat({
      actions: `${origin}/integrations/chat/actions`,
      signing_secret,
      user: "U1",
    });
    const channel = `{name: approvals, type: slack, url: "${chat.url}/hook", events: [approval_requested]}`;
    const config = [
      "console: login",
      `console_url: ${origin}`,
      `chat: {signing_secret: ${signing_secret}, users: {U1: approver}}`,
      `notifications: {channels: [${channel}]}`,
      oidc("client_id: web"),
    ];
    const desk = await started(config.join("\n"), port);
    await desk.api("agent", "POST", "/v1/runs", { run_id: "desk", permissions: ["pay.refund"] });
    const browsing = await Browsing.at(desk.url);
    const { page } = await browsing.as(null, { phone: true });
    /** The agent asks, the message comes, and the person goes from it to the end by nothing but taps. */
    async function walk(amount: number): Promise<{ taps: number; said: string }> {
      const ask = { tool: "pay.refund", args: { amount }, reason: "it arrived broken" };
      await desk.api("agent", "POST", "/v1/runs/desk/intents", ask);
      await until(() => chat.messages.length > 0, "the message");
      const message = chat.messages.at(-1)!;
      expect(JSON.stringify(message)).not.toContain(String(amount));
      await page.goto(chat.url);
      let taps = 0;
      const tap = async (what: Locator) => {
        await what.tap();
        taps++;
      };
      await tap(page.locator("article").last().getByRole("link").first());
      const signIn = page.getByRole("link", { name: "Sign in with" });
      const approve = page.getByRole("button", { name: "Approve", exact: true });
      await signIn.or(approve).waitFor();
      if (await signIn.isVisible()) await tap(signIn);
      await approve.waitFor();
      expect(await page.locator("article .fields").innerText()).toContain(String(amount));
      expect(await scrollsSideways(page)).toBe(false);
      await tap(approve);
      chat.messages.pop();
      return { taps, said: await page.locator("main .notice").first().innerText() };
    }
    const said = "Approved: pay.refund for agent";
    expect(await walk(771)).toEqual({ taps: 3, said: expect.stringContaining(said) });
    // The strict cookie stays behind on the way from another site, and is there all the same.
    expect(await walk(772)).toEqual({ taps: 2, said: expect.stringContaining(said) });
    expect(chat.answers).toEqual([OPENED, OPENED]);
    await browsing.close();
    await chat.close();
  });

  it(`signs in without a token to paste, and comes to the page that was wanted ${verifies("beyond.sign-in.offered", "beyond.sign-in.code", "beyond.sign-in.quiet")}`, async () => {
    const browsing = await Browsing.at(server.url);
    const { page, context, open } = await browsing.as(null, { width: 360 });
    await open("/runs?attention=1");
    const link = page.getByRole("link", { name: `Sign in with ${issuer.issuer.url}` });
    await link.waitFor();
    expect(await inaccessible(page)).toEqual([]);
    expect(await scrollsSideways(page)).toBe(false);
    await link.click();
    await page.waitForURL(`${server.url}/console/runs?attention=1`);
    expect(await page.locator(".who-name").textContent()).toBe("johndoe");
    expect(await page.evaluate("document.referrer")).not.toContain("code=");
    const [session, ...others] = await context.cookies();
    expect(others).toEqual([]);
    expect(session).toMatchObject({ sameSite: "Strict", httpOnly: true, path: "/console" });
    await page.goBack();
    expect(page.url()).not.toContain("code=");
    await browsing.close();
    const { code } = redeemed.at(-1)!.body;
    expect(tokens.length).toBeGreaterThan(1);
    for (const secret of [code!, ...tokens]) expect(server.logged.join("\n")).not.toContain(secret);
  });
});

describe("a sign-in", () => {
  it(`asks with PKCE, state and nonce, and ends with its id token ${verifies("beyond.sign-in.code", "beyond.sign-in.redirect")}`, async () => {
    const client = new Client(server.url);
    const { asked, back } = await atIssuer(client);
    expect(Object.fromEntries(asked.searchParams)).toEqual({
      response_type: "code",
      client_id: "web",
      redirect_uri: `${server.url}/console/login/callback`,
      scope: "openid",
      state: expect.stringMatching(/^[0-9a-f]{64}$/),
      nonce: expect.stringMatching(/^[0-9a-f]{64}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: "S256",
    });
    const arrived = await client.get(back);
    expect([arrived.status, arrived.text.includes('href="/console/runs"')]).toEqual([200, true]);
    expect(arrived.set_cookies.join()).toMatch(/SameSite=Strict/);
    expect((await client.get("/console")).text).toContain("johndoe");
    // The id token of the console's client isn't a credential of the API: no audience is configured for it here.
    const id_token = tokens.at(-2)!;
    expect(id_token.split(".").length).toBe(3);
    expect((await server.api(id_token, "GET", "/v1/runs")).status).toBe(401);
    env.forward(3_601_000);
    expect((await client.get("/console")).to).toContain("/console/login");
    env.forward(-3_601_000);
  });

  it(`counts once, for ten minutes, in the browser that asked ${verifies("beyond.sign-in.bound")}`, async () => {
    const client = new Client(server.url);
    const { asked, back } = await atIssuer(client);
    const kept = new Map(client.cookies);
    const stranger = new Client(server.url);
    await refusedWith(await stranger.get(back), 400, NOT_BEGUN, stranger);
    await atIssuer(stranger);
    await refusedWith(await stranger.get(back), 400, NOT_BEGUN, stranger);
    const forged = back.replace(/state=\w{4}/, "state=0000");
    for (const wrong of [forged, back.replace(/&state=\w+/, ""), `${back}&state=x`])
      await refusedWith(await client.get(wrong), 400, NOT_BEGUN, client);
    env.forward(601_000);
    await refusedWith(await client.get(back), 400, NOT_BEGUN, client);
    env.forward(-601_000);
    expect((await client.get(back)).status).toBe(200);

    // The same answer again, then another code for the same state, from a browser that kept its cookie.
    const again = new Client(server.url);
    const replay = async (path: string) => {
      again.cookies.clear();
      for (const [name, value] of kept) again.cookies.set(name, value);
      return again.get(path);
    };
    await refusedWith(await replay(back), 401, "did not redeem the sign-in", again);
    const other = await backFrom(asked.href);
    await refusedWith(await replay(other), 409, "already used", again);
  });

  it(`is refused with another nonce, client, signer or role ${verifies("beyond.sign-in.nonce")}`, async () => {
    for (const [wrong, status, words] of [
      [{ nonce: "another" }, 401, "does not prove who you are"],
      [{ nonce: undefined }, 401, "does not prove who you are"],
      [{ aud: "another" }, 401, "does not prove who you are"],
      [{ azp: "another" }, 401, "does not prove who you are"],
      [{ exp: 1 }, 401, "does not prove who you are"],
      [{ groups: ["strangers"] }, 403, "No role is mapped"],
      [{ groups: ["bots"] }, 403, "Agent keys cannot use the console"],
    ] as const) {
      claims = { groups: ["ops"], ...wrong };
      const client = new Client(server.url);
      const { back } = await atIssuer(client);
      const seen = await client.get(back);
      expect([wrong, seen.status]).toEqual([wrong, status]);
      await refusedWith(seen, status, words, client);
    }
    const client = new Client(server.url);
    const { back } = await atIssuer(client);
    const said = back.replace(/code=[\w-]+/, "error=access_denied");
    await refusedWith(await client.get(said), 403, "did not sign you in (access_denied)", client);
  });

  it(`leads to no other host, under any name ${verifies("beyond.sign-in.redirect")}`, async () => {
    for (const next of ["https://evil.example", "//evil.example", "/console/../v1", "/\\evil.example"]) {
      const client = new Client(server.url);
      const { back } = await atIssuer(client, next);
      expect((await client.get(back)).text).toContain('href="/console"');
    }
    const client = new Client(server.url);
    const seen = await client.get("/console/login/issuer", { host: "evil.example" });
    expect([seen.status, seen.to]).toEqual([400, undefined]);
    expect(seen.text).toContain("console_url");
  });

  it(`shows a client secret to the issuer alone, which sends people back to console_url ${verifies("beyond.sign-in.secret", "beyond.sign-in.redirect")}`, async () => {
    const own = await started(
      `console: login\nconsole_url: https://svc.example.com\n${oidc('client_id: "we:b", client_secret: "s3 cret:"')}`,
    );
    const client = new Client(own.url);
    const { asked, back } = await atIssuer(client);
    expect(asked.searchParams.get("redirect_uri")).toBe("https://svc.example.com/console/login/callback");
    claims = { groups: ["ops"], aud: "we:b" };
    expect((await client.get(back)).status).toBe(200);
    const { authorization, body } = redeemed.at(-1)!;
    expect(Buffer.from(authorization!.split(" ")[1]!, "base64").toString()).toBe("we%3Ab:s3+cret%3A");
    expect(Object.keys(body).sort()).toEqual(["code", "code_verifier", "grant_type", "redirect_uri"]);
    expect(JSON.stringify(describeSettings(own.app.settings))).not.toContain("s3 cret");
  });

  it(`is there only where it was asked for ${verifies("beyond.sign-in.offered")}`, async () => {
    const login = new Client((await started(`console: login\n${oidc("audience: svc")}`)).url);
    expect((await login.get("/console/login")).text).not.toContain("Sign in with");
    expect((await login.get("/console/login/issuer")).to).toContain("/console/login?next=");
    const open = new Client((await started(`console: open\n${oidc("client_id: web")}`)).url);
    const off = new Client((await started(oidc("client_id: web"))).url);
    const { back } = await atIssuer(new Client(server.url));
    for (const client of [open, off])
      for (const path of ["/console/login/issuer", back])
        expect([path, (await client.get(path)).status]).toEqual([path, 404]);
  });
});
