/** Taking grants in hand for a call, and spending one: inside the unit of the intent, so that the last use is used once. */
import type { Delegation } from "../../model/approval.ts";
import type { GrantDoc } from "../../model/grant.ts";
import { hasRole, type Principal } from "../../model/roles.ts";
import type { Tx } from "../../port/store.ts";
import { authoritiesFor } from "../approvals/authority.ts";
import type { Core } from "../core.ts";
import type { Facts } from "../decide/facts.ts";
import type { GrantInHand, GrantUse } from "./coverage.ts";
import { enterGrant, namedGrants, removeGrant } from "./index-of.ts";

/** The grants that name the tool and the actor of a call, each with what its giver may decide now. */
export function grantsFor(
  core: Core,
  tx: Tx,
  { tool, run, now, policy }: Pick<Facts, "tool" | "run" | "now" | "policy">,
): GrantInHand[] {
  const { four_eyes } = policy.approvals;
  const today = core.today ?? (() => null);
  const ids = namedGrants(tx, tool, run.actor, now);
  tx.expect(ids.map((id) => ["grants", id]));
  return ids.flatMap((id) => {
    const doc = tx.get("grants", id);
    const giver = doc === undefined ? null : giverNow(core, doc);
    if (doc === undefined || giver === null) return [];
    const delegations = doc.internal.delegations.flatMap((one) => tx.get("delegations", one) ?? []);
    const authorities = authoritiesFor({ tool, actor: run.actor, tenant: run.tenant }, giver, {
      four_eyes,
      now,
      delegations,
      today,
    });
    return [{ doc, admin: hasRole(giver, "admin"), authorities }];
  });
}

/** Its giver as of now; null once the key, the role or the issuer behind it no longer counts. */
function giverNow(core: Core, { internal, by }: GrantDoc): Principal | null {
  const { giver, at_the_data } = internal;
  if (!at_the_data) return core.today?.(giver) ?? null;
  const none = { groups: giver.groups, tenant: null, max_permissions: [], allow_observe: false };
  return { id: giver.principal, name: by, roles: ["admin"], ...none };
}

export function spendGrant(tx: Tx, { id, use, spent }: GrantUse): void {
  const grant = tx.get("grants", id);
  if (grant === undefined || grant.uses !== use - 1) throw new Error(`grant ${id} is not there to be used`);
  const used: GrantDoc = { ...grant, uses: use, spent };
  tx.put("grants", id, used);
  if (used.uses >= used.max_uses) removeGrant(tx, used);
}

/** Grants to be weighed elsewhere, with everything that their weight depends on: plain data, for a sandbox. */
export interface HeldGrants {
  grants: readonly GrantDoc[];
  delegations: readonly Delegation[];
  /** Givers and lenders as they are now, by their ids. */
  people: readonly Principal[];
}

export const NO_GRANTS: HeldGrants = { grants: [], delegations: [], people: [] };

export function holdGrants(core: Core, tx: Tx, tools: Iterable<string>, actor: string): HeldGrants {
  const ids = new Set([...tools].flatMap((tool) => namedGrants(tx, tool, actor, core.env.now())));
  tx.expect([...ids].map((id) => ["grants", id]));
  const grants = [...ids].flatMap((id) => tx.get("grants", id) ?? []);
  const lent = new Set(grants.flatMap(({ internal }) => internal.delegations));
  const delegations = [...lent].flatMap((id) => tx.get("delegations", id) ?? []);
  const kept = [...grants.map(({ internal }) => internal.giver), ...delegations.map((one) => one.authority)];
  return { grants, delegations, people: kept.flatMap((one) => core.today?.(one) ?? []) };
}

/** Puts them where the sandbox's intents will find them. */
export function putHeld(tx: Tx, { grants, delegations }: HeldGrants, now: number): void {
  for (const one of delegations) tx.put("delegations", one.id, one);
  for (const grant of grants) {
    enterGrant(tx, grant, now);
    tx.put("grants", grant.id, grant);
  }
}
