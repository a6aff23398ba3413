/** `svc push` against a server, and `svc doctor --send-test` to one's own devices. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { startListening } from "../../src/http/lifecycle.ts";
import { openStore } from "../../src/store/open.ts";
import { speak } from "../support/io.ts";
import { freshDatabase } from "../support/postgres.ts";
import { pushService } from "../support/push-service.ts";
import { testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const CONFIG = "console_url: https://svc.example.com\npush: {allow_private: true}\n";

it("lists, silences, tests and removes", async () => {
  verifies("beyond.push.command", "beyond.push.test");
  const service = await pushService();
  const s = await testServer({ config: CONFIG });
  const { url, stop } = await startListening(s.http, "127.0.0.1", 0);
  const run = (...args: string[]) =>
    speak(["push", ...args], { env: { SVC_SERVER: url, SVC_TOKEN: "approver" }, cwd: s.folder });
  expect((await run("list")).err).toContain("no devices");
  const browser = service.browser();
  browser.server_key = (await s.call("approver", "GET", "/v1/push")).body.key;
  const added = await s.call("approver", "POST", "/v1/push", { ...browser.subscription, label: "phone" });
  const { id } = added.body;
  expect((await run("list")).out).toMatch(
    new RegExp(`^${id.replace(".", "\\.")} +approver +phone +localhost:`),
  );
  const quiet = await run("quiet", id, "--from", "22:00", "--to", "07:00", "--zone", "Asia/Tokyo");
  expect(quiet.out).toBe("phone: quiet from 22:00 to 07:00, Asia/Tokyo\n");
  expect((await run("quiet", id)).code).toBe(1);
  expect((await run("quiet", id, "--off")).out).toBe("phone: no quiet hours\n");
  expect(await run("test", id)).toMatchObject({ code: 0, out: "the push service accepted the message\n" });
  service.answers.push({ status: 403 });
  expect(await run("test", id)).toMatchObject({ code: 1, err: "not delivered: answered 403\n" });
  expect((await run("remove", id)).out).toBe("removed phone of approver\n");
  expect(JSON.parse((await run("list", "--json")).out).devices).toEqual([]);
  expect([service.received.length, service.problems]).toEqual([1, []]);
  await stop();
});

it.each(["files", "sqlite", "postgres"] as const)(
  "doctor sends one to the devices of the key in SVC_TOKEN, which the %s store keeps",
  async (kind) => {
    verifies("beyond.push.test", "beyond.push.stores", "beyond.push.one-key");
    const service = await pushService();
    const folder = tempDir("push");
    const data = join(folder, "data");
    const database_url = kind === "postgres" ? (await freshDatabase()).url : null;
    const store = () => openStore({ store: kind, data, database_url, warn: () => {} });
    const [one, other] = [
      await testServer({ config: CONFIG, store: await store() }),
      await testServer({ config: CONFIG, store: await store() }),
    ];
    const browser = service.browser();
    // Two processes that both need the pair first.
    const asked = await Promise.all([one, other].map((s) => s.call("approver", "GET", "/v1/push")));
    const [key, again] = asked.map(({ body }) => body.key);
    expect(again).toBe(key);
    browser.server_key = key;
    await one.call("approver", "POST", "/v1/push", { ...browser.subscription, label: "phone" });
    expect((await other.call("admin", "GET", "/v1/push")).body.devices).toMatchObject([{ label: "phone" }]);
    writeFileSync(join(folder, "svc.config.yaml"), `${CONFIG}store: ${kind}\ndata: data\n`);
    const doctor = async (env: Record<string, string>) => {
      const all = { ...env, ...(database_url === null ? {} : { SVC_DATABASE_URL: database_url }) };
      const { out } = await speak(["doctor", "--send-test", "--json"], { cwd: folder, env: all });
      return JSON.parse(out).checks.filter(({ check }: { check: string }) => check === "send-test");
    };
    expect(await doctor({ SVC_TOKEN: "approver" })).toContainEqual(
      expect.objectContaining({ status: "ok", message: "push messages: phone accepted a test message" }),
    );
    expect(service.received.map(({ message }) => message.type)).toEqual(["test"]);
    expect((await doctor({ SVC_TOKEN: "admin" })).at(-1)).toMatchObject({ status: "warn" });
    expect((await doctor({})).at(-1).message).toContain("set SVC_TOKEN");
    expect([service.received.length, service.problems]).toEqual([1, []]);
  },
);
