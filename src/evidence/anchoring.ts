/** Anchoring as it runs beside the service: once at the start, then at every interval, and on demand. */
import type { AnchorSink } from "../config/sections/operations.ts";
import type { Egress } from "../egress/egress.ts";
import { ENGINE } from "../engine/core.ts";
import type { Env } from "../kernel/env.ts";
import { messageOf } from "../kernel/errors.ts";
import type { LedgerRecord } from "../ledger/record.ts";
import type { Store } from "../port/store.ts";
import type { Logger } from "../telemetry/log.ts";
import { type Anchor, makeAnchor } from "./anchor.ts";
import type { SigningKey } from "./signing.ts";
import { type SinkResult, sendAnchor } from "./sinks.ts";
import { askWitness } from "./witness/client.ts";
import { type Cosigned, keepCosignatures } from "./witness/kept.ts";

export interface AnchoringParts {
  store: Store;
  env: Env;
  egress: Egress;
  signing: SigningKey | null;
  region: string | null;
  /** Under which name witnesses know the ledger. */
  origin: string | null;
  sinks: readonly AnchorSink[];
  /** Told of what was recorded about it. */
  recorded?(records: readonly LedgerRecord[]): void;
}

export interface Published {
  anchor: Anchor;
  sinks: SinkResult[];
}

/** `actor`: who asked, on the ledger. */
export async function anchorNow(parts: AnchoringParts, actor: string): Promise<Published> {
  const { store, env, egress, signing, region } = parts;
  const anchor = await makeAnchor(store, { now: () => env.now(), region, signing });
  const cosigned: Cosigned[] = [];
  const sinks = await sendAnchor(anchor, parts.sinks, egress, async (sink) => {
    cosigned.push(await askWitness(sink, parts));
  });
  parts.recorded?.(await keepCosignatures(store, env, actor, cosigned));
  return { anchor, sinks };
}

/** Runs until the signal aborts. Whatever fails is a warning, and the next round comes all the same. */
export async function startAnchoring(
  parts: AnchoringParts & { interval_ms: number; log: Logger },
  signal: AbortSignal,
): Promise<void> {
  if (parts.sinks.length === 0) return;
  const stopped = new Promise<void>((resolve) =>
    signal.addEventListener("abort", () => resolve(), { once: true }),
  );
  while (!signal.aborted) {
    // A sink that takes its time must not hold a stop up; the next start anchors anew.
    await Promise.race([anchorAndLog(parts), stopped]);
    await parts.env.sleep(parts.interval_ms, signal).catch(() => undefined);
  }
}

async function anchorAndLog(parts: AnchoringParts & { log: Logger }): Promise<void> {
  const { log } = parts;
  try {
    const { anchor, sinks } = await anchorNow(parts, ENGINE);
    for (const { ok, type, target, error } of sinks) {
      if (!ok) log.warn("an anchor could not be delivered", { sink: type, target, error });
    }
    log.debug("the ledger was anchored", { records: anchor.records, head: anchor.head });
  } catch (error) {
    log.warn("the ledger could not be anchored", { error: messageOf(error) });
  }
}
