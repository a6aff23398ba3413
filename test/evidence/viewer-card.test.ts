/** The offline viewer draws a card again from a file, and says whether it is the one that was signed. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { launchBrowser } from "../support/browser.ts";
import { ROOT } from "../support/files.ts";
import { type SigningServer, signingServer } from "../support/signing.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { bundleOf, freshKey } from "./support/bundles.ts";

const folder = tempDir("viewer-card");
let s: SigningServer;
let browser: Browser;
// biome-ignore lint/suspicious/noExplicitAny: tests change cards freely
let card: any;
let bundle = "";

const fileOf = (name: string, content: unknown): string => {
  const path = join(folder, name);
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
};

beforeAll(async () => {
  s = await signingServer();
  browser = await launchBrowser();
  await s.enrol("ann");
  const { id, run_id } = await s.ask("pay.refund", { amount: 900.5, to: "<img src=x>" });
  card = (await s.call("ann", "GET", `/v1/approvals/${id}/card`)).body;
  const asked = await s.challenge("ann", { kind: "approval", id, decision: "approve" });
  expect((asked.body.payload as { shown_hash: string }).shown_hash).toBe(card.shown.hash);
  const signature = s.people["ann"]!.sign(asked.body);
  await s.call("ann", "POST", `/v1/approvals/${id}/approve`, { signature });
  bundle = await bundleOf(s.app.core.store, freshKey(), run_id);
});
afterAll(() => browser?.close());

/** What the viewer says of these files, without a network. */
async function viewed(files: string[], options: object = {}): Promise<{ text: string; page: Page }> {
  const context = await browser.newContext({ offline: true, ...options });
  const page = await context.newPage();
  await page.goto(pathToFileURL(join(ROOT, "viewer/index.html")).href);
  await page.setInputFiles("#picker", files);
  const shown = page.locator("#shown-card");
  await expect.poll(() => shown.isVisible()).toBe(true);
  const wanted = files.length > 1 ? /signed (?:exactly|another)|its own hash names/ : /./;
  await expect.poll(() => shown.innerText()).toMatch(wanted);
  return { text: await shown.innerText(), page };
}

describe("the viewer", () => {
  it("draws the card, and says that it is the signed one", async () => {
    verifies("beyond.signed.viewer-card");
    const files = [fileOf("run.json", bundle), fileOf("card.json", card)];
    const { text, page } = await viewed(files, { viewport: { width: 390, height: 844 } });
    expect(text).toContain("Equal ann signed exactly this card.");
    for (const part of [card.sentence, "900.5", "<img src=x>", card.reason, card.run_id, card.shown.hash])
      expect(text).toContain(part);
    expect(text).toContain("Not signed: the history, times, and the age of proofs.");
    if (process.env["SVC_PICTURES"])
      await page.screenshot({ path: `${process.env["SVC_PICTURES"]}/viewer-card.png` });
    await page.context().close();
  });

  it("says different for a card that was changed, by its own hash or by the signed one", async () => {
    verifies("beyond.signed.viewer-different");
    const changed = structuredClone(card);
    changed.shown.content.card.sentence = "Refund 1 EUR";
    const own = await viewed([fileOf("run2.json", bundle), fileOf("changed.json", changed)]);
    expect(own.text).toContain("Different");
    const { keyedHash } = await import("../../src/kernel/hash.ts");
    changed.shown.hash = keyedHash(changed.shown.key, changed.shown.content);
    const signed = await viewed([fileOf("run3.json", bundle), fileOf("changed2.json", changed)]);
    expect(signed.text).toContain("Different ann signed another card than this one.");
  });

  it("says no more than it knows without the signature", async () => {
    const { text } = await viewed([fileOf("alone.json", card)]);
    expect(text).toContain("Equal to its own hash");
  });

  it("cannot sign", () => {
    verifies("beyond.signed.viewer-no-signing");
    const page = readFileSync(join(ROOT, "viewer/index.html"), "utf8");
    expect(page).toContain("default-src 'none'");
    expect(page).not.toMatch(
      /navigator\.credentials|XMLHttpRequest|WebSocket|subtle\.sign|importKey\("pkcs8"/,
    );
  });
});

describe("the card", () => {
  it("has its signed part only where the approval has to be signed", async () => {
    const { id } = await s.ask("pay.plain");
    const plain = (await s.call("ann", "GET", `/v1/approvals/${id}/card`)).body;
    expect(plain).not.toHaveProperty("shown");
  });
});
