/** Clients by other authors, given the endpoint's URL alone: each signs its person in at the issuer, and calls a tool. */
import { realpathSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { type GatewayTest, testGateway } from "../gateway/support/gateway.ts";
import { type AuthorizationServer, authorizationServer } from "../support/authorization-server.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { PROVES_ALL_CLIENTS } from "./support/chosen.ts";
import { personAtBrowser } from "./support/person.ts";
import { SIGNING_CLIENTS } from "./support/signing-in.ts";

let issuer: AuthorizationServer;
let g: GatewayTest;
beforeAll(async () => {
  issuer = await authorizationServer();
  issuer.groups.set("ann", ["bots"]);
  g = await testGateway({
    config: {
      oidc: {
        issuer: issuer.url,
        audience: "svc",
        role_map: { bots: "agent" },
        scopes: ["openid", "offline_access", "tools.read"],
      },
      tool_names: "underscores",
    },
  });
});

const chosen = SIGNING_CLIENTS.filter(({ large }) => !large || PROVES_ALL_CLIENTS);

describe("a client that signs in", () => {
  it.each(chosen)("$title", async ({ signIn }) => {
    verifies("beyond.oauth.clients");
    const person = await personAtBrowser(issuer, "ann");
    const before = (await g.trail()).length;
    const home = realpathSync(tempDir("signs-in"));
    const { output, answer } = await signIn({ home, url: `${g.url}/mcp`, env: person.env });
    expect([person.seen, answer, output]).toEqual([
      [expect.stringMatching(/^200 /)],
      expect.stringContaining("hello"),
      expect.any(String),
    ]);
    const made = (await g.trail()).slice(before);
    expect([...new Set(made.map(({ actor }) => actor))]).toEqual(["ann"]);
    expect(made.map(({ tool }) => tool)).toContain("echo");
  });
});
