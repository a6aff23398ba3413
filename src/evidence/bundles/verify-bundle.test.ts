import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  BUNDLE_TAMPERS,
  type Bundle,
  bundleOf,
  EXPORTED_MS,
  freshKey,
  laidOut,
  PROOF_TAMPERS,
  seededBundle,
} from "../../../test/evidence/support/bundles.ts";
import { drafts, storeOf } from "../../../test/evidence/support/ledgers.ts";
import { seeded } from "../../../test/support/env.ts";
import { tempDir } from "../../../test/support/tmp.ts";
import { verifies } from "../../../test/support/verifies.ts";
import { sha256Hex } from "../../kernel/hash.ts";
import { toCanonicalJson } from "../../kernel/json/canonical.ts";
import type { JsonObject, JsonValue } from "../../kernel/json/json.ts";
import { verifySignature } from "../signing.ts";
import { verifyBundle } from "./verify-bundle.ts";

const key = freshKey();
const trusted = new Map([[key.key_id, key]]);
const nobody = new Map();
const folder = tempDir("bundles");
let files = 0;

function check(text: string | Uint8Array, keys: ReadonlyMap<string, typeof key> = trusted) {
  const file = join(folder, `${files++}.json`);
  writeFileSync(file, text);
  return verifyBundle(file, keys);
}

describe("a bundle", () => {
  it(`has the documented members, and signs the documented summary ${verifies(
    "contract.bundle.fields",
    "contract.bundle.domain",
    "contract.bundle.summary",
    "contract.bundle.key-id",
    "ops.bundle.records",
    "ops.bundle.head",
    "ops.bundle.signature",
  )}`, async () => {
    const store = await storeOf(drafts(1, 9));
    const bundle = JSON.parse(await bundleOf(store, key)) as Bundle;
    const { records, public_key, signature, proofs, ...summary } = bundle;
    expect(records.map((record) => toCanonicalJson(record))).toEqual(await store.records({ limit: 100 }));
    expect(summary).toMatchObject({
      format: "svc-bundle",
      version: 1,
      kind: "ledger",
      run_id: null,
      exported_ms: EXPORTED_MS,
    });
    expect(summary).toMatchObject({ head: (await store.head()).hash, count: 9, first_seq: 0, last_seq: 8 });
    expect(Object.keys(summary).sort()).toEqual([
      "count",
      "exported_ms",
      "first_seq",
      "format",
      "head",
      "key_id",
      "kind",
      "last_seq",
      "run_id",
      "tree",
      "version",
    ]);
    expect([proofs, public_key]).toEqual([{}, key.pem]);
    const raw = key.key.export({ type: "spki", format: "der" }).subarray(12);
    expect(summary["key_id"]).toBe(sha256Hex(raw).slice(0, 16));
    expect(verifySignature(key, "bundle", summary as JsonValue, signature as string)).toBe(true);
    expect(verifySignature(key, "anchor", summary as JsonValue, signature as string)).toBe(false);
  });

  it(`of one run proves each of its records ${verifies("contract.bundle.inclusion", "ops.evidence.verify-run-links")}`, async () => {
    const list = drafts(4, 40);
    const store = await storeOf(list);
    const run_id = list.find((draft) => draft.run_id !== undefined)!.run_id!;
    const text = await bundleOf(store, key, run_id);
    const bundle = JSON.parse(text) as Bundle;
    expect(Object.keys(bundle.proofs)).toEqual(bundle.records.map(({ seq }) => String(seq)));
    expect(bundle.records.every((record) => record["run_id"] === run_id)).toBe(true);
    expect(bundle["count"]).toBe(list.filter((draft) => draft.run_id === run_id).length);
    expect(await check(text)).toMatchObject({
      ok: true,
      report: { kind: "run", run_id, tree_size: 40, trust: "trusted" },
    });
  });

  it(`verifies, at every size of the ledger and for every run ${verifies(
    "ops.evidence.verify-hashes",
    "ops.evidence.verify-chain",
    "ops.evidence.verify-signature",
    "ops.evidence.verify-pub",
  )}`, async () => {
    for (let size = 0; size < 20; size++) {
      const list = drafts(size, size);
      const store = await storeOf(list);
      expect(await check(await bundleOf(store, key))).toMatchObject({
        ok: true,
        report: { count: size, kind: "ledger" },
      });
      for (const run_id of new Set(list.flatMap((draft) => draft.run_id ?? []))) {
        expect(await check(await bundleOf(store, key, run_id))).toMatchObject({
          ok: true,
          report: { run_id },
        });
      }
    }
  });

  it("of a run without records reports it", async () => {
    const store = await storeOf(drafts(1, 3));
    await expect(bundleOf(store, key, "nobody")).rejects.toThrow("unknown run nobody");
  });

  it(`without a trusted key shows only that it is consistent ${verifies("ops.evidence.verify-no-pub")}`, async () => {
    const { text } = await seededBundle(2, key);
    expect(await check(text, nobody)).toMatchObject({ ok: true, report: { trust: "self" } });
    const other = freshKey();
    const found = await check(text, new Map([[other.key_id, other]]));
    expect(found).toEqual({
      ok: false,
      problem: `it is signed with key ${key.key_id}, which is not a trusted key`,
    });
    const { public_key: _, ...without } = JSON.parse(text) as JsonObject;
    expect(await check(laidOut(without))).toMatchObject({ ok: true });
    expect(await check(laidOut(without), nobody)).toMatchObject({
      ok: false,
      problem: expect.stringContaining("--pub <file>"),
    });
  });

  it("verifies in any layout, and with its members in any order", async () => {
    for (const seed of [2, 3]) {
      const { text } = await seededBundle(seed, key);
      const bundle = JSON.parse(text) as JsonObject;
      const reversed = Object.fromEntries(Object.entries(bundle).reverse());
      const layouts = [
        JSON.stringify(bundle),
        JSON.stringify(reversed, null, 2),
        text.replaceAll("\n", "\r\n"),
        ` ${text} \n`,
      ];
      layouts.push(text.replaceAll('","', '" , "'), text.replace(",\n", ",\n\n"));
      for (const layout of layouts)
        expect(await check(layout), layout.slice(0, 80)).toMatchObject({ ok: true });
    }
  });
});

