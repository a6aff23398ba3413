/**
 * The way of a request on a phone, from the notification to the decision: a push service that receives real messages,
 * a real Chromium at phone size with the real worker, and a passkey in it. Counts the taps, measures what the machine
 * takes, and can take pictures in light and dark.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page, Worker } from "playwright-core";
import { freePort } from "../../support/ports.ts";
import { pushService } from "../../support/push-service.ts";
import { until } from "../../support/until.ts";
import { virtualAuthenticator } from "./authenticator.ts";
import { Browsing } from "./browsing.ts";
import { consoleServer } from "./server.ts";

const MANIFESTS = `
- tool: payments.refund
  effect: compensable
  permission: p
  risk: {data_class: financial, blast_radius: external}
  card:
    title: Refund {$args.amount} {$args.currency} to {$args.to}
    fields: [{label: Amount, path: $args.amount, as: money}, {label: To, path: $args.to, as: text}, {label: Order, path: $args.order, as: text}]
  compensation: {tool: payments.reclaim, args: {order: $args.order}, residue: ["the customer has seen the refund"]}
- tool: mail.send
  effect: irreversible
  permission: p
  risk: {data_class: pii, blast_radius: external}
  card: {title: "Mail {$args.subject}", fields: [{label: Recipients, path: $args.recipients, as: code}, {label: Body, path: $args.body}]}
- tool: files.edit
  effect: reversible
  permission: p
  risk: {data_class: internal, blast_radius: org}
  compensation: {tool: files.restore, args: {path: $args.path}, kind: inverse}
  card: {title: "Edit {$args.path}", fields: [{label: Edit, path: $args.edit, as: diff}]}
- tool: payments.credit
  effect: compensable
  permission: p
  risk: {data_class: financial, blast_radius: external}
  compensation: {tool: payments.reclaim, args: {order: $args.order}}
  card: {title: "Credit {$args.amount} {$args.currency} for {$args.order}"}
`;
const POLICY = `version: 1
approvals: {flood: {max: 6, window: 10m}}
rules:
  - {id: refunds, match: {tool: payments.refund}, action: require_approval, reason: refunds need a person, approval: {signed: true}}
  - {id: customer-mail, match: {tool: mail.send}, action: require_approval, reason: a person reads mail to customers first, approval: {signed: true}}
  - {id: limits, match: {tool: files.edit}, action: require_approval, reason: the limits of the service change, approval: {signed: true}}
  - {id: credits, match: {tool: payments.credit}, action: require_approval, reason: credits need a person}
risk: {}
`;
const limits = (burst: number) =>
  [
    "# Limits of the shop's API",
    "requests_per_minute: 600",
    `burst: ${burst}`,
    "timeout_s: 30",
    "retry: 3",
  ].join("\n");
const refund = (order: string, amount: number) => ({ order, amount, currency: "EUR", to: "Mara Lind" });
const MAIL = {
  subject: "Your delivery is late",
  recipients: Array.from({ length: 40 }, (_, i) => `customer.${i + 1}@example.com`),
  body: `Dear customer,\n${"your order leaves our warehouse two days later than we told you. ".repeat(12)}\nThe shop`,
};

export interface WalkedCard {
  card: string;
  /** From the notification to the decision, both counted, without unlocking the passkey. */
  taps: number;
  /** From the tap on the notification to the card in sight, without the person. */
  open_ms: number;
  /** From the last tap to the page with the decision, the signature included. */
  decide_ms: number;
  signed: boolean;
}

export interface WalkOptions {
  /** Folder for the pictures. */
  pictures?: string | undefined;
  /** Also as PNG, for looking at. */
  png?: string | undefined;
}

/** Walks every card. */
export async function walkPhone({ pictures, png }: WalkOptions = {}): Promise<WalkedCard[]> {
  const service = await pushService();
  const port = await freePort();
  const url = `http://localhost:${port}`;
  const server = await consoleServer({
    port,
    manifests: MANIFESTS,
    policy: POLICY,
    keys: [{ name: "ann", role: "approver" }],
    config: `console: login\nconsole_url: ${url}\nledger_origin: example.com/ledger\npush: {contact: "mailto:ops@example.com", allow_private: true}\n`,
  });
  const browsing = await Browsing.withNotifications(url);
  try {
    return await new Walk({ service, server, browsing, url, pictures, png }).all();
  } finally {
    await browsing.close();
    await server.close();
    await service.close();
  }
}

