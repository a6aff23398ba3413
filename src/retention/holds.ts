/**
 * Legal holds. The active holds are also in one document, which the unit that deletes a run reads, so that a new hold
 * takes effect at once.
 */

import type { EngineCore } from "../govern/core.ts";
import { runToolKey } from "../govern/document-keys.ts";
import type { StateStore, StoreTx, UnitOfWork } from "../govern/port/store.ts";
import type { HoldScope, LegalHold } from "../govern/runs/hold.ts";
import type { RunDoc } from "../govern/runs/run.ts";
import { conflictError, invalidError, notFoundError, type SvcError } from "../kernel/errors.ts";
import { asJson, fromJson } from "../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";

export const ACTIVE_HOLDS = "active_holds";

export function activeHolds(tx: Pick<StoreTx, "get">): LegalHold[] {
  return fromJson<LegalHold[] | undefined>(tx.get("meta", ACTIVE_HOLDS)) ?? [];
}

interface HoldInput {
  scope: Partial<Record<keyof HoldScope, string | undefined>>;
  reason: string;
}

export function placeHoldUnit(core: EngineCore, by: string, input: HoldInput): UnitOfWork<LegalHold> {
  const { run_id, tenant, actor, tool } = input.scope;
  const scope: HoldScope = {
    run_id: run_id ?? null,
    tenant: tenant ?? null,
    actor: actor ?? null,
    tool: tool ?? null,
  };
  if (Object.values(scope).every((value) => value === null)) {
    throw invalidError("a legal hold needs a scope (a run, tenant, actor or tool)");
  }
  if (input.reason.trim().length < SERVICE_LIMITS.hold_reason_chars) {
    throw invalidError(
      `reason: a legal hold needs a reason of at least ${SERVICE_LIMITS.hold_reason_chars} characters`,
    );
  }
  const hold: LegalHold = {
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

/** Releases a hold. The hold stays on record, and the runs it covered become due again. */
export function releaseHoldUnit(core: EngineCore, by: string, id: string): UnitOfWork<LegalHold> {
  return {
    needs: [
      ["holds", id],
      ["meta", ACTIVE_HOLDS],
    ],
    run(tx) {
      const hold = tx.get("holds", id);
      if (hold === undefined) throw unknownHold(id);
      if (hold.released_ms !== null)
        throw conflictError("hold_released", `legal hold ${id} was already released`);
      const released: LegalHold = { ...hold, released_ms: core.env.now(), released_by: by };
      tx.put("holds", id, released);
      putActive(
        tx,
        activeHolds(tx).filter((one) => one.id !== id),
      );
      return released;
    },
  };
}

export const unknownHold = (id: string): SvcError =>
  notFoundError(`unknown legal hold ${id}`, "unknown_hold");

function putActive(tx: StoreTx, holds: LegalHold[]): void {
  tx.put("meta", ACTIVE_HOLDS, asJson(holds));
}

/** The number of holds in a listing without pages. */
export const MAX_LISTED_HOLDS = 10_000;

export async function readHolds(store: StateStore): Promise<LegalHold[]> {
  const rows = await store.list("holds", { tag: "active", order: "desc", limit: MAX_LISTED_HOLDS });
  return rows.map((row) => row.doc);
}

/** Returns the hold that covers the run, if any. `called` checks whether the run called a matching tool. */
export function coveringHold(
  holds: readonly LegalHold[],
  run: Pick<RunDoc, "run_id" | "tenant" | "actor">,
  called: (tool: string) => boolean,
): LegalHold | undefined {
  return holds.find(({ scope }) => {
    if (scope.run_id !== null && scope.run_id !== run.run_id) return false;
    if (scope.tenant !== null && scope.tenant !== run.tenant) return false;
    if (scope.actor !== null && scope.actor !== run.actor) return false;
    return scope.tool === null || called(scope.tool);
  });
}

export const calledInTx =
  (tx: StoreTx, run_id: string) =>
  (tool: string): boolean =>
    tx.get("run_tools", runToolKey(run_id, tool)) !== undefined;
