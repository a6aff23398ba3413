/** An anchor: one line that says where the ledger stood, for keeping where this machine cannot change it. */
import type { Json } from "../kernel/json.ts";
import type { Store } from "../port/store.ts";
import { treeOf } from "./ledger-tree.ts";
import type { SigningKey } from "./signing.ts";

export const ANCHOR_FORMAT = "svc-anchor";

export interface Anchor {
  format: typeof ANCHOR_FORMAT;
  version: 1;
  ts_ms: number;
  /** The hash of the last record; 64 zeros while there is none. */
  head: string;
  records: number;
  region?: string;
  tree: { size: number; root: string };
  key_id?: string;
  signature?: string;
}

interface AnchorOptions {
  now: () => number;
  region: string | null;
  signing: SigningKey | null;
}

/** Reads and checks the ledger up to its head first; throws `corrupt` where it does not verify. */
export async function makeAnchor(store: Store, { now, region, signing }: AnchorOptions): Promise<Anchor> {
  // The time of asking: of two anchors, the one with the later time then never has fewer records.
  const ts_ms = now();
  const { head, records, tree } = await treeOf(store).snapshot();
  const anchor: Anchor = {
    format: ANCHOR_FORMAT,
    version: 1,
    ts_ms,
    head,
    records,
    ...(region === null ? {} : { region }),
    tree,
  };
  if (signing === null) return anchor;
  const signed = { ...anchor, key_id: signing.key_id };
  return { ...signed, signature: signing.sign("anchor", signed as unknown as Json) };
}

export function anchorLine(anchor: Anchor): string {
  return JSON.stringify(anchor);
}
