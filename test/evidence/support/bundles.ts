/** Bundles to try, and what somebody might do to them. */
import { ledgerBundle, runBundle } from "../../../src/evidence/bundles/bundle.ts";
import { newKeyPair, parseSigningKey, type SigningKey } from "../../../src/evidence/signing.ts";
import type { StateStore } from "../../../src/govern/port/store.ts";
import { toCanonicalJson } from "../../../src/kernel/json/canonical.ts";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import { type Dice, drafts, pick, storeOf, upTo } from "./ledgers.ts";
import { otherValue, rehash } from "./tamper.ts";

export const EXPORTED_MS = 1_790_000_000_000;

export function freshKey(): SigningKey {
  return parseSigningKey(newKeyPair().private_pem, "test key");
}

export async function textOf(parts: AsyncIterable<string>): Promise<string> {
  let text = "";
  for await (const part of parts) text += part;
  return text;
}

/** The whole-ledger bundle of a store, or that of one of its runs. */
export async function bundleOf(store: StateStore, key: SigningKey, run_id?: string): Promise<string> {
  return run_id === undefined
    ? textOf(ledgerBundle(store, key, EXPORTED_MS))
    : (await runBundle(store, run_id, key, EXPORTED_MS)).join("");
}

/** A bundle made from a seed: of a whole ledger, or of a run with several records. */
export async function seededBundle(
  seed: number,
  key: SigningKey,
): Promise<{ text: string; kind: "ledger" | "run" }> {
  const list = drafts(seed, 6 + (seed % 23));
  const store = await storeOf(list);
  const counts = new Map<string, number>();
  for (const { run_id } of list) if (run_id !== undefined) counts.set(run_id, (counts.get(run_id) ?? 0) + 1);
  const run = [...counts].find(([, count]) => count > 2)?.[0];
  const kind = seed % 2 === 0 || run === undefined ? "ledger" : "run";
  return { text: await bundleOf(store, key, kind === "run" ? run : undefined), kind };
}

export type Bundle = JsonObject & { records: JsonObject[]; proofs: { [seq: string]: string[] } };

/** In the layout that svc writes. */
export function laidOut(bundle: JsonObject): string {
  const { format, version, kind, run_id, exported_ms, records, ...rest } = bundle as Bundle;
  const start = JSON.stringify({ format, version, kind, run_id, exported_ms }).slice(0, -1);
  return `${start},"records":[\n${records.map((record) => toCanonicalJson(record)).join(",\n")}\n],${toCanonicalJson(rest).slice(1)}\n`;
}

const change = (text: string, by: (bundle: Bundle) => void): string => {
  const bundle = JSON.parse(text) as Bundle;
  by(bundle);
  return laidOut(bundle);
};

const REQUIRED = ["format", "version", "kind", "exported_ms", "head", "count", "tree", "key_id", "signature"];

