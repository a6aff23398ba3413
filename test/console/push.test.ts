/** Push messages in the console: a real Chromium, its worker, and messages that a push service received and decrypted. */
import type { CDPSession, Page, Worker } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { freePort } from "../support/ports.ts";
import { type PushBrowser, type PushService, pushService } from "../support/push-service.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";
import { Browsing, inaccessible, scrollsSideways, type Visitor } from "./support/browsing.ts";
import { type ConsoleServer, consoleServer } from "./support/server.ts";

let service: PushService;
let server: ConsoleServer;
let browsing: Browsing;
let url = "";
beforeAll(async () => {
  service = await pushService();
  const port = await freePort();
  url = `http://localhost:${port}`;
  server = await consoleServer({
    port,
    config: `console: login\nconsole_url: ${url}\npush: {contact: "mailto:ops@example.com", allow_private: true}\n`,
    keys: [{ name: "ann", role: "approver" }],
  });
  browsing = await Browsing.withNotifications(url);
});
afterAll(async () => {
  await browsing?.close();
  await server?.close();
});
afterEach(() => expect(service.problems).toEqual([]));

const devices = async () => (await server.api("admin", "GET", "/v1/push")).body.devices;
const said = (page: Page) => page.locator("main .notice").first().innerText();

/** A headless browser has no push service. Its subscription is made here, its worker is real. */
async function phone(browser: PushBrowser): Promise<Visitor> {
  const visitor = await browsing.as("ann", { phone: true });
  await visitor.context.grantPermissions(["notifications"], { origin: url });
  browser.server_key = (await server.api("ann", "GET", "/v1/push")).body.key;
  const made = JSON.stringify(browser.subscription);
  await visitor.context.addInitScript(`
    const made = { ...${made}, toJSON: () => (${made}), unsubscribe: async () => { localStorage.removeItem("made"); return true; } };
    made.options = { applicationServerKey: Uint8Array.from(atob("${browser.server_key}".replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0)).buffer };
    PushManager.prototype.subscribe = async () => { localStorage.setItem("made", "1"); return made; };
    PushManager.prototype.getSubscription = async () => (localStorage.getItem("made") ? made : null);
  `);
  return visitor;
}

/** Delivers to the worker what the push service received for its browser. */
async function delivery(page: Page): Promise<{ deliver(text: string): Promise<void>; session: CDPSession }> {
  const session = await page.context().newCDPSession(page);
  const found = new Promise<string>((resolve) =>
    session.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => {
      if (registrations[0] !== undefined) resolve(registrations[0].registrationId);
    }),
  );
  await session.send("ServiceWorker.enable");
  const registrationId = await found;
  const deliver = async (data: string) =>
    void (await session.send("ServiceWorker.deliverPushMessage", { origin: url, registrationId, data }));
  return { deliver, session };
}

const workerOf = async ({ context }: Visitor): Promise<Worker> =>
  context.serviceWorkers()[0] ?? context.waitForEvent("serviceworker");
interface Shown {
  title: string;
  body: string;
  tag: string;
  path: string;
}
/** In turn with the worker's own jobs: Chromium forgets a notification that is being shown while they are listed. */
const shown = (worker: Worker): Promise<Shown[]> =>
  worker.evaluate(
    "inTurn(() => registration.getNotifications()).then((all) => all.map(({ title, body, tag, data }) => ({ title, body, tag, path: data.path })))",
  );

let n = 0;
async function ask(amount: number): Promise<string> {
  const run_id = `push-${n++}`;
  await server.api("agent", "POST", "/v1/runs", { run_id, permissions: ["pay.refund"] });
  const call = { tool: "pay.refund", args: { amount }, reason: "because" };
  const { body } = await server.api("agent", "POST", `/v1/runs/${run_id}/intents`, call);
  return /apr_[0-9a-f-]{36}/.exec(JSON.stringify(body))![0];
}
const received = async (browser: PushBrowser, id: string, type: string) => {
  const find = () =>
    service.received.find(
      (one) => one.browser === browser && one.message.id === id && one.message.type === type,
    );
  await until(() => find() !== undefined, `${type} ${id}`);
  return find()!.text;
};

