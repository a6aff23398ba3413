/** `svc approvers add`: writes the file of the people whose passkeys approve, without asking any server. */
import { createPublicKey, type KeyObject } from "node:crypto";
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { type ApproversDoc, parseApprovers } from "../../../auth/approvers.ts";
import { readTextFileSync, writeFileAtomic } from "../../../config/files.ts";
import { type PasskeyAlgorithm, passkeyCode } from "../../../govern/signing/payload.ts";
import { invalidError } from "../../../kernel/errors.ts";
import { globalOptions, type RegisterCommand } from "../../context.ts";
import { escapeControls } from "../../io.ts";

export const registerApprovers: RegisterCommand = (program, context) => {
  const { io } = context;
  const group = program.command("approvers").description("Manage the file of the people who sign approvals");
  globalOptions(group.command("add <file>").description("Add a passkey to an approvers file; works offline"))
    .requiredOption("--name <name>", "the person's name, as in the ledger")
    .option("--groups <list>", "the person's groups, comma-separated")
    .requiredOption("--key <file>", "the passkey's public key (PEM)")
    .requiredOption("--code <code>", "the code that the person reads out from their screen")
    .requiredOption("--id <id>", "the passkey's credential id, from svc passkeys list --json")
    .option("--ledger <name>", "for a new file: ledger_origin of the service")
    .option("--rp-id <host>", "for a new file: the passkeys' relying party")
    .option("--origin <urls>", "for a new file: origins at which people sign, comma-separated")
    .action(async (file: string, flags: Record<string, string>) => {
      const path = resolve(io.cwd, file);
      const key = publicKey(resolve(io.cwd, flags["key"]!));
      const spki = key.export({ type: "spki", format: "der" });
      if (passkeyCode(spki) !== flags["code"])
        throw invalidError(
          "--code: is not the code of this key; ask the person again, and do not use the key",
        );
      const doc = existsSync(path) ? parseApprovers(readTextFileSync(path), path) : newFile(flags);
      const entry = {
        id: flags["id"]!,
        public_key: spki.toString("base64"),
        alg: algorithmOf(key),
        revoked: false,
      };
      const text = `${JSON.stringify(withKey(doc, flags, entry), null, 2)}\n`;
      parseApprovers(text, path);
      await writeFileAtomic(path, text, 0o644);
      io.out(`${file}: ${escapeControls(flags["name"]!)} signs with ${passkeyCode(spki)}`);
    });
};

const listOf = (text: string | undefined): string[] =>
  (text ?? "").split(",").flatMap((part) => part.trim() || []);

function publicKey(path: string): KeyObject {
  try {
    return createPublicKey(readTextFileSync(path));
  } catch {
    throw invalidError("--key: is not a public key in PEM form");
  }
}

function algorithmOf(key: KeyObject): PasskeyAlgorithm {
  const { crv } = key.export({ format: "jwk" });
  if (key.asymmetricKeyType === "rsa") return "RS256";
  if (key.asymmetricKeyType === "ed25519") return "EdDSA";
  if (crv === "P-256") return "ES256";
  throw invalidError("--key: must be a P-256, RSA or Ed25519 key");
}

function newFile(flags: Record<string, string>): ApproversDoc {
  const { ledger, rpId: rp_id, origin } = flags;
  if (ledger === undefined || rp_id === undefined || origin === undefined)
    throw invalidError("a new file needs --ledger, --rp-id and --origin");
  return { version: 1, ledger, rp_id, origins: listOf(origin), approvers: [], require: [] };
}

type ApproverKey = ApproversDoc["approvers"][number]["keys"][number];

function withKey(doc: ApproversDoc, flags: Record<string, string>, key: ApproverKey): ApproversDoc {
  const name = flags["name"]!;
  const groups = listOf(flags["groups"]);
  const known = doc.approvers.find((one) => one.name === name);
  if (known === undefined) return { ...doc, approvers: [...doc.approvers, { name, groups, keys: [key] }] };
  const changed = {
    name,
    groups: flags["groups"] === undefined ? known.groups : groups,
    keys: [...known.keys.filter(({ id }) => id !== key.id), key],
  };
  return { ...doc, approvers: doc.approvers.map((one) => (one === known ? changed : one)) };
}
