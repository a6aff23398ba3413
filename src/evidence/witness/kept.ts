/**
 * The cosignatures that witnesses gave, kept in the store: the newest of each witness. They are put into bundles,
 * and tell where a witness stands when it is asked again.
 */
import type { Env } from "../../kernel/env.ts";
import { SvcError } from "../../kernel/errors.ts";
import type { Json } from "../../kernel/json.ts";
import { plural } from "../../kernel/words.ts";
import { EVENT_NAMES, type LedgerEvent } from "../../ledger/events.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import type { Store } from "../../port/store.ts";
import type { SigningKey } from "../signing.ts";
import { type Cosignature, checkpointBody, signCheckpoint, type TreeHead } from "./checkpoint.ts";
import type { LedgerProofs } from "./proofs.ts";

export interface Cosigned extends TreeHead, Cosignature {}

/** By the witness's key. */
type KeptCosignatures = Readonly<Record<string, Cosigned>>;

const KEY = "witnesses";
/** What the service writes about itself. A ledger that gained nothing else has nothing new to be witnessed. */
const OWN_EVENTS: ReadonlySet<LedgerEvent> = new Set(["witnessed", "probed"]);
const OTHER_EVENTS = EVENT_NAMES.filter((event) => !OWN_EVENTS.has(event));

export async function keptCosignatures(store: Store): Promise<KeptCosignatures> {
  return ((await store.get("meta", KEY)) ?? {}) as unknown as KeptCosignatures;
}

/** Keeps them, and writes one `witnessed` record where the ledger gained more than the service's own since. */
export async function keepCosignatures(
  store: Store,
  env: Env,
  actor: string,
  given: readonly Cosigned[],
): Promise<LedgerRecord[]> {
  if (given.length === 0) return [];
  const before = await keptCosignatures(store);
  const news: Cosigned[] = [];
  for (const one of given) if (await isNews(store, before[one.key_id], one)) news.push(one);
  return store.transact({
    needs: [["meta", KEY]],
    run(tx) {
      const kept = { ...((tx.get("meta", KEY) ?? {}) as unknown as KeptCosignatures) };
      for (const one of given) {
        const known = kept[one.key_id];
        if (known === undefined || known.origin !== one.origin || known.size <= one.size)
          kept[one.key_id] = one;
      }
      tx.put("meta", KEY, kept as unknown as Json);
      if (news.length === 0) return [];
      return [tx.append({ event: "witnessed", actor, ts_ms: env.now(), detail: describe(news) })];
    },
  });
}

async function isNews(
  store: Store,
  known: Cosigned | undefined,
  { origin, size }: Cosigned,
): Promise<boolean> {
  const from = known?.origin === origin ? known.size : 0;
  if (from >= size) return false;
  const found = await store.records({ from, to: size - 1, event: OTHER_EVENTS, limit: 1 });
  return found.length > 0;
}

function describe(news: readonly Cosigned[]): string {
  const sizes = new Map<number, string[]>();
  for (const { size, name } of news) sizes.set(size, [...(sizes.get(size) ?? []), name]);
  return [...sizes]
    .map(([size, names]) => `checkpoint of ${plural(size, "record")} cosigned by ${names.sort().join(", ")}`)
    .join("; ");
}

/** A cosigned checkpoint as a bundle carries it. */
export interface CarriedCheckpoint {
  note: string;
  /** From the checkpoint's tree to the bundle's. */
  consistency: string[];
}

/**
 * The kept checkpoints for a bundle over the first `size` records, signed with the key that signs the bundle.
 * Throws where the ledger no longer is what a witness cosigned.
 */
export async function carriedCheckpoints(
  kept: KeptCosignatures,
  proofs: LedgerProofs,
  size: number,
  key: SigningKey,
): Promise<CarriedCheckpoint[]> {
  const bodies = new Map<string, { head: Cosigned; lines: string }>();
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
