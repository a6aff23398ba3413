import { generateKeyPairSync } from "node:crypto";
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { tempDir } from "../../test/support/tmp.ts";
import { verifies } from "../../test/support/verifies.ts";
import { sha256Hex } from "../kernel/hash.ts";
import { readSigningKey, readTrustedKeys, writeKeyFiles } from "./key-files.ts";
import { newKeyPair, parsePublicKey, parseSigningKey, verifySignature } from "./signing.ts";

const pem = (der: Buffer): string =>
  `-----BEGIN PUBLIC KEY-----\n${der.toString("base64")}\n-----END PUBLIC KEY-----\n`;
const spki = (raw: Buffer): string =>
  pem(Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), raw]));

describe("key files", () => {
  it(`are written once, the private one for its owner only ${verifies("ops.evidence.keygen")}`, async () => {
    const prefix = join(tempDir(), "evidence");
    const files = await writeKeyFiles(prefix);
    expect([files.private_file, files.public_file]).toEqual([`${prefix}.key`, `${prefix}.pub`]);
    expect(statSync(files.private_file).mode & 0o777).toBe(0o600);
    const key = readSigningKey(files.private_file);
    const trusted = readTrustedKeys([files.public_file]);
    expect(trusted.get(files.key_id)?.pem).toBe(key.pem);
    const signature = key.sign("bundle", { a: 1 });
    expect(verifySignature(trusted.get(key.key_id)!, "bundle", { a: 1 }, signature)).toBe(true);
    expect(verifySignature(trusted.get(key.key_id)!, "bundle", { a: 2 }, signature)).toBe(false);
    const before = readFileSync(files.private_file, "utf8");
    await expect(writeKeyFiles(prefix)).rejects.toThrow("never overwritten");
    expect(readFileSync(files.private_file, "utf8")).toBe(before);
  });

  it("are not left behind by halves", async () => {
    const prefix = join(tempDir(), "half");
    writeFileSync(`${prefix}.pub`, "mine");
    await expect(writeKeyFiles(prefix)).rejects.toThrow("half.pub exists already");
    expect(existsSync(`${prefix}.key`)).toBe(false);
    await expect(writeKeyFiles(join(prefix, "missing", "x"))).rejects.toThrow("does not exist");
  });

  it("of the wrong kind are named in the message", () => {
    const folder = tempDir();
    const file = (name: string, text: string) => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const pair = newKeyPair();
    const secret = file("a.key", pair.private_pem);
    const open = file("a.pub", pair.public_pem);
    expect(() => readSigningKey(open)).toThrow("is a public key; give the .key file");
    expect(() => readTrustedKeys([secret])).toThrow("is a private key; give the .pub file");
    const rsaKey = file("rsa.key", rsa.privateKey.export({ type: "pkcs8", format: "pem" }) as string);
    expect(() => readSigningKey(rsaKey)).toThrow("is a rsa key; make an Ed25519 key");
    const rsaPub = file("rsa.pub", rsa.publicKey.export({ type: "spki", format: "pem" }) as string);
    expect(() => readTrustedKeys([rsaPub])).toThrow("is a rsa key; an Ed25519 public key is needed");
    const locked = generateKeyPairSync("ed25519").privateKey.export({
      type: "pkcs8",
      format: "pem",
      cipher: "aes-256-cbc",
      passphrase: "x",
    }) as string;
    expect(() => readSigningKey(file("locked.key", locked))).toThrow("is encrypted");
    expect(() => readSigningKey(file("cut.key", pair.private_pem.slice(0, 60)))).toThrow(
      "is not a PEM private key",
    );
    expect(() => readTrustedKeys([file("cut.pub", pair.public_pem.slice(0, 60))])).toThrow(
      "is not a PEM public key",
    );
    expect(() => readTrustedKeys([file("empty.pub", "")])).toThrow("is not a PEM public key");
    expect(() => readSigningKey("/dev/zero")).toThrow("is a device");
    expect(() => readSigningKey(folder)).toThrow("is a directory");
    expect(() => readSigningKey(file("large.key", "x".repeat(100_000)))).toThrow("is larger than");
    chmodSync(secret, 0o600);
  });
});

describe("a public key", () => {
  it("has one spelling", () => {
    const { public_pem } = newKeyPair();
    expect(parsePublicKey(public_pem, "k").key_id).toBe(
      sha256Hex(Buffer.from(public_pem.split("\n")[1]!, "base64").subarray(12)).slice(0, 16),
    );
    const spelled = [
      `x\n${public_pem}`,
      `${public_pem}x`,
      public_pem.replace("\n", "\n\n "),
      public_pem.replaceAll("-----", "----"),
    ];
    for (const text of spelled) expect(() => parsePublicKey(text, "k")).toThrow("k: is not a PEM public key");
    const last = public_pem.charAt(public_pem.indexOf("=") - 1);
    const loose = public_pem.replace(`${last}=`, `${String.fromCharCode(last.charCodeAt(0) + 1)}=`);
    expect(() => parsePublicKey(loose, "k")).toThrow();
  });

  it.each([
    ["zero", "00".repeat(32)],
    ["one", `01${"00".repeat(31)}`],
    ["one with its sign set", `01${"00".repeat(30)}80`],
    ["minus one", `ec${"ff".repeat(30)}7f`],
    ["order eight", "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"],
    ["the prime", `ed${"ff".repeat(30)}7f`],
    ["beyond the prime", `ff${"ff".repeat(31)}`],
  ])("that anybody can sign for is refused: %s", (_, raw) => {
    expect(() => parsePublicKey(spki(Buffer.from(raw, "hex")), "k")).toThrow("not a usable Ed25519 key");
  });
});

describe("a signature", () => {
  it("has one spelling, and belongs to its domain", () => {
    const key = parseSigningKey(newKeyPair().private_pem, "k");
    const signature = key.sign("bundle", { a: 1 });
    expect(verifySignature(key, "bundle", { a: 1 }, signature)).toBe(true);
    expect(verifySignature(key, "anchor", { a: 1 }, signature)).toBe(false);
    const loose = [
      `${signature}\n`,
      signature.replace("==", ""),
      signature.replaceAll("+", "-").replaceAll("/", "_"),
      "",
    ];
    for (const text of loose.filter((text) => text !== signature)) {
      expect(verifySignature(key, "bundle", { a: 1 }, text)).toBe(false);
    }
  });
});
