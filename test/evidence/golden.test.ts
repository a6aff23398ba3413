/** Evidence from the first days must verify for ever, in every verifier. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { verifyAnchors } from "../../src/evidence/anchors/anchor-verify.ts";
import { verifyBundle } from "../../src/evidence/bundles/verify-bundle.ts";
import { readTrustedKeys } from "../../src/evidence/key-files.ts";
import { verifyLedgerFile } from "../../src/evidence/verify-ledger.ts";
import { ROOT } from "../support/files.ts";
import { askBrowser, askPython, askTypeScript, python } from "./support/verifiers.ts";

const at = (name: string) => join(ROOT, "test/golden/evidence", name);
const HEAD = "5fe046d521edd7e88e2c2ee16257e2cd9631908bfcb9e114f4c6e1ac2a4d7ff2";
const TREE_ROOT = "4d2038664db1fc3a98ae7dc7d497ad8d4c97c5199e148af038db3a7f41dd6dea";
const KEY_ID = "ef82598d8c3d0f3c";
const trusted = readTrustedKeys([at("evidence.pub")]);
const key = trusted.get(KEY_ID)!;

describe("frozen evidence", () => {
  it("the ledger verifies, with its head and its tree", async () => {
    expect(await verifyLedgerFile(at("ledger.jsonl"), { tree: true })).toMatchObject({
      records: 120,
      head: HEAD,
      first_bad: null,
      root: TREE_ROOT,
    });
  });

  it("the bundles verify against the key of that day", async () => {
    expect(await verifyBundle(at("ledger.bundle.json"), trusted)).toMatchObject({
      ok: true,
      report: { kind: "ledger", count: 120, head: HEAD, trust: "trusted", key_id: KEY_ID },
    });
    expect(await verifyBundle(at("run.bundle.json"), trusted)).toMatchObject({
      ok: true,
      report: { kind: "run", run_id: "nightly-close.2026-06", tree_size: 120, head: HEAD, trust: "trusted" },
    });
  });

  it("the anchors hold", async () => {
    const check = (sizes: Iterable<number>) => verifyLedgerFile(at("ledger.jsonl"), { sizes });
    const { findings } = await verifyAnchors(at("anchors.jsonl"), check, trusted);
    expect(findings.map(({ records, trust, problem }) => [records, trust, problem])).toEqual(
      [0, 17, 64, 120].map((records) => [records, "trusted", null]),
    );
  });

  it("the other verifiers agree", async () => {
    const bundles = [at("ledger.bundle.json"), at("run.bundle.json")];
    for (const ask of [askTypeScript, askBrowser]) {
      expect([...(await ask("ledger", [at("ledger.jsonl")], key)).values()]).toEqual([null]);
      expect([...(await ask("bundle", bundles, key)).values()]).toEqual([null, null]);
    }
    expect([...(await askPython("ledger", [at("ledger.jsonl")], at("evidence.pub"))).values()]).toEqual([
      null,
    ]);
    expect([...(await askPython("bundle", bundles, at("evidence.pub"))).values()]).toEqual([null, null]);
    const said = await python([
      "verify-anchors",
      "--pub",
      at("evidence.pub"),
      at("anchors.jsonl"),
      at("ledger.jsonl"),
    ]);
    expect(said.join("\n")).toContain(`ok: 4 anchors hold for the ledger of 120 records, head ${HEAD}`);
  });

  it("is read as it lies, byte for byte", () => {
    const lines = readFileSync(at("ledger.jsonl"), "utf8").trimEnd().split("\n");
    expect(lines).toHaveLength(120);
    expect(readFileSync(at("ledger.bundle.json"), "utf8")).toContain(`\n${lines[7]!},\n${lines[8]!},\n`);
  });
});
