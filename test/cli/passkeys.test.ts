/** `svc passkeys` against a server. */
import { expect, it } from "vitest";
import { startListening } from "../../src/http/lifecycle.ts";
import { speak } from "../support/io.ts";
import { SoftPasskey } from "../support/passkeys.ts";
import { testServer } from "../support/server.ts";
import { signingServer } from "../support/signing.ts";
import { verifies } from "../support/verifies.ts";

it("lists and revokes", async () => {
  verifies("beyond.passkeys.command");
  const url = "https://svc.example.com";
  const s = await testServer({ config: `console_url: ${url}\npasskeys: {enrol: self}\n` });
  const { url: at, stop } = await startListening(s.http, "127.0.0.1", 0);
  const env = { SVC_SERVER: at, SVC_TOKEN: "approver" };
  expect((await speak(["passkeys", "list"], { env, cwd: s.folder })).err).toContain("no passkeys");
  const soft = new SoftPasskey(url);
  const options = (await s.call("approver", "POST", "/v1/passkeys/options", {})).body;
  const { id } = (await s.call("approver", "POST", "/v1/passkeys", { response: soft.create(options) })).body;
  const listed = await speak(["passkeys", "list"], { env, cwd: s.folder });
  expect(listed.out).toMatch(new RegExp(`^${id.replace(".", "\\.")} +approver +active +${soft.code} +ES256`));
  const revoked = await speak(["passkeys", "revoke", id], { env, cwd: s.folder });
  expect([revoked.code, revoked.out]).toEqual([0, `revoked passkey ${soft.code} of approver\n`]);
  expect((await speak(["passkeys", "revoke", id], { env, cwd: s.folder })).code).toBe(1);
  const json = JSON.parse((await speak(["passkeys", "list", "--json"], { env, cwd: s.folder })).out);
  expect(json.passkeys).toMatchObject([{ id, status: "revoked" }]);
  await stop();
});

it("names the page to sign at, and exits 1", async () => {
  verifies("beyond.signed.command");
  const s = await signingServer();
  const { url, stop } = await startListening(s.http, "127.0.0.1", 0);
  const { id } = await s.ask();
  const said = await speak(["approvals", "approve", id, "--yes"], {
    env: { SVC_SERVER: url, SVC_TOKEN: "ann" },
    cwd: s.folder,
  });
  expect(said.code).toBe(1);
  expect(said.err).toContain(`a passkey is required: https://svc.example.com/console/approvals/${id}\n`);
  await stop();
});
