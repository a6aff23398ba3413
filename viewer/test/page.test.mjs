// The built page in a real browser, opened from disk as an auditor would: `node --test viewer/test`. Where there is no
// Chromium these tests say so and are passed over.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { findProgram } from "../../scripts/programs.mjs";
import { makeAnchor, makeBundle, makeLedger, makeSigner, seal, toLines } from "./evidence.mjs";

const VIEWER = fileURLToPath(new URL("..", import.meta.url));
const HOSTILE = '"><img src=x onerror="document.title=1"><script>document.title=2</script>';
const executablePath = await findProgram("chromium");

test("index.html is what its sources give", () => {
  const { status, stderr } = spawnSync(process.execPath, [join(VIEWER, "build.mjs"), "--check"], {
    encoding: "utf8",
  });
  assert.equal(status, 0, stderr);
});

describe("the page", { skip: executablePath === undefined ? "no Chromium here" : false }, () => {
  const signer = makeSigner();
  const records = makeLedger(300);
  const folder = mkdtempSync(join(tmpdir(), "svc-viewer-"));
  const file = (name, content) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  let browser;

  before(async () => {
    browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
  });
  after(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** The page with some files opened; it fails the test on any error, blocked script or request. */
  async function opened(files, options = {}) {
    const context = await browser.newContext({
      offline: true,
      viewport: { width: 1200, height: 900 },
      ...options,
    });
    const page = await context.newPage();
    const wrong = [];
    page.on("pageerror", (error) => wrong.push(error.message));
    page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
    page.on("request", (request) => /^(file|blob):/.test(request.url()) || wrong.push(request.url()));
    await page.goto(pathToFileURL(join(VIEWER, "index.html")).href);
    if (files.length > 0) await page.setInputFiles("#picker", files);
    const done = async () => {
      await context.close();
      assert.deepEqual(wrong, []);
    };
    return { page, done };
  }

  const headline = (page, text) => page.getByRole("heading", { name: text }).waitFor({ timeout: 300_000 });

  test("a good ledger, its records and one of them", async () => {
    const { page, done } = await opened([file("ledger.jsonl", toLines(records))]);
    await headline(page, "The chain holds");
    assert.match(await page.textContent("#verdict"), /Not checked: whether the end was cut off/);
    const rows = page.locator("#list").getByRole("option");
    await rows.first().waitFor();
    assert.ok((await rows.count()) < 60, "only the visible rows exist");
    await page.focus("#list");
    await page.keyboard.press("End");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Record 299" }).waitFor();
    assert.ok((await page.textContent("#fields")).includes(records[299].hash));
    await page.keyboard.press("Escape");
    await page.fill("#search", "seq:41");
    await page.getByText("1 found").waitFor();
    await done();
  });

  test("a broken ledger shows where, and hostile text stays text", async () => {
    const broken = [...records];
    broken[150] = { ...records[150], actor: HOSTILE, [HOSTILE]: HOSTILE };
    const { page, done } = await opened([file(`${"x".repeat(20)}<b>.jsonl`, toLines(broken))]);
    await headline(page, "INVALID");
    assert.match(
      await page.textContent("#problem"),
      /record 150 \(line 151\): its content does not match its hash/,
    );
    await page.getByRole("button", { name: "Show it" }).click();
    await page.getByRole("heading", { name: "Record 150" }).waitFor();
    assert.ok((await page.textContent("#fields")).includes(HOSTILE));
    assert.equal(await page.locator("main img, dialog img, dialog script").count(), 0);
    assert.match(await page.title(), /^INVALID/);
    await done();
  });

  test("a bundle before and after its key is trusted", async () => {
    const made = makeBundle(records, signer, "run_1");
    const { page, done } = await opened([file("run.json", JSON.stringify(made))]);
    await headline(page, "Consistent, signer unknown");
    assert.match(await page.textContent("#checks"), /the key was not checked against a trusted key/);
    await page.fill("#key-text", signer.pem);
    await page.getByRole("button", { name: "Trust this key" }).click();
    await headline(page, "Verified");
    await page.getByRole("button", { name: /Stop trusting/ }).click();
    await page.fill("#key-text", makeSigner().pem);
    await page.getByRole("button", { name: "Trust this key" }).click();
    await headline(page, "INVALID");
    await done();
  });

  test("anchors against a ledger that was cut, dropped in any order, on a phone in the dark", async () => {
    const anchors = file(
      "anchors.jsonl",
      toLines([makeAnchor(records.slice(0, 10), signer), makeAnchor(records, signer)]),
    );
    const cut = file("cut.jsonl", toLines(records.slice(0, 200)));
    const phone = { viewport: { width: 390, height: 800 }, colorScheme: "dark" };
    const { page, done } = await opened([anchors, file("svc.pub", signer.pem), cut], phone);
    await headline(page, "INVALID");
    assert.match(
      await page.textContent("#problem"),
      /the ledger has 200 records but was anchored at 300: it has been truncated/,
    );
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= 390, `the page is ${width} wide on a phone of 390`);
    await done();
  });

  test("files that are no evidence, and a private key", async () => {
    const { page, done } = await opened([
      file("svc.key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
    ]);
    await page.getByRole("alert").getByText("is a private key").waitFor();
    await page.setInputFiles("#picker", [file("empty", "")]);
    await headline(page, "INVALID");
    await page.setInputFiles("#picker", [file("noise", Buffer.from([0xff, 0, 10, 1]))]);
    await page.getByText("not UTF-8").first().waitFor();
    await done();
  });

  test("dropping a file anywhere", async () => {
    const { page, done } = await opened([]);
    const text = toLines([seal(records[0])]);
    await page.evaluate((content) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([content], "dropped.jsonl"));
      for (const type of ["dragenter", "dragover", "drop"]) {
        document.body.dispatchEvent(
          new DragEvent(type, { dataTransfer: transfer, bubbles: true, cancelable: true }),
        );
      }
    }, text);
    await headline(page, "The chain holds");
    await done();
  });
});
