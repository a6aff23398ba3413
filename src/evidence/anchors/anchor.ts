/** An anchor: one line with the ledger's head at some time, to be stored out of this machine's reach. */

import type { StateStore } from "../../govern/port/store.ts";
import { asJson } from "../../kernel/json/json.ts";
import { treeOf } from "../ledger-tree.ts";
import type { SigningKey } from "../signing.ts";

export const ANCHOR_FORMAT = "svc-anchor";

export interface LedgerAnchor {
  format: typeof ANCHOR_FORMAT;
  version: 1;
  ts_ms: number;
  /** Hash of the last record; 64 zeros for an empty ledger. */
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

/** Verifies the ledger up to its head first, and throws `corrupt` if that fails. */
export async function makeAnchor(
  store: StateStore,
  { now, region, signing }: AnchorOptions,
): Promise<LedgerAnchor> {
  // Take the time before reading the head, so that an anchor with a later time never has fewer records.
  const ts_ms = now();
  const { head, records, tree } = await treeOf(store).snapshot();
  const anchor: LedgerAnchor = {
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
  return { ...signed, signature: signing.sign("anchor", asJson(signed)) };
}

export function anchorLine(anchor: LedgerAnchor): string {
  return JSON.stringify(anchor);
}
