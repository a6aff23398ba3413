/**
 * Signatures of approvals inside a bundle. A record names a signature by the hash of its assertion, so the ledger
 * proves that it is the one that the person made.
 */

import { allRows } from "../../govern/port/pages.ts";
import type { StateStore } from "../../govern/port/store.ts";
import { planSubject } from "../../govern/signing/draft.ts";
import {
  assertionHash,
  namedAssertion,
  type PasskeyAlgorithm,
  type PasskeyAssertion,
  type SignedPayload,
  type StoredSignature,
} from "../../govern/signing/payload.ts";
import { SvcError } from "../../kernel/errors.ts";
import type { JsonValue } from "../../kernel/json/json.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import { corruptLedgerError } from "../ledger-tree.ts";

export interface CarriedSignature {
  payload: SignedPayload;
  assertion: PasskeyAssertion;
  public_key: string;
  alg: PasskeyAlgorithm;
  /** The signed plan, with the tool and the hash of the arguments of each call. */
  subject?: JsonValue;
}

type NamingRecord = Pick<LedgerRecord, "seq" | "event" | "run_id" | "detail">;

/** Events whose records name a signature. Text of other records that looks like one names nothing. */
const NAMING_EVENTS: ReadonlySet<string> = new Set(["approved", "plan_approved", "granted", "delegated"]);

/** The hash of the assertion that a record names, or null. */
export function assertionNamedBy({ event, detail }: { event: unknown; detail?: unknown }): string | null {
  if (typeof event !== "string" || !NAMING_EVENTS.has(event)) return null;
  return typeof detail === "string" ? namedAssertion(detail) : null;
}

/** Collects what the records of a new bundle name, and finds it in the store. */
export class NamedSignatures {
  private readonly named = new Map<string, NamingRecord>();
  private readonly purged = new Set<string>();

  add(line: string): void {
    if (!line.includes("; signed ") && !line.includes('"event":"purged"')) return;
    const record = JSON.parse(line) as LedgerRecord;
    if (record.event === "purged" && record.run_id !== undefined) this.purged.add(record.run_id);
    const hash = assertionNamedBy(record);
    if (hash !== null && !this.named.has(hash)) this.named.set(hash, record);
  }

  /** The signatures in the order of the records. Throws if one is missing whose run was not deleted. */
  async load(store: StateStore): Promise<CarriedSignature[]> {
    const found = new Map<string, CarriedSignature>();
    const read = new Set<string>();
    for (const record of this.named.values()) {
      const source = record.run_id ?? String(record.detail);
      if (read.has(source)) continue;
      read.add(source);
      for await (const one of signaturesFor(store, record)) found.set(assertionHash(one.assertion), one);
    }
    const carried: CarriedSignature[] = [];
    for (const [hash, record] of this.named) {
      const one = found.get(hash);
      if (one !== undefined) carried.push(one);
      else await this.assertDeleted(store, record);
    }
    return carried;
  }

  private async assertDeleted(store: StateStore, { seq, run_id }: NamingRecord): Promise<void> {
    if (run_id !== undefined && this.purged.has(run_id)) return;
    if (run_id !== undefined && (await store.get("runs", run_id)) === undefined)
      throw new SvcError("unavailable", `run ${run_id} was deleted during the export; export again`);
    throw corruptLedgerError(seq, "the signature that it names is not in the store");
  }
}

/** The stored signatures of the run, grant or delegation that a record belongs to. */
async function* signaturesFor(
  store: StateStore,
  { run_id, detail = "" }: NamingRecord,
): AsyncGenerator<CarriedSignature> {
  if (run_id === undefined) {
    const id = detail.slice(0, detail.indexOf(":"));
    const grant = await store.get("grants", id);
    const signature = grant?.internal.signature ?? (await store.get("delegations", id))?.signature;
    if (signature !== undefined) yield carriedOf(signature);
    return;
  }
  for await (const { doc } of allRows(store, "approvals", { owner: run_id }))
    for (const one of doc.internal.signatures ?? []) if (one.payload.kind !== "plan") yield carriedOf(one);
  for await (const { doc } of allRows(store, "plans", { owner: run_id }))
    for (const one of doc.internal.requests.flatMap(({ internal }) => internal.signatures ?? []))
      yield { ...carriedOf(one), subject: planSubject(doc) };
}

const carriedOf = ({ payload, assertion, key: { public_key, alg } }: StoredSignature): CarriedSignature => ({
  payload,
  assertion,
  public_key,
  alg,
});
