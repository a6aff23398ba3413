/** Loads the grants for a call and consumes one, inside the unit of the intent, so that the last use happens once. */
import type { StoredDelegation } from "../approvals/approval.ts";
import { authoritiesFor } from "../approvals/authority.ts";
import type { EngineCore } from "../core.ts";
import type { DecisionFacts } from "../decide/facts.ts";
import type { StoreTx } from "../port/store.ts";
import { type CallerPrincipal, hasRole } from "../roles.ts";
import type { GrantUse, ResolvedGrant } from "./coverage.ts";
import { type GrantDoc, isUsedUp } from "./grant.ts";
import { addGrantToIndex, findGrantIds, removeGrantFromIndex } from "./grant-index.ts";

/** Grants for the tool and actor of a call, each with the current authority of its giver. */
export function grantsFor(
  core: EngineCore,
  tx: StoreTx,
  { tool, run, now, policy }: Pick<DecisionFacts, "tool" | "run" | "now" | "policy">,
): ResolvedGrant[] {
  const { four_eyes } = policy.approvals;
  const today = core.today ?? (() => null);
  const ids = findGrantIds(tx, tool, run.actor, now);
  tx.expect(ids.map((id) => ["grants", id]));
  return ids.flatMap((id) => {
    const doc = tx.get("grants", id);
    const giver = doc === undefined ? null : giverNow(core, doc);
    if (doc === undefined || giver === null) return [];
    const delegations = doc.internal.delegations.flatMap((one) => tx.get("delegations", one) ?? []);
    const authorities = authoritiesFor(
      { tool, actor: run.actor, acting: run.acting, tenant: run.tenant },
      giver,
      {
        four_eyes,
        now,
        delegations,
        today,
      },
    );
    return [{ doc, admin: hasRole(giver, "admin"), authorities }];
  });
}

/** Current principal of the giver; null if its key, role or issuer is no longer valid. */
function giverNow(core: EngineCore, { internal, by }: GrantDoc): CallerPrincipal | null {
  const { giver, at_the_data } = internal;
  if (!at_the_data) return core.today?.(giver) ?? null;
  const none = { groups: giver.groups, tenant: null, max_permissions: [], allow_observe: false };
  return { id: giver.principal, name: by, roles: ["admin"], ...none };
}

export function consumeGrant(tx: StoreTx, { id, use, spent }: GrantUse): void {
  const grant = tx.get("grants", id);
  if (grant === undefined || grant.uses !== use - 1) throw new Error(`grant ${id} cannot be used`);
  const used: GrantDoc = { ...grant, uses: use, spent };
  tx.put("grants", id, used);
  if (isUsedUp(used)) removeGrantFromIndex(tx, used);
}

/** Grants with all data that their coverage depends on, as plain data for a sandbox. */
export interface GrantSnapshot {
  grants: readonly GrantDoc[];
  delegations: readonly StoredDelegation[];
  /** Current principals of givers and delegators, by id. */
  people: readonly CallerPrincipal[];
}

export const EMPTY_GRANT_SNAPSHOT: GrantSnapshot = { grants: [], delegations: [], people: [] };

export function snapshotGrants(
  core: EngineCore,
  tx: StoreTx,
  tools: Iterable<string>,
  actor: string,
): GrantSnapshot {
  const ids = new Set([...tools].flatMap((tool) => findGrantIds(tx, tool, actor, core.env.now())));
  tx.expect([...ids].map((id) => ["grants", id]));
  const grants = [...ids].flatMap((id) => tx.get("grants", id) ?? []);
  const lent = new Set(grants.flatMap(({ internal }) => internal.delegations));
  const delegations = [...lent].flatMap((id) => tx.get("delegations", id) ?? []);
  const kept = [...grants.map(({ internal }) => internal.giver), ...delegations.map((one) => one.authority)];
  return { grants, delegations, people: kept.flatMap((one) => core.today?.(one) ?? []) };
}

/** Loads the snapshot into a sandbox's store, so that its intents find the grants. */
export function loadSnapshot(tx: StoreTx, { grants, delegations }: GrantSnapshot, now: number): void {
  for (const one of delegations) tx.put("delegations", one.id, one);
  for (const grant of grants) {
    addGrantToIndex(tx, grant, now);
    tx.put("grants", grant.id, grant);
  }
}
