/** The parts of a call that may be written down, compared with a corpus and with the bounds of the interface. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { redactPart } from "../../src/capture/redact.ts";
import type { JsonValue } from "../../src/kernel/json/json.ts";
import { readManifestEntry } from "../../src/rules/manifest/load.ts";
import { verifies } from "../support/verifies.ts";

interface Case {
  name: string;
  in: JsonValue;
  out?: JsonValue;
  paths?: string[];
  /** Found only while personal data is redacted. */
  pii?: boolean;
}
interface Corpus {
  secrets: Record<string, string[]>;
  must: Case[];
  must_not: Case[];
}

const corpus = readCorpus();

function readCorpus(): Corpus {
  const text = readFileSync(new URL("../cases/capture/redaction.yaml", import.meta.url), "utf8");
  const raw = parse(text) as Corpus;
  let filled = JSON.stringify(raw);
  for (const [name, parts] of Object.entries(raw.secrets))
    filled = filled.replaceAll(`<${name}>`, parts.join(""));
  return JSON.parse(filled) as Corpus;
}

function manifestWith(paths: string[] = []) {
  return readManifestEntry({ tool: "t", effect: "read", permission: "p", audit: { redaction: paths } });
}

const redact = (one: Case, pii = true) =>
  redactPart("args", one.in, { manifest: manifestWith(one.paths), pii });

describe("the corpus", () => {
  verifies("ops.redaction.credentials", "ops.redaction.manifest-paths");
  verifies("ops.redaction.pii-email", "ops.redaction.pii-phone", "ops.redaction.pii-ssn");

  it.each(corpus.must.map((one) => [one.name, one] as const))("takes out: %s", async (_, one) => {
    expect(await redact(one)).toEqual({ value: one.out, changed: true });
  });

  it.each(corpus.must_not.map((one) => [one.name, one] as const))("leaves alone: %s", async (_, one) => {
    expect(await redact(one)).toEqual({ value: one.in, changed: false });
  });

  it("has cards and IBANs with right and with wrong checksums", () => {
    verifies("ops.redaction.pii-card-luhn", "ops.redaction.pii-iban");
    const names = (list: Case[], word: RegExp) => list.filter(({ name }) => word.test(name)).length;
    expect(names(corpus.must, /card/)).toBeGreaterThanOrEqual(3);
    expect(names(corpus.must_not, /card.*Luhn/)).toBe(1);
    expect(names(corpus.must, /IBAN/)).toBe(2);
    expect(names(corpus.must_not, /IBAN.*checksum/)).toBe(1);
  });

  it("leaves personal data alone if configured, and credentials never", async () => {
    verifies("ops.redaction.pii-switch");
    for (const one of corpus.must) {
      const { value } = await redact(one, false);
      expect([one.name, value]).toEqual([one.name, one.pii ? one.in : one.out]);
    }
  });
});

describe("the bounds", () => {
  const kept = (value: JsonValue) => redactPart("args", value, { manifest: null, pii: true });

  it("cuts strings over 20,000 characters", async () => {
    verifies("ops.redaction.long-strings", "ops.limit.capture-string");
    const whole = "ab ".repeat(6_667).slice(0, 20_000);
    expect(await kept(whole)).toEqual({ value: whole, changed: false });
    expect(await kept(`${whole}c`)).toEqual({ value: whole, changed: true });
    expect(await kept({ deep: [`${whole}${whole}`] })).toEqual({ value: { deep: [whole] }, changed: true });
  });

  it("cuts lists and objects to 200 entries", async () => {
    verifies("ops.redaction.many-entries", "ops.limit.capture-entries");
    const list = Array.from({ length: 201 }, (_, i) => i);
    expect((await kept(list.slice(0, 200))).changed).toBe(false);
    expect(await kept(list)).toEqual({ value: list.slice(0, 200), changed: true });
    const object = Object.fromEntries(list.map((i) => [`k${i}`, i]));
    expect(Object.keys((await kept(object)).value as object)).toEqual(list.slice(0, 200).map((i) => `k${i}`));
  });

  it("cuts below 12 levels", async () => {
    verifies("ops.redaction.deep-nesting", "ops.limit.capture-nesting");
    const nested = (levels: number, inside: JsonValue): JsonValue =>
      levels === 0 ? inside : { a: nested(levels - 1, inside) };
    expect(await kept(nested(12, 1))).toEqual({ value: nested(12, 1), changed: false });
    expect(await kept(nested(13, 1))).toEqual({ value: nested(12, "[CUT]"), changed: true });
    expect(await kept(nested(11, [[1]]))).toEqual({ value: nested(11, ["[CUT]"]), changed: true });
  });

  it("does not leave half a credential at the cut", async () => {
    const secret = ["ghp_", "16C7e42F292c6912E7710c838347Ae178B4a"].join("");
    for (const at of [19_999, 19_980, 19_960, 19_950]) {
      const text = `${"x ".repeat(at / 2)}${secret} and more`.padEnd(60_000, " y");
      const { value } = await kept(text);
      expect(value).not.toContain("ghp_");
      expect((value as string).length).toBeLessThanOrEqual(20_000);
    }
    const key = `-----BEGIN RSA PRIVATE ${"KEY"}-----\n${"MIIEowIBAAKCAQEA".repeat(300)}\n-----END RSA PRIVATE ${"KEY"}-----`;
    const { value } = await kept(`${"x ".repeat(9_500)}${key}${" z".repeat(20_000)}`);
    expect(value).not.toContain("MIIEow");
  });

  it("does not cut a character in two", async () => {
    const { value } = await kept(`${"a".repeat(19_999)}😀 and on`.padEnd(30_000));
    expect(value).toBe("a".repeat(19_999));
  });

  it("stays quick on names that all become the same", async () => {
    const names = Array.from({ length: 200 }, (_, i) => [`p${i}@example.com`, i] as const);
    const many = Array.from({ length: 200 }, () => Object.fromEntries(names));
    const { value } = await kept(many);
    const first = (value as JsonValue[])[0] as Record<string, JsonValue>;
    expect(Object.keys(first)).toHaveLength(200);
    expect(first["[PII:email]#200"]).toBe(199);
  });

  it("redacts the result by the manifest's paths into it", async () => {
    const manifest = manifestWith(["$result.token", "$args.id"]);
    const { value } = await redactPart("result", { id: 1, token: "t" }, { manifest, pii: true });
    expect(value).toEqual({
      id: 1,
      token: "[REDACTED]",
    });
  });
});