interface Parts {
  service: Awaited<ReturnType<typeof pushService>>;
  server: Awaited<ReturnType<typeof consoleServer>>;
  browsing: Browsing;
  url: string;
  pictures: string | undefined;
  png: string | undefined;
}
interface Notification {
  title: string;
  body: string;
  tag: string;
  path: string;
}

class Walk {
  private readonly parts: Parts;
  private page!: Page;
  private worker!: Worker;
  private deliver!: (text: string) => Promise<void>;
  private taps = 0;
  private runs = 0;
  private delivered = 0;

  constructor(parts: Parts) {
    this.parts = parts;
  }

  async all(): Promise<WalkedCard[]> {
    await this.prepare();
    const { page } = this;
    const walked: WalkedCard[] = [];
    const refunded = await this.ask("payments.refund", refund("A-1402", 412.5), "the parcel arrived broken");
    walked.push(await this.card("refund", refunded, true));
    const mail = await this.ask("mail.send", MAIL, "the carrier is two days late");
    walked.push(
      await this.card("mail", mail, true, async () => {
        await this.tap(page.getByText("Open the 2 long values to approve"));
        await this.picture("mail-open");
        await this.tap(page.getByLabel("I have read the values"));
      }),
    );
    const edit = { old_string: limits(40), new_string: limits(4_000) };
    const edited = await this.ask(
      "files.edit",
      { path: "/etc/shop/limits.yaml", edit },
      "the sale starts at noon",
    );
    walked.push(await this.card("edit", edited, true));
    walked.push(await this.plan());
    await this.others();
    walked.push(await this.group());
    return walked;
  }

  /** Signs in, turns messages on and adds a passkey, as people do it once. */
  private async prepare(): Promise<void> {
    const { browsing, server, service, url } = this.parts;
    const browser = service.browser();
    const { page, context, open } = await browsing.as("ann", { phone: true });
    this.page = page;
    await context.grantPermissions(["notifications"], { origin: url });
    browser.server_key = (await server.api("ann", "GET", "/v1/push")).body.key;
    const made = JSON.stringify(browser.subscription);
    // A headless browser has no push service. Its subscription is made here, its worker is real.
    await context.addInitScript(`
      const made = { ...${made}, toJSON: () => (${made}), unsubscribe: async () => true };
      made.options = { applicationServerKey: Uint8Array.from(atob("${browser.server_key}".replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0)).buffer };
      PushManager.prototype.subscribe = async () => { localStorage.setItem("made", "1"); return made; };
      PushManager.prototype.getSubscription = async () => (localStorage.getItem("made") ? made : null);
    `);
    await virtualAuthenticator(page);
    await open("/passkeys");
    await page.getByRole("button", { name: "Add a passkey" }).click();
    const code = await page.locator(".passkey-code").innerText();
    const [{ id }] = (await server.api("admin", "GET", "/v1/passkeys")).body.passkeys;
    await server.api("admin", "POST", `/v1/passkeys/${id}/confirm`, { code });
    await open("/push");
    await page.getByRole("button", { name: "Turn on push messages here" }).click();
    await page.getByText("Push messages are on").waitFor();
    this.worker = context.serviceWorkers()[0] ?? (await context.waitForEvent("serviceworker"));
    await this.worker.evaluate(
      "self.opened = []; clients.openWindow = async (path) => void opened.push(path)",
    );
    const session = await context.newCDPSession(page);
    const found = new Promise<string>((resolve) =>
      session.on("ServiceWorker.workerRegistrationUpdated", ({ registrations: [one] }) => {
        if (one !== undefined) resolve(one.registrationId);
      }),
    );
    await session.send("ServiceWorker.enable");
    const registrationId = await found;
    this.deliver = async (data) =>
      void (await session.send("ServiceWorker.deliverPushMessage", { origin: url, registrationId, data }));
  }

  private async ask(tool: string, args: object, reason: string): Promise<string> {
    const run_id = `order-${++this.runs}`;
    const { server } = this.parts;
    await server.api("agent", "POST", "/v1/runs", { run_id, permissions: ["p"], reason: "late deliveries" });
    const { body } = await server.api("agent", "POST", `/v1/runs/${run_id}/intents`, { tool, args, reason });
    const id = /apr_[0-9a-f-]{36}/.exec(JSON.stringify(body))?.[0];
    if (id === undefined) throw new Error(JSON.stringify(body));
    return id;
  }

