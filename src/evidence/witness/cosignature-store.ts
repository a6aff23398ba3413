/**
 * Stores the newest cosignature of each witness. Bundles include them, and they give the size at which a witness is
 * asked the next time.
 */

import type { StateStore } from "../../govern/port/store.ts";
import type { RuntimeEnv } from "../../kernel/env.ts";
import { SvcError } from "../../kernel/errors.ts";
import { asJson, fromJson } from "../../kernel/json/json.ts";
import { formatCountOf } from "../../kernel/text/phrases.ts";
import { EVENT_NAMES, type LedgerEvent } from "../../ledger/events.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import type { SigningKey } from "../signing.ts";
import { checkpointBody, signCheckpoint, type TreeHead, type WitnessCosignature } from "./checkpoint.ts";
import type { LedgerProofs } from "./proofs.ts";

export interface CosignedTreeHead extends TreeHead, WitnessCosignature {}

/** By key id of the witness. */
type KeptCosignatures = Readonly<Record<string, CosignedTreeHead>>;

const KEY = "witnesses";
/** Events by the service about itself. If only these are new, the ledger needs no new cosignature record. */
const OWN_EVENTS: ReadonlySet<LedgerEvent> = new Set(["witnessed", "probed"]);
const OTHER_EVENTS = EVENT_NAMES.filter((event) => !OWN_EVENTS.has(event));

export async function loadCosignatures(store: StateStore): Promise<KeptCosignatures> {
  return fromJson<KeptCosignatures>((await store.get("meta", KEY)) ?? {});
}

/** Stores cosignatures. Writes one `witnessed` record if the ledger has gained other events since. */
export async function storeCosignatures(
  store: StateStore,
  env: RuntimeEnv,
  actor: string,
  given: readonly CosignedTreeHead[],
): Promise<LedgerRecord[]> {
  if (given.length === 0) return [];
  const before = await loadCosignatures(store);
  const news: CosignedTreeHead[] = [];
  for (const one of given) if (await isNews(store, before[one.key_id], one)) news.push(one);
  return store.transact({
    needs: [["meta", KEY]],
    run(tx) {
      const kept = { ...fromJson<KeptCosignatures>(tx.get("meta", KEY) ?? {}) };
      for (const one of given) {
        const known = kept[one.key_id];
        if (known === undefined || known.origin !== one.origin || known.size <= one.size)
          kept[one.key_id] = one;
      }
      tx.put("meta", KEY, asJson(kept));
      if (news.length === 0) return [];
      return [tx.append({ event: "witnessed", actor, ts_ms: env.now(), detail: describe(news) })];
    },
  });
}

async function isNews(
  store: StateStore,
  known: CosignedTreeHead | undefined,
  { origin, size }: CosignedTreeHead,
): Promise<boolean> {
  const from = known?.origin === origin ? known.size : 0;
  if (from >= size) return false;
  const found = await store.records({ from, to: size - 1, event: OTHER_EVENTS, limit: 1 });
  return found.length > 0;
}

function describe(news: readonly CosignedTreeHead[]): string {
  const sizes = new Map<number, string[]>();
  for (const { size, name } of news) sizes.set(size, [...(sizes.get(size) ?? []), name]);
  return [...sizes]
    .map(
      ([size, names]) =>
        `checkpoint of ${formatCountOf(size, "record")} cosigned by ${names.sort().join(", ")}`,
    )
    .join("; ");
}

/** A cosigned checkpoint inside a bundle. */
export interface CarriedCheckpoint {
  note: string;
  /** Consistency proof from the checkpoint's tree to the bundle's. */
  consistency: string[];
}

/**
 * Stored checkpoints for a bundle over the first `size` records, signed with the bundle's key. Throws if the ledger
 * differs from the one that a witness cosigned.
 */
export async function carriedCheckpoints(
  kept: KeptCosignatures,
  proofs: LedgerProofs,
  size: number,
  key: SigningKey,
): Promise<CarriedCheckpoint[]> {
  const bodies = new Map<string, { head: CosignedTreeHead; lines: string }>();
  for (const one of Object.values(kept)) {
    if (one.size > size) continue;
    const body = checkpointBody(one);
    bodies.set(body, { head: one, lines: (bodies.get(body)?.lines ?? "") + one.line });
  }
  const carried: CarriedCheckpoint[] = [];
  for (const { head, lines } of bodies.values()) {
    if ((await proofs.root(head.size)) !== head.root) {
      throw new SvcError(
        "corrupt",
        `the first ${head.size} records are not those that ${head.name} cosigned: history was rewritten; nothing was signed`,
      );
    }
    carried.push({
      note: signCheckpoint(head, key, lines),
      consistency: await proofs.consistency(head.size, size),
    });
  }
  return carried;
}
