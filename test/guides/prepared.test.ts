/** Guides whose commands need more than the support desk: servers, identity providers, passkeys. */
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { describe, expect, it } from "vitest";
import { testGateway } from "../gateway/support/gateway.ts";
import { svc } from "../support/cli.ts";
import { ROOT } from "../support/files.ts";
import { freePort } from "../support/ports.ts";
import { program } from "../support/programs.ts";
import { selfSigned, upstream } from "../support/proxy.ts";
import { pushService } from "../support/push-service.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { SIGN_AT, signingServer } from "../support/signing.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { runGuide } from "./guide-shell.ts";

await program("curl");
await program("openssl");

/** The variables for a reader's commands that use this key at the server. */
async function served(s: TestServer, key: string) {
  const url = await s.http.listen({ host: "127.0.0.1", port: 0 });
  return { URL: url, KEY: key, SVC_SERVER: url, SVC_TOKEN: key };
}

const page = (name: string) => `docs/guides/${name}.md`;

describe("the guides, with what they need,", () => {
  it("drills runs as shown, on a server of notes whose undo lies", async () => {
    verifies("beyond.docs.guides-run");
    const place = tempDir("guide");
    const notes = `${process.execPath} ${join(ROOT, "test/gateway/support/notes-upstream.mjs")}`;
    const env = { LIARS: "unarchive_note" };
    const drafted = ["init", "--from", notes, "--name", "notes", "--env", "LIARS=unarchive_note"];
    expect(await svc(drafted, { cwd: place, env })).toMatchObject({ code: 0 });
    expect(await runGuide(page("drills"), place, env)).toBe(1);
  });

  it("authzen runs as shown", async () => {
    verifies("beyond.docs.guides-run");
    const s = await testServer({
      manifests: "- {tool: payments.refund, effect: irreversible, permission: payments}\n",
      policy: `version: 1
rules:
  - {id: big, match: {tool: payments.refund}, when: [{path: $args.amount, op: gt, value: 500}], action: require_approval, reason: refunds over 500 need approval}
`,
      config: "gateway_url: https://svc.example.com\n",
      keys: [{ name: "billing-bot", role: "agent" }],
    });
    await s.call("billing-bot", "POST", "/v1/runs", { run_id: "ticket-4826", permissions: ["payments"] });
    expect(await runGuide(page("authzen"), tempDir("guide"), await served(s, "billing-bot"))).toBe(5);
  });

  it("gateway-oauth runs as shown", async () => {
    verifies("beyond.docs.guides-run");
    const g = await testGateway({
      config: {
        gateway_url: "https://gateway.example.com",
        oidc: { issuer: "https://id.example.com", audience: "svc", role_map: { agents: "agent" } },
      },
    });
    const values = {
      "$ curl -si -X POST https://gateway.example.com": `$ curl -si -X POST ${g.url}`,
      "$ curl -s https://gateway.example.com": `$ curl -s ${g.url}`,
    };
    expect(await runGuide(page("gateway-oauth"), tempDir("guide"), {}, values)).toBe(2);
  });

  it("security-events runs as shown, after the provider revoked ann's session", async () => {
    verifies("beyond.docs.guides-run");
    const issuer = "https://id.example.com";
    const { privateKey, publicKey } = await generateKeyPair("ES256");
    const jwk = { ...(await exportJWK(publicKey)), kid: "k1", alg: "ES256" };
    const { port } = await upstream((_, response) => response.end(JSON.stringify({ keys: [jwk] })));
    const s = await testServer({
      config: `caep: {issuer: "${issuer}", audience: svc, jwks_url: "http://127.0.0.1:${port}/jwks"}\n`,
      keys: [{ name: "ann", role: "agent" }],
    });
    const event = await new SignJWT({
      ...{ iss: issuer, aud: "svc", jti: "e1", iat: Math.floor(s.env.now() / 1_000) },
      sub_id: { format: "iss_sub", iss: issuer, sub: "ann" },
      events: {
        "https://schemas.openid.net/secevent/caep/event-type/session-revoked": { event_timestamp: 1 },
      },
    })
      .setProtectedHeader({ alg: "ES256", kid: "k1", typ: "secevent+jwt" })
      .sign(privateKey);
    const headers = { "content-type": "application/secevent+jwt" };
    const pushed = await s.http.inject({ method: "POST", url: "/caep/events", headers, payload: event });
    expect(pushed.statusCode).toBe(202);
    expect(await runGuide(page("security-events"), tempDir("guide"), await served(s, "admin"))).toBe(2);
  });

  it("signed-approvals runs as shown, for a person with a passkey", async () => {
    verifies("beyond.docs.guides-run");
    const s = await signingServer();
    await s.enrol("ann");
    const { id } = await s.ask();
    const place = tempDir("guide");
    const values = { "apr_5e084583…": id };
    expect(await runGuide(page("signed-approvals"), place, await served(s, "ann"), values)).toBe(3);
    expect(JSON.parse(readFileSync(join(place, "card.json"), "utf8"))).toMatchObject({ approval_id: id });
  });

  it("approvers-file runs as shown, with ann's passkey", async () => {
    verifies("beyond.docs.guides-run");
    const s = await signingServer();
    const { code } = await s.enrol("ann");
    const [passkey] = (await s.call("admin", "GET", "/v1/passkeys")).body.passkeys;
    const settings = await served(s, "admin");
    const values = {
      [`--server ${SIGN_AT}`]: `--server ${settings.URL}`,
      "1f0c9a3b": code,
      "kOm2…": passkey.credential_id,
      "MFkw…": passkey.public_key,
    };
    const { SVC_SERVER: _, ...env } = settings;
    const [place, elsewhere] = [tempDir("guide"), tempDir("etc")];
    const before = async (command: string) => {
      if (command.includes("svc connect"))
        cpSync(join(place, "approvers.json"), join(elsewhere, "approvers.json"));
      return {};
    };
    const moved = { ...values, "/etc/svc": elsewhere };
    expect(
      await runGuide(page("approvers-file"), place, { ...env, HOME: tempDir("home") }, moved, before),
    ).toBe(5);
  });

  it("approve-in-bulk runs as shown, with a group of 12 requests", async () => {
    verifies("beyond.docs.guides-run");
    const s = await signingServer();
    let id = "";
    for (let i = 0; i < 12; i++) ({ id } = await s.ask("pay.plain", { amount: 10 }));
    expect(await runGuide(page("approve-in-bulk"), tempDir("guide"), await served(s, "ann"))).toBe(2);
    expect((await s.call("ann", "GET", `/v1/approvals/${id}`)).body).toMatchObject({ status: "denied" });
  });

  it("plans runs as shown, with a plan that waits", async () => {
    verifies("beyond.docs.guides-run");
    const s = await signingServer();
    await s.call("agent", "POST", "/v1/runs", { run_id: "planned", permissions: ["pay"] });
    const calls = [{ tool: "pay.plain", args: { amount: 10 } }];
    const { id } = (await s.call("agent", "POST", "/v1/runs/planned/plans", { reason: "refunds", calls }))
      .body;
    expect(await runGuide(page("plans"), tempDir("guide"), await served(s, "ann"), { "<id>": id })).toBe(1);
    expect((await s.call("ann", "GET", `/v1/plans/${id}`)).body).toMatchObject({ status: "approved" });
  });

  it("passkeys runs as shown, with ann's passkey", async () => {
    verifies("beyond.docs.guides-run");
    const s = await signingServer();
    await s.enrol("ann");
    const [{ id }] = (await s.call("admin", "GET", "/v1/passkeys")).body.passkeys;
    expect(await runGuide(page("passkeys"), tempDir("guide"), await served(s, "ann"), { "<id>": id })).toBe(
      1,
    );
    const [revoked] = (await s.call("admin", "GET", "/v1/passkeys")).body.passkeys;
    expect(revoked).toMatchObject({ status: "revoked" });
  });

  it("push runs as shown, with a phone", async () => {
    verifies("beyond.docs.guides-run");
    const service = await pushService();
    const s = await testServer({
      config: "console_url: https://svc.example.com\npush: {allow_private: true}\n",
    });
    const browser = service.browser();
    browser.server_key = (await s.call("approver", "GET", "/v1/push")).body.key;
    const { id } = (await s.call("approver", "POST", "/v1/push", { ...browser.subscription, label: "phone" }))
      .body;
    expect(await runGuide(page("push"), tempDir("guide"), await served(s, "approver"), { "<id>": id })).toBe(
      1,
    );
    expect(service.received).toHaveLength(1);
  });

  it("http-conventions sends a request that the server knows", async () => {
    verifies("beyond.docs.guides-run");
    const s = await testServer({
      manifests: "- {tool: crm.get_contact, effect: read, permission: crm}\n",
      keys: [{ name: "bot", role: "agent" }],
    });
    await s.call("bot", "POST", "/v1/runs", { run_id: "ticket-4826", permissions: ["crm"] });
    expect(await runGuide("docs/http-conventions.md", tempDir("guide"), await served(s, "bot"))).toBe(1);
    expect((await s.call("bot", "GET", "/v1/runs/ticket-4826")).body.steps).toHaveLength(1);
  });

  it("console and rotate-keys run as shown, next to manifests", async () => {
    verifies("beyond.docs.guides-run");
    const place = tempDir("guide");
    mkdirSync(join(place, "manifests"));
    cpSync(join(ROOT, "examples/demo/manifests.yaml"), join(place, "manifests/manifests.yaml"));
    const values = {
      "-m manifests/": "-m manifests/ --port 0",
      "http://127.0.0.1:8787": "http://127.0.0.1:…",
    };
    expect(await runGuide(page("console"), place, {}, values)).toBe(2);
    const key = { "<name>": "bot", "<role>": "agent" };
    expect(await runGuide("docs/operations/rotate-keys.md", place, {}, key)).toBe(1);
  });

  it("service-packs runs as shown, next to the package", async () => {
    verifies("beyond.docs.guides-run");
    const place = tempDir("guide");
    writeFileSync(join(place, "policy.yaml"), "version: 1\n");
    writeFileSync(join(place, "package.json"), "{}");
    const values = { "127.0.0.1:3128": `127.0.0.1:${await freePort()}`, "sk_test_…": "sk_test_4711" };
    mkdirSync(join(place, "node_modules"));
    symlinkSync(ROOT, join(place, "node_modules/takeback"));
    expect(await runGuide(page("service-packs"), place, {}, values)).toBe(4);
  });

  it("proxy runs as shown, in front of an API", async () => {
    verifies("beyond.docs.guides-run");
    const tls = selfSigned(["localhost"]);
    const api = await upstream((_, response) => response.end('{"id":1,"name":"Ann"}'), tls);
    const values = {
      "svc proxy --listen": "svc proxy --allow-host localhost --listen",
      "127.0.0.1:3128": `127.0.0.1:${await freePort()}`,
      "api.example.com": `localhost:${api.port}`,
    };
    const trust = { NODE_EXTRA_CA_CERTS: tls.file };
    expect(await runGuide(page("proxy"), tempDir("guide"), trust, values)).toBe(6);
    expect(api.seen.map(({ method, url }) => `${method} ${url}`)).toEqual(["GET /users/1"]);
  });
});