  /** Hands the worker what the push service received, up to the message with this id; returns what it shows then. */
  private async notified(
    isWanted: (message: { id: string; type: string }) => boolean,
  ): Promise<Notification> {
    const { received } = this.parts.service;
    const find = () => received.findIndex(({ message }, i) => i >= this.delivered && isWanted(message));
    await until(() => find() >= 0, "the message", 60_000);
    const at = find();
    for (; this.delivered <= at; this.delivered++) await this.deliver(received[this.delivered]!.text);
    const tag = received[at]!.message.id as string;
    const shown = () =>
      this.worker.evaluate(
        `inTurn(() => registration.getNotifications({ tag: ${JSON.stringify(tag)} })).then(([one]) => one && ({ title: one.title, body: one.body, tag: one.tag, path: one.data.path }))`,
      ) as Promise<Notification | undefined>;
    await until(async () => (await shown()) !== undefined, "the notification");
    return (await shown())!;
  }

  /** Taps the notification. The window that the worker opens is this page. */
  private async tapNotification({ tag, path }: Notification): Promise<void> {
    this.taps = 1;
    await this.worker.evaluate(
      `opened.length = 0; registration.getNotifications({ tag: ${JSON.stringify(tag)} }).then(([notification]) => self.dispatchEvent(new NotificationEvent("notificationclick", { notification })))`,
    );
    await until(async () => (await this.worker.evaluate("opened.join()")) === path, "the window");
    await this.page.goto(`${this.parts.url}${path}`, { waitUntil: "domcontentloaded" });
  }

  private async tap(on: ReturnType<Page["locator"]>): Promise<void> {
    this.taps += 1;
    await on.tap();
  }

  /** From its notification to the decision. `read` does the steps before the last tap. */
  private async walk(
    card: string,
    notification: Notification,
    {
      seen,
      read,
      last,
      done,
      signed,
    }: {
      seen: ReturnType<Page["locator"]>;
      read?: (() => Promise<void>) | undefined;
      last: ReturnType<Page["locator"]>;
      done: RegExp;
      signed: boolean;
    },
  ): Promise<WalkedCard> {
    if (card === "refund") await this.drawNotification(notification);
    let at = performance.now();
    await this.tapNotification(notification);
    await seen.waitFor();
    const open_ms = Math.round(performance.now() - at);
    await this.picture(card);
    await read?.();
    await last.waitFor();
    if (read !== undefined) await this.picture(`${card}-confirmed`);
    at = performance.now();
    await this.tap(last);
    await this.page.locator("main .notice").filter({ hasText: done }).first().waitFor();
    const decide_ms = Math.round(performance.now() - at);
    if (card === "refund") await this.picture("decided");
    return { card, taps: this.taps, open_ms, decide_ms, signed };
  }

  private async card(
    name: string,
    id: string,
    signed: boolean,
    read?: () => Promise<void>,
  ): Promise<WalkedCard> {
    const { page } = this;
    const walked = await this.walk(name, await this.notified((one) => one.id === id), {
      seen: page.locator("article.approval h2"),
      last: page.getByRole("button", { name: "Approve", exact: true }),
      done: /^Approved/,
      ...{ read, signed },
    });
    const { body } = await this.parts.server.api("agent", "GET", `/v1/approvals/${id}/signatures`);
    if (body.signatures?.length !== 1) throw new Error(`${name}: ${JSON.stringify(body)}`);
    return walked;
  }

  private async plan(): Promise<WalkedCard> {
    const { server } = this.parts;
    const run_id = `order-${++this.runs}`;
    await server.api("agent", "POST", "/v1/runs", { run_id, permissions: ["p"], reason: "late deliveries" });
    const calls = [
      { tool: "payments.refund", args: refund("A-1411", 64) },
      { tool: "payments.refund", args: refund("A-1419", 18.5) },
      { tool: "payments.credit", args: { order: "A-1425", amount: 5, currency: "EUR" } },
    ];
    const { body } = await server.api("agent", "POST", `/v1/runs/${run_id}/plans`, {
      ...{ reason: "make good three late orders", calls },
    });
    if (body.status !== "pending") throw new Error(JSON.stringify(body));
    return this.walk("plan", await this.notified(({ id }) => id === body.id), {
      seen: this.page.locator("main h1"),
      last: this.page.getByRole("button", { name: "Approve the plan" }),
      done: /^Plan approved/,
      signed: true,
    });
  }

  private async group(): Promise<WalkedCard> {
    const { page } = this;
    for (let i = 0; i < 8; i++)
      await this.ask(
        "payments.credit",
        { order: `A-15${i}0`, amount: i === 3 ? 180 : 5, currency: "EUR" },
        "late delivery",
      );
    return this.walk("group", await this.notified(({ type }) => type === "digest"), {
      seen: page.locator("section.group"),
      read: () => this.tap(page.getByRole("button", { name: "Approve all" })),
      last: page.getByRole("button", { name: /^Approve \d+ requests/ }),
      done: /requests approved/,
      signed: false,
    });
  }