describe("a bundle that was changed", () => {
  it.each(Object.entries(BUNDLE_TAMPERS))(`does not pass: %s`, async (_, tamper) => {
    verifies("ops.evidence.verify-invalid", "contract.bundle.left-out");
    for (let seed = 0; seed < 8; seed++) {
      const { text, kind } = await seededBundle(seed, key);
      const changed = tamper(text, seeded(seed));
      for (const keys of [trusted, nobody])
        expect(await check(changed, keys), `${seed} ${kind}`).toMatchObject({ ok: false });
    }
  });

  it.each(Object.entries(PROOF_TAMPERS))("does not pass: %s", async (_, tamper) => {
    for (let seed = 1; seed < 16; seed += 2) {
      const { text, kind } = await seededBundle(seed, key);
      if (kind === "run")
        expect(await check(tamper(text, seeded(seed))), `${seed}`).toMatchObject({ ok: false });
    }
  });

  it.each<[string, (bundle: Bundle) => void, string]>([
    ["a left-out record", (b) => void b.records.splice(1, 1), "run_seq is 2 where 1 was due"],
    ["a left-out last record", (b) => void b.records.pop(), "records, and holds"],
    [
      "a record of another run",
      (b) => {
        b.records[0]!["run_id"] = "x";
      },
      "it was changed",
    ],
    [
      "a member too many",
      (b) => {
        b["x"] = 1;
      },
      "no signature covers",
    ],
    [
      "another head",
      (b) => {
        b["head"] = "0".repeat(64);
      },
      "what was signed is not what is here",
    ],
    [
      "version 2",
      (b) => {
        b["version"] = 2;
      },
      "not a svc-bundle of version 1",
    ],
    [
      "a short signature",
      (b) => {
        b["signature"] = "AAAA";
      },
      "64 bytes",
    ],
    [
      "a time as text",
      (b) => {
        b["exported_ms"] = "1";
      },
      "exported_ms",
    ],
  ])("says what is wrong: %s", async (_, change, problem) => {
    const { text } = await seededBundle(3, key);
    const bundle = JSON.parse(text) as Bundle;
    change(bundle);
    const found = await check(laidOut(bundle));
    expect(found).toMatchObject({ ok: false, problem: expect.stringContaining(problem) });
  });

  it("does not pass with bytes that aren't UTF-8", async () => {
    for (const seed of [2, 3]) {
      const { text } = await seededBundle(seed, key);
      const at = Buffer.from(text).indexOf('"event":"') + 9;
      const bytes = Buffer.concat([
        Buffer.from(text).subarray(0, at),
        Buffer.from([0xff]),
        Buffer.from(text).subarray(at),
      ]);
      expect(await check(bytes)).toMatchObject({ ok: false });
    }
  });
});

describe("anything but a bundle", () => {
  it("gets a message", async () => {
    mkdirSync(join(folder, "d"), { recursive: true });
    await expect(verifyBundle(join(folder, "missing"), nobody)).rejects.toThrow("does not exist");
    await expect(verifyBundle(join(folder, "d"), nobody)).rejects.toThrow("is a directory");
    await expect(verifyBundle("/dev/zero", nobody)).rejects.toThrow("is a device");
    await expect(check("")).rejects.toThrow("nothing to verify");
    expect(await check("[]")).toEqual({ ok: false, problem: "it is not a JSON object" });
    expect(await check("{}")).toEqual({ ok: false, problem: "it has no records" });
    expect(await check("hello")).toMatchObject({
      ok: false,
      problem: expect.stringContaining("cannot be read"),
    });
  });
});
