/**
 * Legal holds. The active ones also stand together in one document, because the unit that deletes a run reads
 * it: a hold that was placed a moment ago wins.
 */
import type { Core } from "../engine/core.ts";
import { runToolKey } from "../engine/keys.ts";
import { conflict, invalid, notFound, type SvcError } from "../kernel/errors.ts";
import type { Json } from "../kernel/json.ts";
import { LIMITS } from "../kernel/limits.ts";
import type { Hold, HoldScope } from "../model/hold.ts";
import type { RunDoc } from "../model/run.ts";
import type { Store, Tx, Unit } from "../port/store.ts";

export const ACTIVE_HOLDS = "active_holds";

export function activeHolds(tx: Pick<Tx, "get">): Hold[] {
  return (tx.get("meta", ACTIVE_HOLDS) as unknown as Hold[] | undefined) ?? [];
}

interface HoldInput {
  scope: Partial<Record<keyof HoldScope, string | undefined>>;
  reason: string;
}

export function placeHoldUnit(core: Core, by: string, input: HoldInput): Unit<Hold> {
  const { run_id, tenant, actor, tool } = input.scope;
  const scope: HoldScope = {
    run_id: run_id ?? null,
    tenant: tenant ?? null,
    actor: actor ?? null,
    tool: tool ?? null,
  };
  if (Object.values(scope).every((value) => value === null)) {
    throw invalid("a legal hold needs a scope (a run, tenant, actor or tool)");
  }
  if (input.reason.trim().length < LIMITS.hold_reason_chars) {
    throw invalid(`reason: a legal hold needs a reason of at least ${LIMITS.hold_reason_chars} characters`);
  }
  const hold: Hold = {
    id: `hold_${core.env.uuid()}`,
    scope,
    reason: core.redact(input.reason),
    by,
    created_ms: core.env.now(),
    released_ms: null,
    released_by: null,
  };
  return {
    needs: [["meta", ACTIVE_HOLDS]],
    run(tx) {
      tx.put("holds", hold.id, hold);
      putActive(tx, [...activeHolds(tx), hold]);
      return hold;
    },
  };
}

/** A released hold stays on record; the runs it covered become due again. */
export function releaseHoldUnit(core: Core, by: string, id: string): Unit<Hold> {
  return {
    needs: [
      ["holds", id],
      ["meta", ACTIVE_HOLDS],
    ],
    run(tx) {
      const hold = tx.get("holds", id);
      if (hold === undefined) throw unknownHold(id);
      if (hold.released_ms !== null) throw conflict("hold_released", `legal hold ${id} was already released`);
      const released: Hold = { ...hold, released_ms: core.env.now(), released_by: by };
      tx.put("holds", id, released);
      putActive(
        tx,
        activeHolds(tx).filter((one) => one.id !== id),
      );
      return released;
    },
  };
}

export const unknownHold = (id: string): SvcError => notFound(`unknown legal hold ${id}`, "unknown_hold");

function putActive(tx: Tx, holds: Hold[]): void {
  tx.put("meta", ACTIVE_HOLDS, holds as unknown as Json);
}

/** Holds are read whole where no page is asked for. */
export const HOLDS_LISTED = 10_000;

export async function readHolds(store: Store): Promise<Hold[]> {
  const rows = await store.list("holds", { tag: "active", order: "desc", limit: HOLDS_LISTED });
  return rows.map((row) => row.doc);
}

/** The hold that covers the run, if any. `called` says whether the run called a tool at least once. */
export function coveringHold(
  holds: readonly Hold[],
  run: Pick<RunDoc, "run_id" | "tenant" | "actor">,
  called: (tool: string) => boolean,
): Hold | undefined {
  return holds.find(({ scope }) => {
    if (scope.run_id !== null && scope.run_id !== run.run_id) return false;
    if (scope.tenant !== null && scope.tenant !== run.tenant) return false;
    if (scope.actor !== null && scope.actor !== run.actor) return false;
    return scope.tool === null || called(scope.tool);
  });
}

export const calledInTx =
  (tx: Tx, run_id: string) =>
  (tool: string): boolean =>
    tx.get("run_tools", runToolKey(run_id, tool)) !== undefined;
