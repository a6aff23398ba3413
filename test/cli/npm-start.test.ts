/** `npm start` in a fresh clone: installs, builds, serves a demo, and prints what a newcomer can paste. */
import { execFile, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { describe, expect, it, onTestFinished } from "vitest";
import { inaccessible, scrollsSideways } from "../console/support/browsing.ts";
import { commandsOf, fitsShown } from "../guides/guide-shell.ts";
import { launchBrowser } from "../support/browser.ts";
import { ROOT } from "../support/files.ts";
import { program } from "../support/programs.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

/** A clone without its dependencies, and an npm that "installs" by linking ours. */
function freshClone(): { folder: string; npm: string; installs: () => string[] } {
  const folder = join(tempDir("clone"), "svc");
  mkdirSync(folder);
  for (const name of [
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "scripts",
    "bin",
    "src",
    "examples",
  ]) {
    cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  }
  const npm = join(folder, "..", "npm-cli.js");
  const log = join(folder, "..", "npm.log");
  writeFileSync(
    npm,
    `const fs = require("node:fs");
fs.appendFileSync(${JSON.stringify(log)}, process.argv.slice(2).join(" ") + "\\n");
fs.symlinkSync(${JSON.stringify(join(ROOT, "node_modules"))}, "node_modules");
`,
  );
  return {
    folder,
    npm,
    installs: () => (existsSync(log) ? readFileSync(log, "utf8").trimEnd().split("\n") : []),
  };
}

async function start(folder: string, script: string, npm: string, ...args: string[]) {
  const child = spawn(process.execPath, [script, ...args], {
    cwd: folder,
    env: { PATH: process.env["PATH"], HOME: process.env["HOME"], PORT: "0", npm_execpath: npm },
  });
  let out = "";
  let err = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    err += text;
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
  await until(() => {
    if (child.exitCode !== null) throw new Error(`it ended: ${err}`);
    return out.includes("Ctrl-C stops it");
  }, "the demo to be ready");
  return {
    out: () => out,
    stop: () => {
      child.kill("SIGINT");
      return ended;
    },
  };
}

const run = async (line: string) => JSON.parse((await promisify(execFile)("sh", ["-c", line])).stdout);
// The lines to paste call it.
await program("curl");

/** The agent's real calls can be read, decided and undone. */
async function checkStory(text: string, url: string, keys: Record<string, string>, folder: string) {
  verifies("beyond.first.story", "beyond.first.link");
  expect(text).toMatch(/^ {2}http:\/\/127\.0\.0\.1:\d+\/console\/login\/link\?token=[\w-]{43}$/m);
  const ask = async (role: string, path: string, body?: unknown) => {
    const response = await fetch(`${url}/v1${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${keys[role]}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return JSON.parse(await response.text());
  };
  const { approvals } = await ask("auditor", "/approvals?status=pending");
  expect(approvals).toMatchObject([{ tool: "payments.refund", run_id: "ticket-4833" }]);
  const { alerts } = await ask("auditor", "/alerts");
  expect(alerts.map(({ kind }: { kind: string }) => kind)).not.toContain("undo_closing");
  const trail = async (run_id: string) =>
    (await ask("auditor", `/search/records?run_id=${run_id}`)).records as {
      event: string;
      detail?: string;
    }[];
  expect((await trail("ticket-4829")).map(({ detail }) => detail)).toContainEqual(
    expect.stringContaining("a list of customers does not leave by mail; follows step 0"),
  );
  expect((await trail("ticket-4831")).map(({ event }) => event)).toContain("uncertain");
  expect((await trail("ticket-4817")).filter(({ event }) => event === "succeeded")).toHaveLength(4);

  const desk = () => JSON.parse(readFileSync(join(folder, ".demo", "desk.json"), "utf8"));
  expect(desk().contacts["c-772"].note).toBe("duplicate");
  await ask("operator", "/runs/ticket-4826/rollback", { confirm: true });
  const job = async () => (await ask("operator", "/runs/ticket-4826/rollback")).job;
  await until(async () => (await job()).state === "done", "the rollback to end");
  expect((await job()).report).toMatchObject({ complete: true });
  expect(desk().contacts["c-772"].note).toBe("");
  expect(desk().contacts["c-771"].note).toBe("refunded 45 EUR for A-1204");
}

/** What a page shows of `npm start` is what it prints, but for the two ports. */
function expectShown(page: string, text: string): void {
  verifies("beyond.docs.guides-run");
  const [shown] = commandsOf(readFileSync(join(ROOT, page), "utf8"));
  expect(shown!.command).toBe("npm start");
  const anyPort = shown!.output.replaceAll(/127\.0\.0\.1:\d+/g, "127.0.0.1:…");
  const printed = text.slice(text.indexOf("svc is running"));
  expect(fitsShown(`${anyPort}\n...`, printed), `${page}\n${text}`).toBe(true);
}

/** One clone for all tests of this file: the first one builds it. */
let clone: ReturnType<typeof freshClone>;

/** The rows that the text takes on a terminal of 120 columns. */
const rowsOf = (text: string): number =>
  text.split("\n").reduce((rows, line) => rows + Math.max(1, Math.ceil(line.length / 120)), 0);

describe("npm start", () => {
  it("is enough in a fresh clone, and its lines can be pasted", async () => {
    verifies(
      "contract.start.npm-start",
      "contract.start.npm-start-examples",
      "contract.start.npm-start-policy",
      "contract.start.npm-start-prints-keys",
      "contract.start.npm-start-prints-curl",
      "contract.start.npm-start-prints-console",
    );
    clone = freshClone();
    const { folder, npm, installs } = clone;
    const demo = await start(folder, "scripts/start.mjs", npm);
    expect(installs()).toEqual(["ci --include=dev"]);
    const text = demo.out();
    for (const page of ["README.md", "docs/quickstart.md"]) expectShown(page, text);
    verifies("beyond.demo.screen");
    expect(rowsOf(text.slice(text.indexOf("svc is running")))).toBeLessThanOrEqual(32);
    const url = /svc is running at (http:\S+)/.exec(text)![1]!;
    const keys = Object.fromEntries(
      [...text.matchAll(/^ {2}(agent|auditor|approver|operator|admin) +(svc_\S+)$/gm)].map(
        ([, role, key]) => [role, key],
      ),
    );
    expect(Object.keys(keys)).toEqual(["agent", "auditor", "approver", "operator", "admin"]);
    for (const role of ["auditor", "approver", "operator", "admin"]) {
      const shown = text.split(keys[role]!).length - 1;
      expect(shown, role).toBe(role === "auditor" ? 2 : 1);
    }
    expect(readFileSync(join(folder, ".demo", "keys.json"), "utf8")).not.toContain(keys["admin"]);

    const lines = text.split("\n").filter((line) => /^ {2}curl .*\/intents /.test(line));
    const answers = [];
    for (const line of lines) answers.push(await run(line));
    expect(answers).toEqual([
      { decision: "allow", step: 0 },
      { decision: "block", reasons: expect.arrayContaining([expect.any(String)]) },
    ]);
    const status = await run(`curl -s ${url}/v1/status -H 'authorization: Bearer ${keys["auditor"]}'`);
    expect(status).toMatchObject({ store: "files", environment: "demo" });
    expect(status.manifests).toBeGreaterThan(3);
    expect(status.policy.rules).toBeGreaterThan(0);

    const shown = /^console +(http:\S+)/m.exec(text)![1]!;
    expect(shown).toBe(`${url}/console`);
    const page = await fetch(shown);
    expect([page.status, page.url.split("?")[0]]).toEqual([200, `${url}/console/login`]);
    expect(await page.text()).toMatch(/<form[^>]*method="post"/i);
    await checkStory(text, url, keys, folder);
    expect(await demo.stop()).toBe(0);

    // A second start finds everything built, and makes its own keys.
    verifies("beyond.first.empty", "beyond.demo.empty");
    const again = await start(folder, "dist/cli/demo.js", npm, "--empty");
    expect(again.out()).not.toContain("the shop");
    expect(again.out()).not.toContain(keys["admin"]!);
    const [, at, key] = /curl -s (\S+)\/v1\/runs\/\S+\/export -H 'authorization: Bearer (\S+)'/.exec(
      again.out(),
    )!;
    expect((await run(`curl -s ${at}/v1/runs -H 'authorization: Bearer ${key}'`)).runs).toHaveLength(1);
    expect(await again.stop()).toBe(0);
  });
});

/** A running demo in the shared clone; with `fresh`, the agent's story starts again. */
async function liveDemo(fresh = true) {
  const { folder, npm } = clone;
  if (fresh) rmSync(join(folder, ".demo"), { recursive: true, force: true });
  const demo = await start(folder, "dist/cli/demo.js", npm);
  const found = (pattern: RegExp): string => pattern.exec(demo.out())![1]!;
  const url = found(/svc is running at (http:\S+)/);
  const shop = found(/^ {2}(http:\/\/127\.0\.0\.1:\d+)$/m);
  expect(new URL(shop).port).not.toBe(new URL(url).port);
  const key = (role: string) => found(new RegExp(`^ {2}${role} +(svc_\\S+)$`, "m"));
  const desk = () => JSON.parse(readFileSync(join(folder, ".demo", "desk.json"), "utf8"));
  const post = (path: string, body: object, role = "operator") =>
    fetch(`${url}/v1${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key(role)}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    }).then((response) => {
      expect(response.ok).toBe(true);
      return response;
    });
  const link = found(/^ {2}(http\S+login\/link\S+)$/m);
  return { ...demo, url, shop, link, desk, key, post, request: desk().tickets["ticket-4833"].approval_id };
}

const refundsOf = (desk: { refunds: object }, order: string): { amount: number; status: string }[] =>
  Object.values(desk.refunds).filter((one) => one.order === order);

async function openShop(shop: string, colorScheme: "light" | "dark", width: number) {
  const browser = await launchBrowser();
  onTestFinished(() => browser.close());
  const context = await browser.newContext({ viewport: { width, height: 844 }, colorScheme });
  context.setDefaultTimeout(300_000);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  await page.goto(shop);
  return { page, context, faults };
}

const words = (page: Page) => page.locator("li", { hasText: "ticket-4833" });

describe("the demo's agent", () => {
  it("refunds once you approve, and the shop gets the money back by a rollback", async () => {
    verifies("beyond.demo.approve", "beyond.demo.rollback", "beyond.demo.shop", "beyond.demo.effect");
    verifies("beyond.demo.restart", "beyond.demo.halt");
    const first = await liveDemo();
    expect(await first.stop()).toBe(0);
    const demo = await liveDemo(false);
    const { page, context, faults } = await openShop(demo.shop, "dark", 390);
    expect([await inaccessible(page), await scrollsSideways(page)]).toEqual([[], false]);
    expect(await page.locator("#paid").innerText()).toBe("165 EUR");

    await demo.post("/halt", { reason: "lunch" }, "admin");
    const desk = await context.newPage();
    await desk.goto(demo.link);
    await desk.click("button");
    await desk.waitForURL(/\/console$/);
    await desk.goto(`${demo.url}/console/approvals/${demo.request}`);
    await desk.getByRole("button", { name: "Approve", exact: true }).click();
    await words(page).getByText("The refund is blocked: kill switch: lunch").waitFor();
    expect(refundsOf(demo.desk(), "A-1402")).toEqual([]);
    await desk.locator("#decided-lately").getByText("The agent has not made the call yet.").waitFor();
    await demo.post("/resume", {}, "admin");

    // Neither page is loaded again.
    await words(page).getByText("demo-operator approved. I refunded 900 EUR").waitFor();
    expect(await page.locator("#paid").innerText()).toBe("1065 EUR");
    await desk.locator("#decided-lately").getByText("The agent made the call: step 1 succeeded").waitFor();
    expect(await inaccessible(desk)).toEqual([]);

    verifies("beyond.demo.run-page");
    await desk.goto(`${demo.url}/console/runs/ticket-4833`);
    await desk.locator("#refused").getByText("approved, used").waitFor();
    await desk.locator("#approvals").getByText("By demo-operator").waitFor();
    await desk.locator("#run").getByText("open", { exact: true }).waitFor();

    verifies("beyond.polish.plan-fits");
    await desk.goto(`${demo.url}/console/runs/ticket-4817`);
    await desk.getByText("not fully reversible: 1 step was changed since").first().waitFor();
    expect(await scrollsSideways(desk)).toBe(false);
    await desk.goto((await page.locator(".next a").getAttribute("href"))!);
    expect(desk.url()).toBe(`${demo.url}/console/runs/ticket-4833`);
    await desk.getByRole("button", { name: "Roll back" }).click();
    await desk.getByRole("dialog").getByRole("button", { name: "Roll back" }).click();
    await page.locator("#back", { hasText: "900 EUR" }).waitFor();
    expect(await page.locator("#paid").innerText()).toBe("165 EUR");
    expect(refundsOf(demo.desk(), "A-1402")).toMatchObject([{ amount: 900, status: "reversed" }]);
    expect(await page.locator(".next").innerText()).toContain("Roll back ticket-4826");
    await desk.locator("#rollback").getByText("done", { exact: true }).waitFor();
    expect(await desk.locator("#rollback").innerText()).not.toContain("fully reversible");
    expect(faults).toEqual([]);
    expect(await demo.stop()).toBe(0);
    await page.getByText("The demo has stopped").waitFor();

    const third = await liveDemo(false);
    expect(refundsOf(third.desk(), "A-1402")).toHaveLength(1);
    await third.stop();
  });

  it("gives up in words when you deny, and your words stay text", async () => {
    verifies("beyond.demo.deny", "beyond.demo.escaped");
    const demo = await liveDemo();
    const { page, faults } = await openShop(demo.shop, "light", 1280);
    expect([await inaccessible(page), await scrollsSideways(page)]).toEqual([[], false]);
    const note = `<img src=x onerror="document.title='broken'">`;
    await demo.post(`/approvals/${demo.request}/deny`, { note });
    await words(page).getByText(`I gave up: demo-operator denied the refund: ${note}`).waitFor();
    expect(await page.locator("img").count()).toBe(0);
    expect(await page.title()).toContain("Pier 7");
    expect(refundsOf(demo.desk(), "A-1402")).toEqual([]);
    expect(demo.desk().contacts["c-774"].note).toBe("no refund for A-1402");
    await until(() => demo.out().includes("agent: ticket-4833: I gave up"), "the agent's words");
    expect(faults).toEqual([]);
    await demo.stop();
  });

  it("takes your offer", async () => {
    verifies("beyond.demo.offer");
    const demo = await liveDemo();
    const args = { order: "A-1402", amount: 450, currency: "EUR", customer: "Mara Lind" };
    await demo.post(`/approvals/${demo.request}/deny`, { offer: { args } });
    const ticket = () => demo.desk().tickets["ticket-4833"];
    await until(() => ticket().state === "closed", "the agent to act");
    expect(ticket().words).toContain("denied 900 EUR and offered 450 EUR. I took the offer");
    expect(refundsOf(demo.desk(), "A-1402")).toMatchObject([{ amount: 450, status: "paid" }]);
    const { page } = await openShop(demo.link, "light", 1280);
    await page.click("button");
    await page.waitForURL(/\/console$/);
    await page.goto(`${demo.url}/console/approvals`);
    await page
      .locator("#decided-lately")
      .getByText("The agent made the call: step 1 succeeded, which needed no approval")
      .waitFor();
    await demo.stop();
  });

  it("can be contained after a conflict, and its incident lists the remaining tasks", async () => {
    verifies(
      "beyond.incidents.undone-since",
      "beyond.incidents.lift-returns",
      "beyond.incidents.own-keys",
      "beyond.incidents.key-words",
    );
    const demo = await liveDemo();
    await demo.post("/runs/ticket-4817/rollback", { confirm: true });
    const job = async (path: string) =>
      (await (
        await fetch(`${demo.url}/v1${path}`, { headers: { authorization: `Bearer ${demo.key("admin")}` } })
      ).json()) as { job: { id: string; state: string } };
    await until(async () => (await job("/runs/ticket-4817/rollback")).job.state === "done", "the rollback");
    const { page } = await openShop(`${demo.url}/console/login`, "light", 1280);
    await page.getByLabel("API key or OIDC token").fill(demo.key("admin"));
    await page.getByRole("button", { name: "Log in" }).click();
    await page.waitForURL(/\/console$/);
    await page.goto(`${demo.url}/console/runs/ticket-4817`);
    await page.locator("#rollback").getByText("undo failed").waitFor();
    expect(await page.locator("#rollback").innerText()).not.toContain("Undone after this rollback");

    const contained = await demo.post(
      "/contain",
      { actor: "support-agent", reason: "wrong refunds", confirm: true },
      "admin",
    );
    const { job: started } = (await contained.json()) as { job: { id: string } };
    await until(async () => (await job(`/contain/${started.id}`)).job.state === "done", "the containment");
    await page.goto(`${demo.url}/console/runs/ticket-4817`);
    await page.locator("#rollback").getByText("Undone after this rollback: step 3.").waitFor();

    await page.goto(`${demo.url}/console/incidents`);
    await page.getByRole("link", { name: "support-agent" }).click();
    await page.getByLabel("Note").fill(`the agent's key was ${demo.key("agent")}`);
    await page.getByRole("button", { name: "Add the note" }).click();
    await page.getByText("the agent's key was [REDACTED:svc_key]").first().waitFor();
    const incident = page.url().split("#")[0];
    await page.getByRole("button", { name: "Lift" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Lift" }).click();
    await page.getByText("1 halt was lifted.").waitFor();
    expect(page.url()).toBe(incident);
    expect(await page.locator("#tasks").innerText()).not.toContain("Lift a halt");
    expect(await page.locator("#timeline").textContent()).toContain("key support-agent: disabled");
    await demo.stop();
  });

  it("is not started a second time over the first, whose keys stay valid", async () => {
    verifies("beyond.demo.once");
    const demo = await liveDemo();
    const second = spawn(process.execPath, ["dist/cli/demo.js"], {
      cwd: clone.folder,
      env: { PATH: process.env["PATH"], HOME: process.env["HOME"], PORT: "0" },
    });
    let said = "";
    second.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    expect(await new Promise((resolve) => second.once("exit", resolve))).toBe(1);
    expect(said).toContain("a demo of this clone is running: stop it with Ctrl-C");
    await demo.post("/halt", { reason: "lunch" }, "admin");
    await demo.stop();
  });
});
