/** `svc doctor` and sign-in at upstreams: issuers are discovered, and the key of the stored tokens is checked. */
import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { DoctorFinding } from "../../src/cli/doctor/finding.ts";
import { loadSettings } from "../../src/config/load.ts";
import { offerLinkUnit } from "../../src/govern/upstreams/consent.ts";
import { systemEnv } from "../../src/kernel/env.ts";
import { openApp } from "../../src/service/open-app.ts";
import { oauthUpstream } from "../gateway/support/oauth-upstream.ts";
import { startReceiver } from "../golden/notify/support/receivers.ts";
import { authorizationServer } from "../support/authorization-server.ts";
import { speak } from "../support/io.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

let folder = "";
beforeEach(() => {
  folder = tempDir("doctor-upstreams");
});

function key(name = "token.key"): string {
  const path = join(folder, name);
  writeFileSync(path, randomBytes(32), { mode: 0o600 });
  return path;
}

async function doctor(config: Record<string, unknown>) {
  const file = { console: "login", console_url: "https://gov.example.com", ...config };
  writeFileSync(join(folder, "svc.config.yaml"), JSON.stringify(file));
  const { code, out } = await speak(["doctor", "--json"], { cwd: folder });
  const { checks } = JSON.parse(out) as { checks: DoctorFinding[] };
  const of = (check: string) =>
    checks.filter((one) => one.check === check).map(({ status, message }) => `${status}: ${message}`);
  return { code, of };
}

const guarded = (url: string, auth: object = {}) => ({
  upstreams: [{ name: "guarded", url, auth: { type: "oauth", ...auth } }],
});

describe("sign-in at an upstream", () => {
  it("is discovered, and the finding says how the gateway is a client there", async () => {
    verifies("beyond.upstream-oauth.doctor");
    const issuer = await authorizationServer();
    const up = await oauthUpstream(issuer.url);
    const { host } = new URL(issuer.url);
    const token_key = key();
    const own = await doctor({ ...guarded(up.url), token_key });
    expect(own.of("upstreams")).toEqual([
      `ok: guarded: people sign in at ${host}; the client is registered at the first sign-in`,
    ]);
    expect(own.of("token_key")).toEqual([`ok: ${token_key} holds a key`]);
    expect(issuer.asked).not.toContain("/reg");
    const configured = await doctor({
      ...guarded(up.url, { issuer: issuer.url, client_id: "gateway" }),
      token_key,
    });
    expect(configured.of("upstreams")).toEqual([
      `ok: guarded: people sign in at ${host}; the client is configured, with the redirect URI https://gov.example.com/oauth/callback`,
    ]);
    const exchange = {
      oidc: { issuer: issuer.url, audience: "svc", role_map: { bots: "agent" } },
      upstreams: [{ name: "crm", url: up.url, auth: { type: "exchange", client_id: "gateway" } }],
    };
    const refused = await doctor(exchange);
    expect([refused.code, refused.of("upstreams")]).toEqual([
      1,
      [`fail: crm: the issuer ${host} does not exchange tokens`],
    ]);
  });

  it.each([
    [{ code_challenge_methods_supported: [] }, "does not support PKCE"],
    [{ registration_endpoint: undefined }, "with the redirect URI https://gov.example.com/oauth/callback"],
    [{ issuer: "http://127.0.0.1:1" }, "the issuer is not the expected one"],
    [{ token_endpoint: "http://169.254.169.254/token" }, "169.254.169.254 is not served over https"],
  ])("fails for an issuer with %j", async (wrong, says) => {
    const receiver = await startReceiver((request, response) => {
      const issuer = receiver.url("").replace(/\/$/, "");
      if (request.path !== "/.well-known/oauth-authorization-server")
        return void response.writeHead(404).end();
      const metadata = {
        issuer,
        authorization_endpoint: `${issuer}/auth`,
        token_endpoint: `${issuer}/token`,
        registration_endpoint: `${issuer}/register`,
        response_types_supported: ["code"],
        code_challenge_methods_supported: ["S256"],
        ...wrong,
      };
      response.end(JSON.stringify(metadata));
    });
    onTestFinished(() => receiver.close());
    const { code, of } = await doctor({ ...guarded(receiver.url("/mcp")), token_key: key() });
    expect([code, of("upstreams")]).toEqual([1, [expect.stringContaining(says)]]);
  });

  it("sends nothing where the egress rules refuse it", async () => {
    const receiver = await startReceiver((_request, response) => response.end());
    onTestFinished(() => receiver.close());
    const egress = { allow: ["id.example.com"] };
    const { code, of } = await doctor({ ...guarded(receiver.url("/mcp")), token_key: key(), egress });
    expect([code, of("upstreams")]).toEqual([1, [expect.stringContaining('egress rule "allow"')]]);
    expect(receiver.connections()).toBe(0);
  });
});

describe("token_key", () => {
  it("must be a key, private, and outside the data directory", async () => {
    writeFileSync(join(folder, "short.key"), "short");
    const short = await doctor({ token_key: "short.key" });
    expect([short.code, short.of("token_key")]).toEqual([
      1,
      [expect.stringContaining("must hold exactly 32 random bytes")],
    ]);
    mkdirSync(join(folder, "data"));
    const path = key("data/token.key");
    chmodSync(path, 0o644);
    const { code, of } = await doctor({ token_key: path });
    expect([code, of("token_key")]).toEqual([
      0,
      [
        `ok: ${path} holds a key`,
        `warn: ${path} can be read or changed by other accounts`,
        `warn: ${path} is in the data directory, so every backup holds the tokens with their key`,
      ],
    ]);
  });

  it("must decrypt the stored tokens, and the previous one is named when nothing needs it", async () => {
    const [token_key, old, lost] = [key(), key("old.key"), key("lost.key")];
    const store = async (path: string) => {
      const app = await openApp(
        loadSettings({ flags: { data: "data" }, env: { SVC_TOKEN_KEY: path }, cwd: folder }),
        systemEnv,
      );
      const { id } = await app.core.store.transact(
        offerLinkUnit(app.core, { upstream: "guarded", principal: null }, []),
      );
      const place = id.slice("ups_".length);
      await app.core.store.transact({
        needs: [["upstream_consents", place]],
        run(tx) {
          const doc = tx.get("upstream_consents", place)!;
          const ended = [{ sealed: app.vault!.seal("tokens", `tokens ${place}`), tries: 0 }];
          tx.put("upstream_consents", place, { ...doc, ended });
        },
      });
      await app.close();
    };
    const at = { token_key, data: "data" };
    await store(old);
    const other = await doctor({ ...at, token_key_previous: lost });
    expect([other.code, other.of("token_key").slice(-2)]).toEqual([
      1,
      expect.arrayContaining(["fail: 1 stored text is encrypted with another key"]),
    ]);
    const rotating = await doctor({ ...at, token_key_previous: old });
    expect([rotating.code, rotating.of("token_key")[0]]).toEqual([
      0,
      "warn: 1 stored text needs token_key_previous",
    ]);
    await store(token_key);
    const done = await doctor({ ...at, token_key_previous: old });
    expect(done.of("token_key")[0]).toBe("warn: nothing is encrypted with token_key_previous");
    expect((await doctor(at)).of("token_key")).toEqual([`ok: ${token_key} holds a key`]);
  });
});