it("turns messages on, shows a request, opens its card with one tap, and withdraws it", async () => {
  verifies("beyond.push.console", "beyond.push.worker", "beyond.push.test", "beyond.push.stores-nothing");
  verifies("beyond.push.unreadable");
  const browser = service.browser();
  const visitor = await phone(browser);
  const { page, open, context, complaints } = visitor;
  await open("/settings");
  await page.getByRole("link", { name: "Open your devices" }).click();
  expect(await inaccessible(page)).toEqual([]);
  expect(await scrollsSideways(page)).toBe(false);
  await page.getByRole("button", { name: "Turn on push messages here" }).click();
  await expect.poll(() => said(page)).toBe("Push messages are on. Send a test.");
  expect((await devices()).map(({ name, label }: { name: string; label: string }) => [name, label])).toEqual([
    ["ann", expect.stringMatching(/^Chrome/)],
  ]);
  await page.getByRole("button", { name: "Send a test" }).click();
  await expect.poll(() => said(page)).toBe("The push service accepted the message.");

  const worker = await workerOf(visitor);
  await worker.evaluate(
    "self.badges = []; navigator.setAppBadge = async (n) => void badges.push(n); navigator.clearAppBadge = async () => void badges.push(0); self.opened = []; clients.openWindow = async (path) => void opened.push(path)",
  );
  const { deliver } = await delivery(page);
  await deliver(await received(browser, "test", "test"));
  await expect.poll(() => shown(worker)).toMatchObject([{ title: "Test message" }]);

  const id = await ask(900);
  await deliver(await received(browser, id, "approval"));
  await expect
    .poll(() => shown(worker))
    .toContainEqual({
      title: "Approval needed",
      body: "agent · rule big-refunds",
      tag: id,
      path: `/console/approvals/${id}`,
    });
  await worker.evaluate(
    `registration.getNotifications({ tag: ${JSON.stringify(id)} }).then(([notification]) => self.dispatchEvent(new NotificationEvent("notificationclick", { notification })))`,
  );
  await expect.poll(() => worker.evaluate("opened")).toEqual([`/console/approvals/${id}`]);
  await expect.poll(async () => (await shown(worker)).map(({ tag }) => tag)).toEqual(["test"]);

  await deliver(await received(browser, id, "approval"));
  await server.api("operator", "POST", `/v1/approvals/${id}/approve`);
  await deliver(await received(browser, id, "withdrawn"));
  await expect.poll(async () => (await shown(worker)).map(({ tag }) => tag)).toEqual(["test"]);
  await expect.poll(() => worker.evaluate("badges")).toEqual([0, 1, 1, 0]);

  // Bytes that aren't a message still show something, and none of their content.
  await deliver("<script>alert(1)</script>");
  await expect
    .poll(async () => (await shown(worker)).find(({ tag }) => tag === "waiting"))
    .toEqual({
      title: "Requests wait for approval",
      body: "Open the console to see them.",
      tag: "waiting",
      path: "/console/approvals",
    });

  await open(`/approvals/${id}`);
  expect(await worker.evaluate("caches.keys()")).toEqual([]);
  await context.setOffline(true);
  await page.goto(`${url}/console/approvals/${id}`);
  expect(await page.locator("body").innerText()).toContain("nothing was decided");
  expect(await page.locator("body").innerText()).not.toMatch(/900|pay\.refund/);
  await context.setOffline(false);
  await page.getByRole("link", { name: "Try again" }).click();
  await page.locator("main h1").waitFor();

  const waiting = await ask(901);
  await open(`/approvals/${waiting}`);
  await context.setOffline(true);
  await page.getByRole("button", { name: "Approve", exact: true }).click();
  expect(await page.locator("dialog").innerText()).toContain("Nothing was sent");
  await context.setOffline(false);
  expect((await server.api("ann", "GET", `/v1/approvals/${waiting}`)).body.status).toBe("pending");
  expect(complaints.filter((one) => !/ERR_INTERNET_DISCONNECTED|status of 503/.test(one))).toEqual([]);
});

