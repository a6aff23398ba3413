/**
 * The URLs that the service sends to often contain passwords. Nothing that it prints, answers, counts or records
 * holds any part of one after the host, with any answer of the receiver. Only an accepted message counts as delivered.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Answer, type Receiver, startReceiver } from "../golden/notify/support/receivers.ts";
import { speak } from "../support/io.ts";
import { testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";

const TOKEN = "T0kenInThePath";
const QUERY = "k3yInTheQuery";
const KEY = "a11-sent-in-a-header";
const SECRETS = [TOKEN, QUERY, KEY, "services", "hooks"];

/** Says back everything that it was sent, as error pages of proxies and frameworks do. */
const echoing =
  (status: number): Answer =>
  (request, response) =>
    response.writeHead(status).end(`cannot ${request.method} ${request.path} ${JSON.stringify(request)}`);

const toLogin: Answer = (request, response) => {
  if (request.path.startsWith("/login")) response.end("<h1>log in</h1>");
  else response.writeHead(302, { location: "/login" }).end();
};

async function receiver(answer: Answer): Promise<Receiver> {
  const started = await startReceiver(answer);
  onTestFinished(() => started.close());
  return started;
}

/** Every kind of destination at the one receiver, as lines of a config file. */
function config(at: Receiver): string {
  const hook = at.url(`/services/${TOKEN}/hooks?key=${QUERY}`);
  const sections = {
    anchor: { sinks: [{ type: "webhook", url: hook, secret: "s3cret" }] },
    otlp: { endpoint: hook, headers: { "x-key": KEY } },
    notifications: {
      channels: [
        { name: "slack", type: "slack", url: hook },
        { name: "teams", type: "teams", url: hook },
        { name: "webhook", type: "webhook", url: hook },
        { name: "opsgenie", type: "opsgenie", url: hook, api_key: KEY },
        { name: "pagerduty", type: "pagerduty", url: hook, routing_key: KEY },
      ],
    },
  };
  return Object.entries(sections)
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}\n`)
    .join("");
}

const leaked = (text: string) =>
  SECRETS.filter((secret) => text.toLowerCase().includes(secret.toLowerCase()));

describe.each([400, 404, 500])("a receiver that answers %i and repeats what it got", (status) => {
  it("puts nothing of its address into answers, log, metrics or ledger", async () => {
    const at = await receiver(echoing(status));
    const s = await testServer({ config: config(at) });
    const anchored = await s.call("admin", "POST", "/v1/anchor", {});
    expect([anchored.status, anchored.body.sinks[0].ok]).toEqual([502, false]);
    const tested = await s.app.notifier.sendTest("ann");
    expect(tested.map(({ ok, error }) => [ok, error])).toEqual(
      tested.map(() => [false, `answered ${status}`]),
    );
    await expect
      .poll(() => s.logged.some((line) => line.includes("an anchor could not be delivered")))
      .toBe(true);
    const metrics = await s.call("auditor", "GET", "/metrics");
    const ledger = await s.app.core.store.records({ limit: 1_000 });
    const printed = [...s.logged, anchored.text, JSON.stringify(tested), metrics.text, ...ledger];
    expect(leaked(printed.join("\n"))).toEqual([]);
  });

  it("puts nothing of it into what svc doctor and svc anchor publish print", async () => {
    const at = await receiver(echoing(status));
    const cwd = tempDir("addresses");
    writeFileSync(join(cwd, "svc.config.yaml"), config(at));
    // An anchor needs a ledger.
    expect((await speak(["halt", "add", "--reason", "drill"], { cwd })).code).toBe(0);
    const said = [
      await speak(["doctor", "--send-test"], { cwd }),
      await speak(["anchor", "publish"], { cwd }),
      await speak(["anchor", "publish", "--webhook", at.url(`/services/${TOKEN}`)], { cwd }),
      await speak(["validate", at.url(`/services/${TOKEN}?key=${QUERY}`)], { cwd }),
    ];
    expect(said.map(({ code }) => code)).toEqual([1, 1, 1, 1]);
    expect(leaked(said.map(({ out, err }) => out + err).join("\n"))).toEqual([]);
    expect(at.received.length).toBeGreaterThan(7);
  });
});

it("svc config show and a config that does not load hold no address", async () => {
  const at = await receiver(echoing(404));
  const cwd = tempDir("addresses");
  const manifests = at.url(`/services/${TOKEN}?key=${QUERY}`);
  writeFileSync(join(cwd, "svc.config.yaml"), `manifests: "${manifests}"\n${config(at)}`);
  const shown = await speak(["config", "show"], { cwd });
  expect(shown.code).toBe(0);
  const broken = `notifications: {channels: [{name: a, type: slack, url: "htps://x/services/${TOKEN}"}, {name: b, type: webhook, url: [${TOKEN}]}]}\n`;
  writeFileSync(join(cwd, "svc.config.yaml"), broken);
  const refused = await speak(["doctor"], { cwd });
  expect(refused.code).toBe(1);
  expect(leaked(shown.out + shown.err + refused.out + refused.err)).toEqual([]);
});

describe("a redirect to a login page", () => {
  it("does not count as a delivery of an anchor or a notification", async () => {
    const at = await receiver(toLogin);
    const s = await testServer({ config: config(at) });
    const anchored = await s.call("admin", "POST", "/v1/anchor", {});
    expect([anchored.status, anchored.body.sinks[0].ok]).toEqual([502, false]);
    expect((await s.app.notifier.sendTest("ann")).map(({ ok }) => ok)).not.toContain(true);
    expect(at.received.map(({ path }) => path)).not.toContain("/login");
  });

  it("does not count as a delivery for svc doctor and svc anchor publish", async () => {
    const at = await receiver(toLogin);
    const cwd = tempDir("addresses");
    writeFileSync(join(cwd, "svc.config.yaml"), config(at));
    const doctor = await speak(["doctor", "--send-test"], { cwd });
    expect(doctor.code).toBe(1);
    expect(doctor.out).not.toMatch(/accepted a test message/);
    expect((await speak(["halt", "add", "--reason", "drill"], { cwd })).code).toBe(0);
    const published = await speak(["anchor", "publish"], { cwd });
    expect([published.code, published.out]).toEqual([1, expect.stringMatching(/FAILED/)]);
  });
});