  /** What a person meets when it does not go as planned. */
  private async others(): Promise<void> {
    const { page, parts } = this;
    const { server, url } = parts;
    const context = page.context();
    const id = await this.ask("payments.refund", refund("A-1433", 900), "the parcel was lost");
    const notification = await this.notified((one) => one.id === id);
    await context.setOffline(true);
    await this.tapNotification(notification);
    await page.getByText("No network").waitFor();
    await this.picture("no-network");
    await context.setOffline(false);
    await page.goto(`${url}/console/approvals/${id}`);
    await page.getByRole("button", { name: "Approve", exact: true }).waitFor();
    await server.api("operator", "POST", `/v1/approvals/${id}/deny`, { note: "paid already" });
    // The open card shows it without a reload, and offers no button any more.
    await page.getByText("paid already").first().waitFor();
    await this.picture("decided-by-another");
    const waiting = await this.ask("payments.refund", refund("A-1440", 75), "the parcel was lost");
    await context.clearCookies();
    await page.goto(`${url}/console/approvals/${waiting}`);
    await page.getByLabel("API key or OIDC token").waitFor();
    await this.picture("expired-login");
    await page.getByLabel("API key or OIDC token").fill("ann");
    await page.getByRole("button", { name: "Log in" }).tap();
    await page.locator("article.approval h2").waitFor();
    if (!page.url().endsWith(waiting)) throw new Error(`the login led to ${page.url()}`);
  }

  /** The page as it is, light and dark side by side. */
  private async picture(name: string): Promise<void> {
    if (this.parts.pictures === undefined) return;
    const { page } = this;
    const shots: string[] = [];
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      await page.waitForTimeout(150);
      shots.push((await page.screenshot()).toString("base64"));
    }
    await page.emulateMedia({ colorScheme: "light" });
    await this.saveSideBySide(name, shots);
  }

  private async saveSideBySide(name: string, shots: readonly string[]): Promise<void> {
    const sheet = await this.sheet(
      `<body style="margin:0;display:flex;gap:20px;background:#8a8f8c;padding:20px">${shots.map((one) => `<img width="390" height="844" src="data:image/png;base64,${one}">`).join("")}</body>`,
      { width: 840, height: 884 },
    );
    await this.save(sheet, name);
  }

  /** Draws the notification that the worker shows, from its own data, as a phone would. */
  private async drawNotification({ title, body }: Notification): Promise<void> {
    if (this.parts.pictures === undefined) return;
    const icon = Buffer.from(
      await (await fetch(`${this.parts.url}/console/assets/icon-192.png`)).arrayBuffer(),
    ).toString("base64");
    const text = (line: string) => line.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
    const phone = (back: string, card: string, ink: string, soft: string) =>
      `<div style="width:390px;height:200px;background:${back};display:grid;place-items:center"><div style="width:340px;box-sizing:border-box;background:${card};color:${ink};border-radius:22px;padding:14px 16px;display:flex;gap:14px"><img width="40" height="40" style="border-radius:20px" src="data:image/png;base64,${icon}"><div><div style="color:${soft};font-size:12.5px">Takeback &middot; now</div><div style="font-weight:600;font-size:15px;margin-top:3px">${text(title)}</div><div style="font-size:14px;margin-top:2px">${text(body)}</div></div></div></div>`;
    const sheet = await this.sheet(
      `<body style="margin:0;display:flex;gap:20px;background:#8a8f8c;padding:20px;font-family:system-ui,sans-serif">${phone("#dfe6e2", "#fff", "#1a1f1d", "#5d6662")}${phone("#0e1311", "#262d2a", "#eef2f0", "#a6b0ab")}</body>`,
      { width: 840, height: 240 },
    );
    await this.save(sheet, "notification");
  }

  private async sheet(body: string, viewport: { width: number; height: number }): Promise<Page> {
    const { browsing } = this.parts;
    const { page } = await browsing.as(null);
    await page.setViewportSize(viewport);
    await page.setContent(`<!doctype html><html lang="en">${body}</html>`);
    return page;
  }

  private async save(sheet: Page, name: string): Promise<void> {
    const { pictures, png } = this.parts;
    const session = await sheet.context().newCDPSession(sheet);
    const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality: 60 });
    writeFileSync(join(pictures!, `phone-${name}.webp`), Buffer.from(data, "base64"));
    if (png !== undefined) await sheet.screenshot({ path: join(png, `phone-${name}.png`) });
    await sheet.context().close();
  }
}