it("ends with signing out, and with removal elsewhere", async () => {
  verifies("beyond.push.signing-out", "beyond.push.console");
  browsing.forget();
  for (const one of await devices()) await server.api("admin", "DELETE", `/v1/push/${one.id}`);
  const { page, open } = await phone(service.browser());
  const turnOn = async () => {
    await open("/push");
    await page.getByRole("button", { name: "Turn on push messages here" }).click();
    await expect.poll(() => said(page)).toContain("are on");
  };
  await turnOn();
  await page.getByText("Quiet hours", { exact: true }).last().click();
  await page.getByLabel("Time zone").fill("Europe/Berlin");
  await page.getByLabel("No quiet hours").uncheck();
  await page.getByRole("button", { name: "Save" }).click();
  await expect.poll(() => said(page)).toContain("are saved");
  const [device] = await devices();
  expect(device.quiet).toEqual({ from: "22:00", to: "07:00", zone: "Europe/Berlin" });
  await server.api("admin", "DELETE", `/v1/push/${device.id}`);
  // The next page of another session finds it removed, and drops the subscription.
  await page.evaluate("sessionStorage.clear()");
  await open("/runs");
  await expect.poll(() => page.evaluate("localStorage.getItem('made')")).toBeNull();
  await turnOn();
  await open("/push");
  await page.getByRole("button", { name: "Log out" }).click();
  await page.waitForURL(/\/login/);
  expect(await devices()).toEqual([]);
  // An expired login: the tap leads through the login to the card.
  const id = await ask(902);
  await open(`/approvals/${id}`);
  await page.getByLabel("API key or OIDC token").fill("ann");
  await page.getByRole("button", { name: "Log in" }).click();
  await page.waitForURL(new RegExp(id));
});

it("installs as an app", async () => {
  verifies("beyond.push.install");
  browsing.forget();
  const { page, open, complaints } = await browsing.as("ann", { phone: true });
  await open("/push");
  const session = await page.context().newCDPSession(page);
  const { url: at, errors, data } = await session.send("Page.getAppManifest");
  expect([at, errors]).toEqual([`${url}/console/manifest.webmanifest`, []]);
  expect(JSON.parse(data!)).toMatchObject({
    start_url: "/console/approvals",
    scope: "/console",
    display: "standalone",
  });
  for (const { src, sizes, type } of JSON.parse(data!).icons) {
    const answer = await fetch(`${url}${src}`);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, type]);
    const head = Buffer.from(await answer.arrayBuffer());
    expect(`${head.readUInt32BE(16)}x${head.readUInt32BE(20)}`).toBe(sizes);
  }
  const { installabilityErrors } = await session.send("Page.getInstallabilityErrors");
  // A private window, as every context of this test is, installs nothing.
  expect(installabilityErrors.map(({ errorId }) => errorId).filter((id) => id !== "in-incognito")).toEqual(
    [],
  );
  const button = page.locator("[data-install]");
  expect(await button.isVisible()).toBe(false);
  await page.evaluate(
    "(() => { const event = new Event('beforeinstallprompt', { cancelable: true }); event.prompt = () => { window.prompted = true; }; dispatchEvent(event); })()",
  );
  await button.click();
  expect(await page.evaluate("window.prompted")).toBe(true);
  const worker = await fetch(`${url}/console/sw.js`);
  expect(worker.headers.get("service-worker-allowed")).toBe("/console");
  expect(worker.headers.get("cache-control")).toBe("no-cache");
  expect(complaints).toEqual([]);
});
