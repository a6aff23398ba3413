/** Anchors the ledger in the background: at the start, at every interval, and on demand. */
import type { AnchorSink } from "../../config/sections/operations.ts";
import type { EgressClient } from "../../egress/egress.ts";
import { ENGINE_ACTOR } from "../../govern/core.ts";
import type { StateStore } from "../../govern/port/store.ts";
import type { RuntimeEnv } from "../../kernel/env.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { LedgerRecord } from "../../ledger/record.ts";
import type { ServiceLogger } from "../../telemetry/log.ts";
import type { SigningKey } from "../signing.ts";
import { askWitness } from "../witness/client.ts";
import { type CosignedTreeHead, storeCosignatures } from "../witness/cosignature-store.ts";
import { type LedgerAnchor, makeAnchor } from "./anchor.ts";
import { type SinkResult, sendAnchor } from "./sinks.ts";

export interface AnchoringDeps {
  store: StateStore;
  env: RuntimeEnv;
  egress: EgressClient;
  signing: SigningKey | null;
  region: string | null;
  /** Name of the ledger for witnesses. */
  origin: string | null;
  sinks: readonly AnchorSink[];
  /** Receives the ledger records about the anchoring. */
  recorded?(records: readonly LedgerRecord[]): void;
}

export interface PublishedAnchor {
  anchor: LedgerAnchor;
  sinks: SinkResult[];
}

/** `actor`: name recorded on the ledger. */
export async function anchorNow(parts: AnchoringDeps, actor: string): Promise<PublishedAnchor> {
  const { store, env, egress, signing, region } = parts;
  const anchor = await makeAnchor(store, { now: () => env.now(), region, signing });
  const cosigned: CosignedTreeHead[] = [];
  const sinks = await sendAnchor(anchor, parts.sinks, egress, async (sink) => {
    cosigned.push(await askWitness(sink, parts));
  });
  parts.recorded?.(await storeCosignatures(store, env, actor, cosigned));
  return { anchor, sinks };
}

/** Runs until the signal aborts. A failure is logged as a warning, and the next round still runs. */
export async function startAnchoring(
  parts: AnchoringDeps & { interval_ms: number; log: ServiceLogger },
  signal: AbortSignal,
): Promise<void> {
  if (parts.sinks.length === 0) return;
  const stopped = new Promise<void>((resolve) =>
    signal.addEventListener("abort", () => resolve(), { once: true }),
  );
  while (!signal.aborted) {
    // A slow sink must not delay a shutdown; the next start publishes a new anchor.
    await Promise.race([anchorAndLog(parts), stopped]);
    await parts.env.sleep(parts.interval_ms, signal).catch(() => undefined);
  }
}

async function anchorAndLog(parts: AnchoringDeps & { log: ServiceLogger }): Promise<void> {
  const { log } = parts;
  try {
    const { anchor, sinks } = await anchorNow(parts, ENGINE_ACTOR);
    for (const { ok, type, target, error } of sinks) {
      if (!ok) log.warn("an anchor could not be delivered", { sink: type, target, error });
    }
    log.debug("the ledger was anchored", { records: anchor.records, head: anchor.head });
  } catch (error) {
    log.warn("the ledger could not be anchored", { error: messageOf(error) });
  }
}