/** Every one of these makes a bundle that must not pass, with or without a trusted key. */
export const BUNDLE_TAMPERS: Readonly<Record<string, (text: string, dice: Dice) => string>> = {
  "a field of a record changed": (text, dice) =>
    change(text, ({ records }) => {
      const record = pick(dice, records);
      const name = pick(dice, Object.keys(record));
      record[name] = otherValue(dice, record[name]!);
    }),
  "the signature in hex": (text) =>
    change(text, (bundle) => {
      bundle["signature"] = Buffer.from(String(bundle["signature"]), "base64").toString("hex");
    }),
  "the public key without its wrapping": (text) =>
    change(text, (bundle) => {
      const der = Buffer.from(String(bundle["public_key"]).split("\n")[1]!, "base64");
      bundle["public_key"] = der.subarray(-32).toString("base64");
    }),
  "a record changed and hashed again": (text, dice) =>
    change(text, (bundle) => {
      const i = upTo(dice, bundle.records.length);
      const forged = rehash(toCanonicalJson(bundle.records[i]!), (record) => {
        record["actor"] = "somebody else";
      });
      bundle.records[i] = JSON.parse(forged) as JsonObject;
    }),
  "a record left out": (text, dice) =>
    change(text, ({ records }) => void records.splice(upTo(dice, records.length), 1)),
  "a record left out and the counts adjusted": (text, dice) =>
    change(text, (bundle) => {
      const [gone] = bundle.records.splice(upTo(dice, bundle.records.length), 1);
      delete bundle.proofs[String(gone!["seq"])];
      bundle["count"] = bundle.records.length;
      bundle["first_seq"] = bundle.records[0]?.["seq"] ?? null;
      bundle["last_seq"] = bundle.records.at(-1)?.["seq"] ?? null;
    }),
  "a record left out and the run numbered and linked anew": (text, dice) =>
    change(text, (bundle) => {
      bundle.records.splice(upTo(dice, bundle.records.length), 1);
      let prev = "";
      bundle.records = bundle.records.map((record, i) => {
        const forged = JSON.parse(
          rehash(toCanonicalJson(record), (fields) => {
            if (fields["run_seq"] !== undefined) fields["run_seq"] = i;
            if (prev !== "") fields["prev"] = prev;
          }),
        ) as JsonObject;
        prev = forged["hash"] as string;
        return forged;
      });
      bundle["count"] = bundle.records.length;
    }),
  "a record doubled": (text, dice) =>
    change(text, ({ records }) => {
      const i = upTo(dice, records.length);
      records.splice(i, 0, records[i]!);
    }),
  "two records swapped": (text) =>
    change(text, ({ records }) => void records.splice(0, 2, records[1]!, records[0]!)),
  "the records reversed": (text) => change(text, ({ records }) => void records.reverse()),
  "all records left out": (text) => change(text, ({ records }) => void records.splice(0)),
  "a member changed": (text, dice) =>
    change(text, (bundle) => {
      const name = pick(
        dice,
        REQUIRED.filter((field) => field !== "tree"),
      );
      bundle[name] = otherValue(dice, bundle[name]!);
    }),
  "a member removed": (text, dice) => change(text, (bundle) => void delete bundle[pick(dice, REQUIRED)]),
  "a member added": (text) =>
    change(text, (bundle) => {
      bundle["note"] = "x";
    }),
  "the tree changed": (text, dice) =>
    change(text, (bundle) => {
      const tree = bundle["tree"] as JsonObject;
      const name = pick(dice, ["size", "root"]);
      tree[name] = otherValue(dice, tree[name]!);
    }),
  "the tree with a further member": (text) =>
    change(text, (bundle) => {
      (bundle["tree"] as JsonObject)["x"] = 1;
    }),
  "another run's name": (text) =>
    change(text, (bundle) => {
      bundle["run_id"] = bundle["run_id"] === null ? "r" : `${String(bundle["run_id"])}x`;
    }),
  "the other kind": (text) =>
    change(text, (bundle) => {
      bundle["kind"] = bundle["kind"] === "run" ? "ledger" : "run";
    }),
  "the signature of another key": (text) =>
    change(text, (bundle) => {
      const other = freshKey();
      bundle["signature"] = other.sign("bundle", { x: 1 } as JsonValue);
    }),
  "another key's public half": (text) =>
    change(text, (bundle) => {
      bundle["public_key"] = freshKey().pem;
    }),
  "text behind the end": (text) => `${text}{}\n`,
  "a torn end": (text, dice) => text.slice(0, text.length - 2 - upTo(dice, text.length - 4)),
  "a byte order mark": (text) => `\ufeff${text}`,
  "a key doubled": (text) => text.replace('"count":', '"count":0,"count":'),
  "a comma too many": (text) => text.replace("\n],", ",\n],"),
  "a comma too few": (text) => text.replace(",\n{", "\n{"),
  "a number spelled otherwise": (text) => text.replace(/"exported_ms":(\d+)/, '"exported_ms":$1.0'),
};

const onRun = (by: (bundle: Bundle, dice: Dice) => void) => (text: string, dice: Dice) =>
  change(text, (bundle) => by(bundle, dice));
const someProof = (bundle: Bundle, dice: Dice): string => pick(dice, Object.keys(bundle.proofs));

/** Games with inclusion proofs, for bundles of a run. */
export const PROOF_TAMPERS: Readonly<Record<string, (text: string, dice: Dice) => string>> = {
  "a proof too long": onRun(
    (bundle, dice) => void bundle.proofs[someProof(bundle, dice)]!.push("0".repeat(64)),
  ),
  "a proof too short": onRun((bundle, dice) => {
    const seq = someProof(bundle, dice);
    if (bundle.proofs[seq]!.pop() === undefined) delete bundle.proofs[seq];
  }),
  "a proof removed": onRun((bundle, dice) => void delete bundle.proofs[someProof(bundle, dice)]),
  "a proof for nothing": onRun((bundle) => {
    bundle.proofs["99999"] = [];
  }),
  "a proof changed": onRun((bundle, dice) => {
    const proof = bundle.proofs[someProof(bundle, dice)]!;
    if (proof.length === 0) proof.push("0".repeat(64));
    else proof[upTo(dice, proof.length)] = "f".repeat(64);
  }),
  "a proof with its sides swapped": onRun((bundle, dice) => {
    const proof = bundle.proofs[someProof(bundle, dice)]!;
    if (proof.length < 2) proof.push("0".repeat(64));
    else proof.reverse();
  }),
  "a tree of no size": onRun((bundle) => {
    (bundle["tree"] as JsonObject)["size"] = 0;
  }),
  "a tree smaller than a record's place": onRun((bundle) => {
    (bundle["tree"] as JsonObject)["size"] = bundle.records.at(-1)!["seq"] as number;
  }),
  "no proofs": onRun((bundle) => void delete (bundle as JsonObject)["proofs"]),
  "proofs that are a list": onRun((bundle) => {
    (bundle as JsonObject)["proofs"] = [];
  }),
  "a proof that is a text": onRun((bundle, dice) => {
    (bundle.proofs as JsonObject)[someProof(bundle, dice)] = "0".repeat(64);
  }),
};
